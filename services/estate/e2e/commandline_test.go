package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"specialroutes.example/services/override"
)

// commandLine runs a command against the lab's specialroutes and returns its exit
// code and its standard output.
func (l *lab) commandLine(t testing.TB, args ...string) (code int, stdout string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binaryPath(t, "specialroutes"), args...)
	cmd.Env = append(baseEnviron(), "SPECIALROUTES_URL="+l.url)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	_ = cmd.Run() // its code is in ProcessState
	if cmd.ProcessState == nil {
		t.Fatalf("%q does not start", args)
	}
	if complaint.Len() > 0 {
		t.Logf("%q: %s", args, &complaint)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// done is commandLine for what must succeed.
func (l *lab) done(t testing.TB, args ...string) string {
	t.Helper()
	code, stdout := l.commandLine(t, args...)
	if code != 0 {
		t.Fatalf("%q ended with %d:\n%s", args, code, stdout)
	}
	return stdout
}

// threeVariants is a record with all kinds of ways to a variant. Whatever leads to
// "new" leads to the alternate upstream.
func (l *lab) threeVariants() string {
	return fmt.Sprintf(`{"service": %q, "active": true, "default": "old",
		"variants": [{"name": "old", "weight": 7}, {"name": "new", "weight": 3, "endpoint": %q}, {"name": "next", "weight": 0, "endpoint": %q}],
		"rules": [{"name": "testers", "match": [{"on": "header", "name": "tmx-user-id", "in": ["u-17"]}], "variant": "new"},
			{"name": "beta", "match": [{"on": "cookie", "name": "beta", "present": true}, {"on": "path", "prefix": "/v2/"}], "variant": "next"}],
		"sticky": {"by": "header", "name": "tmx-user-id", "missing": "default"}}`, labService, l.new.URL, l.new.URL)
}

// A call that is made after a command with --wait has ended obeys what it wrote.
func TestACommandThatWaitsHasBeenObeyed(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	file := filepath.Join(t.TempDir(), "record.json")
	if err := os.WriteFile(file, []byte(l.threeVariants()), 0o600); err != nil {
		t.Fatal(err)
	}
	variant := func() string {
		return call(t, "GET", l.base+"/x", nil, headers{{"tmx-user-id", "u-17"}}).header.Get("X-Route-Variant")
	}
	l.done(t, "routes", "put", labService, file, "--wait", "--why=testers first")
	if got := variant(); got != "new" {
		t.Errorf("after put the variant is %q, want new", got)
	}
	for i := range 10 {
		active, want := "false", "old"
		if i%2 == 1 {
			active, want = "true", "new"
		}
		l.done(t, "routes", "active", labService, active, "--wait")
		if got := variant(); got != want {
			t.Errorf("after active %s the variant is %q, want %s", active, got, want)
		}
	}
	l.done(t, "routes", "delete", labService, "--wait")
	if got := call(t, "GET", l.base+"/x", nil, nil).header.Get("X-Route-Reason"); got != "no-record" {
		t.Errorf("after delete the reason is %q, want no-record", got)
	}
	l.done(t, "routes", "rollback", labService, "1", "--wait")
	if got := variant(); got != "new" {
		t.Errorf("after rollback the variant is %q, want new", got)
	}
	if out := l.done(t, "gateways"); !strings.Contains(out, "lab ") || !strings.Contains(out, "live") {
		t.Errorf("gateways prints\n%s\nwithout the lab's, live", out)
	}
}

// What explain says of a request is what the gateway does with it.
func TestExplainOnTheCommandLineIsWhatTheGatewayDoes(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	file := filepath.Join(t.TempDir(), "record.json")
	if err := os.WriteFile(file, []byte(l.threeVariants()), 0o600); err != nil {
		t.Fatal(err)
	}
	l.done(t, "routes", "put", labService, file, "--wait")
	for _, test := range []struct {
		path    string
		headers headers
	}{
		{"/v1/x", nil},
		{"/v1/x", headers{{"tmx-user-id", "u-17"}}},
		{"/v2/x", headers{{"Cookie", "alpha=1; beta=2"}}},
		{"/v2/x", headers{{"Cookie", "xbeta=2"}}},
		{"/v1/x?beta=1", headers{{"Cookie", "beta=2"}}},
		{"/v1/x", headers{{"tmx-user-id", "u-1"}}},
		{"/v1/x", headers{{"tmx-user-id", "u-2"}}},
		{"/v1/x", headers{{"tmx-user-id", "u-3"}}},
		{"/v1/x", headers{{"tmx-user-id", "u-4"}}},
	} {
		args := []string{"routes", "explain", labService, "--output=json", "--path", test.path}
		for _, h := range test.headers {
			args = append(args, "--header", h[0]+": "+h[1])
		}
		var said struct{ Variant, Reason string }
		if err := json.Unmarshal([]byte(l.done(t, args...)), &said); err != nil {
			t.Fatal(err)
		}
		got := call(t, "GET", l.base+test.path, nil, test.headers).header
		if got.Get("X-Route-Variant") != said.Variant || got.Get("X-Route-Reason") != said.Reason {
			t.Errorf("%s %v: the gateway gives %s (%s), explain says %+v", test.path, test.headers, got.Get("X-Route-Variant"), got.Get("X-Route-Reason"), said)
		}
	}
}

// An override that the command line signs is obeyed by a gateway with the same key
// file, by the header and by the cookie; any other is removed, named and counted.
func TestAnOverrideOfTheCommandLineIsObeyed(t *testing.T) {
	t.Parallel()
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte("# keys\nk1 "+strings.Repeat("s", override.MinSecret)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := newLab(t, labOptions{config: map[string]string{"overrideKeys": fmt.Sprintf("%q", keys)}})
	file := filepath.Join(t.TempDir(), "record.json")
	if err := os.WriteFile(file, []byte(l.threeVariants()), 0o600); err != nil {
		t.Fatal(err)
	}
	l.done(t, "routes", "put", labService, file, "--wait")
	sign := func(service, variant string) string {
		return strings.TrimSpace(l.done(t, "override", "--service", service, "--variant", variant, "--for", "1h", "--keys", keys))
	}
	next, elsewhere := sign(labService, "next"), sign("another-service", "new")
	tests := []struct {
		name             string
		header           [2]string
		variant, invalid string
		travels          string // what the upstream sees of it
	}{
		{"none", [2]string{"Accept", "*/*"}, "old", "", ""},
		{"header", [2]string{"Route-Override", next}, "next", "", next},
		{"cookie", [2]string{"Cookie", "a=b; route-override=" + next}, "next", "", "a=b; route-override=" + next},
		{"several", [2]string{"Route-Override", elsewhere + ", " + next}, "next", "", elsewhere + ", " + next},
		{"foreign", [2]string{"Route-Override", elsewhere}, "old", "", elsewhere},
		{"forged", [2]string{"Route-Override", strings.Replace(next, ".next.", ".new.", 1)}, "old", "forged", ""},
		{"forged beside foreign", [2]string{"Route-Override", elsewhere + "," + next[:len(next)-1] + "!"}, "old", "forged", elsewhere},
		{"rubbish", [2]string{"Cookie", "route-override=" + strings.Repeat("x", 4096)}, "old", "malformed", ""},
	}
	for _, test := range tests {
		l.old.reset()
		l.new.reset()
		got := call(t, "GET", l.base+"/x", nil, headers{test.header})
		if v, i := got.header.Get("X-Route-Variant"), got.header.Get("X-Route-Override-Invalid"); got.status != 200 || v != test.variant || i != test.invalid {
			t.Errorf("%s: %d, variant %q, invalid %q, want 200, %q, %q", test.name, got.status, v, i, test.variant, test.invalid)
		}
		calls := append(l.old.all(), l.new.all()...)
		if len(calls) != 1 {
			t.Fatalf("%s: %d calls arrive, want 1", test.name, len(calls))
		}
		if travelled := calls[0].header.Get("Route-Override") + calls[0].header.Get("Cookie"); travelled != test.travels {
			t.Errorf("%s: %q travels on, want %q", test.name, travelled, test.travels)
		}
	}
	l.done(t, "routes", "active", labService, "false", "--wait")
	if got := call(t, "GET", l.base+"/x", nil, headers{{"Route-Override", next}}).header.Get("X-Route-Reason"); got != "inactive" {
		t.Errorf("an override of a record that is off gives the reason %q, want inactive", got)
	}
	metrics := string(call(t, "GET", l.admin+"/metrics", nil, nil).body)
	if !slices.Contains(strings.Split(metrics, "\n"), "gateway_invalid_overrides_total 3") {
		t.Error("/metrics does not count 3 invalid overrides")
	}
}
