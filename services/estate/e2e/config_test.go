package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// goodConfig is a gateway's file of one setting a line; the mistakes below replace
// one of its lines or add one at its end.
var goodConfig = []string{
	"id: lab",                         // 1
	"listen: 127.0.0.1:0",             // 2
	"admin: 127.0.0.1:0",              // 3
	"exposeRoute: true",               // 4
	"clientLabels: all",               // 5
	"trustedProxies: []",              // 6
	"timeouts:",                       // 7
	"  connect: 1s",                   // 8
	"  response: 2s",                  // 9
	"limits:",                         // 10
	"  headerFields: 100",             // 11
	"routes:",                         // 12
	"  - prefix: /api/lab",            // 13
	"    service: lab",                // 14
	"instances:",                      // 15
	"  lab:",                          // 16
	"    - id: a",                     // 17
	"      address: 10.0.0.1:80",      // 18
	"records:",                        // 19
	"  url: [\"http://127.0.0.1:9\"]", // 20
	"drain:",                          // 21
	"  delay: 1s",                     // 22
}

func TestABadConfigurationFileStopsTheStartWithTheLineAndTheField(t *testing.T) {
	t.Parallel()
	binary := binaryPath(t, "gateway")
	for _, test := range []struct {
		name  string
		line  int    // counted from 1; one past the end adds a line
		text  string // the line with the mistake
		field string
	}{
		{"an unknown key", 23, "routez: []", "routez"},
		{"an unknown key inside", 9, "  respons: 2s", "respons"},
		{"a differently-cased key", 4, "exposeroute: true", "exposeroute"},
		{"a duplicate key", 23, "listen: 127.0.0.1:1", "listen"},
		{"a word for a boolean", 4, "exposeRoute: perhaps", "exposeRoute"},
		{"a word of its own for labels", 5, "clientLabels: some", "clientLabels"},
		{"no CIDR", 6, "trustedProxies: [10.0.0.0/99]", "trustedProxies"},
		{"no duration", 8, "  connect: soon", "connect"},
		{"a negative duration", 8, "  connect: -1s", "connect"},
		{"a number without a unit", 22, "  delay: 5", "delay"},
		{"a word for a number", 11, "  headerFields: many", "headerFields"},
		{"a list for an address", 2, "listen: [1, 2]", "listen"},
		{"an address without a port", 3, "admin: localhost", "admin"},
		{"a prefix without a slash", 13, "  - prefix: api/lab", "prefix"},
		{"a service name outside the pattern", 14, "    service: Lab_Service", "service"},
		{"an instance without a port", 18, "      address: 10.0.0.1", "address"},
		{"no URL", 20, "  url: [\"::\"]", "url"},
		{"no YAML", 6, "trustedProxies: [", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			lines := append([]string(nil), goodConfig...)
			if test.line > len(lines) {
				lines = append(lines, test.text)
			} else {
				lines[test.line-1] = test.text
			}
			p := startWithConfig(t, binary, lines)
			if code := p.wait(t, 10*time.Second); code == 0 {
				t.Errorf("exit code = 0")
			}
			text := p.out.String()
			if !strings.Contains(text, test.field) {
				t.Errorf("the message does not name %s:\n%s", test.field, text)
			}
			// A broken document is noticed at the line with the mistake or, where it
			// runs on, at the next one.
			lineNumber := regexp.MustCompile(fmt.Sprintf(`(\bline |[:\[])(%d)\b`, test.line))
			if test.field == "" {
				lineNumber = regexp.MustCompile(fmt.Sprintf(`(\bline |[:\[])(%d|%d)\b`, test.line, test.line+1))
			}
			if !lineNumber.MatchString(text) {
				t.Errorf("the message does not name line %d:\n%s", test.line, text)
			}
		})
	}
	t.Run("a file that is not there", func(t *testing.T) {
		p := startProcess(t, "gateway", binary, []string{"GATEWAY_CONFIG=" + filepath.Join(t.TempDir(), "nothing.yaml")})
		if code := p.wait(t, 10*time.Second); code == 0 || !strings.Contains(p.out.String(), "nothing.yaml") {
			t.Errorf("exit code %d, message: %s", code, p.out)
		}
	})
	t.Run("the same without a mistake starts", func(t *testing.T) {
		lines := append([]string(nil), goodConfig...)
		lines[1], lines[2] = "listen: "+shared.ports.free(t), "admin: "+shared.ports.free(t)
		p := startWithConfig(t, binary, lines)
		p.ready(t, "http://"+strings.TrimPrefix(lines[2], "admin: ")+"/healthz")
	})
}

func startWithConfig(t *testing.T, binary string, lines []string) *process {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return startProcess(t, "gateway", binary, []string{"GATEWAY_CONFIG=" + file})
}

func TestAPortInUseStopsTheStartAndIsNamed(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{}) // its gateway has the port
	_, port, _ := strings.Cut(l.data, ":")
	p := startProcess(t, "gateway", binaryPath(t, "gateway"), append(l.environ,
		"GATEWAY_ADMIN="+shared.ports.free(t), "GATEWAY_RECORDS_FILE="+filepath.Join(t.TempDir(), "records.json")))
	if code := p.wait(t, 30*time.Second); code == 0 || !strings.Contains(p.out.String(), port) {
		t.Errorf("exit code %d, message: %s", code, p.out)
	}
}

func TestTheEnvironmentStandsOverTheFile(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	listen, admin := shared.ports.free(t), shared.ports.free(t)
	other := newUpstream(t, "other", nil)
	p := startProcess(t, "gateway", binaryPath(t, "gateway"), []string{
		"GATEWAY_CONFIG=" + l.config,
		"GATEWAY_ID=by-environment", "GATEWAY_LISTEN=" + listen, "GATEWAY_ADMIN=" + admin,
		"GATEWAY_RECORDS_URL=" + l.url,
		"GATEWAY_RECORDS_FILE=" + filepath.Join(t.TempDir(), "records.json"),
		"GATEWAY_ROUTES=[{prefix: /by/environment, service: other}]",
		fmt.Sprintf("GATEWAY_INSTANCES={other: [{id: o, address: %q}]}", other.addr()),
	})
	p.ready(t, "http://"+admin+"/readyz")
	if got := call(t, "GET", "http://"+listen+"/by/environment/x", nil, nil); string(got.body) != "other" {
		t.Errorf("status %d, body %q", got.status, got.body)
	}
	wantProblem(t, call(t, "GET", "http://"+listen+labPrefix+"/x", nil, nil), 404)
}
