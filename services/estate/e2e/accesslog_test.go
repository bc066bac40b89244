package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// accessLine waits for the line of the access log that belongs to a correlation
// ID; it must be one.
func accessLine(t testing.TB, log func() string, correlation string) map[string]any {
	t.Helper()
	var lines []map[string]any
	poll(t, 5*time.Second, "the access log has the call "+correlation, func() error {
		lines = nil
		for _, m := range jsonLines(log(), `"`+correlation+`"`) {
			if m["status"] != nil && m["method"] != nil {
				lines = append(lines, m)
			}
		}
		if len(lines) == 0 {
			return fmt.Errorf("no line with %q", correlation)
		}
		return nil
	})
	if len(lines) != 1 {
		t.Fatalf("%d lines for %q, want one: %v", len(lines), correlation, lines)
	}
	return lines[0]
}

func TestTheAccessLogHasOneLineARequestWithAllFields(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	l.toNew(t)
	call(t, "POST", l.base+"/v1/x?secret=1", strings.NewReader("12345"), headers{{correlationHeader, "full-line"}})
	line := l.accessLine(t, "full-line")
	for name, want := range map[string]any{
		"correlationId": "full-line", "method": "POST", "host": l.data, "route": labPrefix, "service": labService,
		"variant": "alternate", "reason": "draw", "status": 200.0, "bytesIn": 5.0, "bytesOut": float64(len("new")),
		"retries": 0.0, "client": "127.0.0.1",
	} {
		if line[name] != want {
			t.Errorf("%s = %v, want %v", name, line[name], want)
		}
	}
	if path := fmt.Sprint(line["path"]); path != labPrefix+"/v1/x" {
		t.Errorf("path = %q, want %q: the query may hold secrets", path, labPrefix+"/v1/x")
	}
	if _, err := time.Parse(time.RFC3339Nano, fmt.Sprint(line["time"])); err != nil {
		t.Errorf("time: %v", err)
	}
	for _, prefix := range []string{"duration", "upstream"} {
		if !hasPositive(line, prefix) {
			t.Errorf("no positive number named %s…: %v", prefix, line)
		}
	}
	if v := fmt.Sprint(line["instance"]); !strings.Contains(v, l.new.addr()) {
		t.Errorf("instance = %q, want the endpoint %s", v, l.new.addr())
	}
	if _, ok := line["fallback"]; ok && line["fallback"] != "" {
		t.Errorf("fallback = %v, but nothing gave way", line["fallback"])
	}
}

func hasPositive(line map[string]any, prefix string) bool {
	for name, value := range line {
		if v, ok := value.(float64); ok && strings.HasPrefix(name, prefix) && v > 0 {
			return true
		}
	}
	return false
}

func TestTheAccessLogHasALineForARefusalToo(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	for id, test := range map[string]struct {
		target string
		status float64
	}{"refused-path": {labPrefix + "/a/../b", 400}, "no_route": {"/nothing", 404}} {
		rawGet(t, l.data, test.target, correlationHeader+": "+id)
		line := l.accessLine(t, id)
		if line["status"] != test.status {
			t.Errorf("%s: status = %v, want %v", id, line["status"], test.status)
		}
	}
}

func TestAHostilePathIsOneEscapedLine(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	for i, path := range []string{
		"/%0d%0a{%22time%22:1}", `/"},{"status":200`, "/<script>", "/\x80\xff", "/a\x7fb", "/%zz", "/" + strings.Repeat("long/", 10_000), "/%E2%80%A8",
	} {
		id := fmt.Sprintf("hostile-%d", i)
		got := rawGet(t, l.data, labPrefix+path, correlationHeader+": "+id, `User-Agent: "}`+"\t{")
		id = wantOneCorrelation(t, got) // what no parser can read gets a new one
		line := l.accessLine(t, id)
		if logged := fmt.Sprint(line["path"]); len(logged) > 8192 {
			t.Errorf("%s: the path in the log has %d bytes; it is not capped", id, len(logged))
		}
	}
	// Every line of the log is JSON for itself, whatever was asked for.
	for line := range strings.Lines(l.gateway.out.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line of the log is not JSON: %.300q", line)
		}
		if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r < 0x20 || r == 0x7f }) {
			t.Errorf("a line of the log holds a control character: %.300q", line)
		}
	}
}

func TestTheLogTellsNoSecret(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{config: map[string]string{"log": "{level: debug}"}})
	l.toNew(t)
	call(t, "GET", l.base+"/x?token=q-secret", nil, headers{
		{"Authorization", "Bearer a-secret"}, {"tmx-auth-token", "t-secret"}, {"Cookie", "c=c-secret"}, {correlationHeader, "secrets-1"},
	})
	l.accessLine(t, "secrets-1")
	for _, secret := range []string{"q-secret", "a-secret", "t-secret", "c-secret"} {
		if strings.Contains(l.gateway.out.String(), secret) {
			t.Errorf("%s is in the log", secret)
		}
	}
}

func TestTheLogCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{config: map[string]string{"log": "{access: false}"}})
	call(t, "GET", l.base+"/x", nil, headers{{correlationHeader, "unlogged-1"}})
	l.gateway.stop(t) // all that is written has been written now
	if strings.Contains(l.gateway.out.String(), "unlogged-1") {
		t.Error("the call is in the log")
	}
}

func TestTheMetricsCountByServiceVariantAndStatusClass(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	l.toNew(t)
	const calls = 7
	for range calls {
		call(t, "GET", l.base+"/x", nil, nil)
	}
	rawGet(t, l.data, "/not-a-service-of-ours", "Host-Label: x")
	counted := func(parts ...string) func(name, labels string) bool {
		return func(name, labels string) bool {
			for _, part := range parts {
				if !strings.Contains(labels, part) {
					return false
				}
			}
			return strings.HasSuffix(name, "_total") && strings.Contains(name, "requests")
		}
	}
	poll(t, 5*time.Second, "the calls are counted", func() error {
		n := samples(t, l.admin+"/metrics", counted(`"`+labService+`"`, `"alternate"`, `"2xx"`))
		if n != calls {
			return fmt.Errorf("counted %v, want %d", n, calls)
		}
		return nil
	})
	text := string(call(t, "GET", l.admin+"/metrics", nil, nil).body)
	if strings.Contains(text, "not-a-service-of-ours") {
		t.Error("a path of a client became a label value")
	}
	if !strings.Contains(text, `"other"`) {
		t.Error("a call without a service is not counted under other")
	}
}

func TestTheAdminPagesAreNotOnTheDataPort(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/routes", "/records", "/instances"} {
		if got := call(t, "GET", l.admin+path, nil, nil); got.status != 200 {
			t.Errorf("admin %s: status = %d", path, got.status)
		}
		wantProblem(t, call(t, "GET", "http://"+l.data+path, nil, nil), 404)
	}
	for _, path := range []string{"/debug/pprof/", "/debug/vars"} {
		wantProblem(t, call(t, "GET", "http://"+l.data+path, nil, nil), 404)
	}
	got := call(t, "POST", l.admin+"/records", strings.NewReader("{}"), nil)
	if got.status != 405 || got.header.Get("Allow") == "" {
		t.Errorf("POST /records: status %d, Allow %q; want 405 with Allow", got.status, got.header.Get("Allow"))
	}
}
