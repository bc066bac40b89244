package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// ran is how a command ended and what it wrote.
type ran struct {
	code           int
	stdout, stderr string
}

// command runs the command line against a specialroutes.
func command(t testing.TB, url, stdin string, args ...string) ran {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binaryPath(t, "specialroutes"), args...)
	cmd.Env = append(baseEnviron(), "SPECIALROUTES_URL="+url)
	cmd.Dir = t.TempDir()
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatalf("%q: %v", args, err)
	}
	return ran{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// wantCode checks how a command ended: what failed says why on standard error and
// leaves standard output to what was asked for.
func wantCode(t testing.TB, got ran, code int) {
	t.Helper()
	if got.code != code {
		t.Errorf("exit code = %d, want %d; it wrote %q and %q", got.code, code, got.stdout, got.stderr)
	}
	if code == 0 && got.stdout == "" || code != 0 && code != 7 && (got.stderr == "" || got.stdout != "") {
		t.Errorf("exit code %d with %q on standard output and %q on standard error", got.code, got.stdout, got.stderr)
	}
}

// textFile writes a file for a test.
func textFile(t testing.TB, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestEachCommandDoesWhatTheAPIDoes(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	run := func(args ...string) string {
		t.Helper()
		got := command(t, r.url, "", args...)
		wantCode(t, got, 0)
		return got.stdout
	}
	record := func() []byte { return call(t, "GET", r.full("cli"), nil, nil).body }
	one, two := pair("cli", 1, 0), pair("cli", 1, 1, `"owner":"team"`)

	run("routes", "put", "cli", textFile(t, one), "--why", "by file")
	wantJSON(t, "after put", record(), one)
	if got := command(t, r.url, two, "routes", "put", "cli", "--why=by standard input"); got.code != 0 {
		t.Fatalf("put from standard input: %+v", got)
	}
	wantJSON(t, "after put from standard input", record(), two)
	wantJSON(t, "get", []byte(run("routes", "get", "cli", "--output", "json")), two)
	if etag := strings.TrimSpace(run("routes", "get", "cli", "--etag")); etag != r.etagOf(t, "cli") && `"`+etag+`"` != r.etagOf(t, "cli") {
		t.Errorf("get --etag prints %s, the record's is %s", etag, r.etagOf(t, "cli"))
	}
	run("routes", "weights", "cli", "old=8", "new=2")
	wantJSON(t, "after weights", record(), strings.NewReplacer(`"old","weight":1`, `"old","weight":8`, `"new","weight":1`, `"new","weight":2`).Replace(two))
	run("routes", "active", "cli", "false")
	if !strings.Contains(string(record()), `"active":false`) {
		t.Errorf("after active false: %s", record())
	}
	before := record()
	if out := run("routes", "weights", "cli", "old=7", "new=3", "--dry-run"); !strings.Contains(out, "/variants/0/weight") {
		t.Errorf("a dry run prints %s", out)
	}
	wantJSON(t, "after a dry run", record(), string(before))
	run("routes", "rollback", "cli", "1")
	wantJSON(t, "after rollback", record(), one)
	var page historyPage
	if err := json.Unmarshal([]byte(run("routes", "history", "cli", "--output=json")), &page); err != nil || len(page.Entries) != 5 || page.Entries[4].Why != "by file" {
		t.Errorf("history: %v: %+v", err, page)
	}
	for _, args := range [][]string{{"routes", "list"}, {"routes", "get", "cli"}, {"routes", "history", "cli"}, {"routes", "list", "--output", "json"}} {
		if out := run(args...); !strings.Contains(out, "cli") && !strings.Contains(out, "by file") {
			t.Errorf("%q prints %s", args, out)
		}
	}
	var e explanation
	if err := json.Unmarshal([]byte(run("routes", "explain", "cli", "--output=json")), &e); err != nil || e.Variant != "old" || e.Reason != "draw" {
		t.Errorf("explain: %v: %+v", err, e)
	}
	run("gateways", "--output=json")
	run("routes", "delete", "cli")
	wantProblem(t, call(t, "GET", r.full("cli"), nil, nil), 404)
}

func TestTheExitCodeTellsAScriptHowACommandEnded(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	r.save(t, "cli", pair("cli", 1, 1))
	etag := r.etagOf(t, "cli")
	r.save(t, "cli", pair("cli", 1, 2))
	before := stored(t, r)
	good, bad := textFile(t, pair("cli", 3, 3)), textFile(t, pair("cli", 0, 0))
	for _, test := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"no command", []string{"routes", "nothing"}, 2, ""},
		{"an unknown flag", []string{"routes", "list", "--everything"}, 2, "everything"},
		{"too few arguments", []string{"routes", "get"}, 2, ""},
		{"too many arguments", []string{"routes", "get", "cli", "two"}, 2, ""},
		{"a weight that is none", []string{"routes", "weights", "cli", "old=many", "new=1"}, 2, "old=many"},
		{"no weight", []string{"routes", "weights", "cli"}, 2, ""},
		{"active is neither", []string{"routes", "active", "cli", "perhaps"}, 2, "perhaps"},
		{"a revision that is none", []string{"routes", "rollback", "cli", "first"}, 2, "first"},
		{"an output that is none", []string{"routes", "list", "--output", "xml"}, 2, "xml"},
		{"a server that is none", []string{"routes", "list", "--server", "not a url"}, 2, ""},
		{"a header without a colon", []string{"routes", "explain", "cli", "--header", "a"}, 2, ""},
		{"a file that is not there", []string{"routes", "put", "cli", "/nowhere/record.json"}, 1, "/nowhere/record.json"},
		{"a token file that is not there", []string{"routes", "list", "--token-file", "/nowhere/token"}, 1, "/nowhere/token"},
		{"no such record", []string{"routes", "get", "nobody"}, 3, "nobody"},
		{"no such record to delete", []string{"routes", "delete", "nobody"}, 3, "nobody"},
		{"no such record to weigh", []string{"routes", "weights", "nobody", "a=1"}, 3, "nobody"},
		{"a record that is wrong", []string{"routes", "put", "cli", bad}, 4, "/variants"},
		{"a record that is no JSON", []string{"routes", "put", "cli", textFile(t, "service: cli")}, 4, ""},
		{"a record for another", []string{"routes", "put", "another", good}, 4, "/service"},
		{"weights of too few variants", []string{"routes", "weights", "cli", "old=1"}, 4, "/new"},
		{"a revision that never was", []string{"routes", "rollback", "cli", "4711"}, 4, "/revision"},
		{"a name that is none", []string{"routes", "get", "Bad_Name"}, 4, ""},
		{"an old ETag", []string{"routes", "put", "cli", good, "--if-match", etag}, 5, ""},
		{"an old ETag without quotation marks", []string{"routes", "delete", "cli", "--if-match", strings.Trim(etag, `"`)}, 5, ""},
		{"there is a record", []string{"routes", "put", "cli", good, "--if-none-match", "*"}, 5, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := command(t, r.url, "", test.args...)
			wantCode(t, got, test.code)
			if !strings.Contains(got.stderr, test.says) {
				t.Errorf("it says %q, want it to name %q", got.stderr, test.says)
			}
		})
	}
	if after := stored(t, r); after != before {
		t.Errorf("something was stored:\nbefore %s\nafter  %s", before, after)
	}
	wantCode(t, command(t, r.url, "", "routes", "put", "cli", good, "--if-match", strings.Trim(r.etagOf(t, "cli"), `"`)), 0)
}

func TestAServerThatIsAwayOrWrongHasAnExitCodeOfItsOwn(t *testing.T) {
	t.Parallel()
	answering := func(status int, body, contentType string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	const problemType = "application/problem+json"
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(hanging.Close)
	file := textFile(t, pair("cli", 1, 1))
	for _, test := range []struct {
		name, url string
		code      int
	}{
		{"nobody listens", "http://" + shared.ports.free(t), 6},
		{"its name does not resolve", "http://nobody.invalid", 6},
		{"its database is away", answering(503, `{"type":"x","title":"x","status":503,"detail":"x","code":"database_unavailable","correlationId":"c"}`, problemType), 6},
		{"it hangs", hanging.URL, 6},
		{"it has a fault", answering(500, `{"type":"x","title":"x","status":500,"detail":"x","code":"internal","correlationId":"c"}`, problemType), 1},
		{"it is something else", answering(200, "<html>", "text/html"), 6},
		{"it is a gateway", answering(404, `{"type":"x","title":"x","status":404,"detail":"x","code":"no_route","correlationId":"c"}`, problemType), 6},
		{"it leads elsewhere", answering(302, "", "text/plain"), 6},
		{"it speaks something else", "http://" + serveBytes(t, "no HTTP\r\n\r\n"), 6},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, args := range [][]string{{"routes", "get", "cli"}, {"routes", "put", "cli", file}} {
				got := command(t, test.url, "", append(args, "--timeout", "500ms")...)
				if test.name == "it speaks something else" && got.code == 1 {
					continue // an answer that cannot be understood
				}
				wantCode(t, got, test.code)
			}
		})
	}
}

func TestACommandShowsItsTokenAndNeverPrintsIt(t *testing.T) {
	t.Parallel()
	certFile, keyFile := certificate(t)
	base := "https://" + guarded(t, "SPECIALROUTES_TLS_CERT="+certFile, "SPECIALROUTES_TLS_KEY="+keyFile)
	token := func(secret string) string { return textFile(t, secret+"\n") }
	file := textFile(t, pair("lab-cli", 1, 1))
	for _, test := range []struct {
		name string
		args []string
		code int
	}{
		{"a certificate that nobody vouches for", []string{"routes", "list", "--token-file", token(opsSecret)}, 6},
		{"no token", []string{"routes", "list", "--ca-file", certFile}, 4},
		{"a wrong token", []string{"routes", "list", "--ca-file", certFile, "--token-file", token(strings.Repeat("x", 40))}, 4},
		{"a token that may read", []string{"routes", "put", "lab-cli", file, "--ca-file", certFile, "--token-file", token(gateSecret)}, 4},
		{"a token of another team", []string{"routes", "put", "other", textFile(t, pair("other", 1, 1)), "--ca-file", certFile, "--token-file", token(teamSecret)}, 4},
		{"a token that may write", []string{"routes", "put", "lab-cli", file, "--ca-file", certFile, "--token-file", token(teamSecret)}, 0},
		{"a token that may read, reading", []string{"routes", "get", "lab-cli", "--ca-file", certFile, "--token-file", token(gateSecret)}, 0},
		{"a token that may not see all gateways", []string{"gateways", "--ca-file", certFile, "--token-file", token(teamSecret)}, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := command(t, base, "", test.args...)
			if test.name == "a certificate that nobody vouches for" && got.code == 1 {
				return // asking again does not help
			}
			wantCode(t, got, test.code)
			if strings.Contains(got.stdout+got.stderr, "0123456789abcdef") {
				t.Errorf("it prints a secret: %+v", got)
			}
		})
	}
}

func TestWaitEndsWithSevenWhenAGatewayIsBehindAndNamesIt(t *testing.T) {
	t.Parallel()
	l, gateways := fleet(t)
	wantCode(t, command(t, l.url, "", "routes", "weights", labService, "old=0", "new=1", "--wait"), 0)
	for _, g := range gateways {
		wantRouted(t, g.get(t, "/x"), "new", "draw")
	}
	gateways[1].gateway.signal(t, syscall.SIGKILL)
	gateways[1].gateway.wait(t, 10*time.Second)
	got := command(t, l.url, "", "routes", "weights", labService, "old=1", "new=0", "--wait")
	wantCode(t, got, 7)
	if !strings.Contains(got.stdout+got.stderr, "lab-2") || strings.Contains(got.stdout+got.stderr, "lab-3") {
		t.Errorf("it names %q, %q; want lab-2 alone", got.stdout, got.stderr)
	}
	wantRouted(t, gateways[0].get(t, "/x"), "old", "draw")
	wantRouted(t, gateways[2].get(t, "/x"), "old", "draw")
}

func TestOverridesAreSignedByTheCommandLine(t *testing.T) {
	t.Parallel()
	keys := keyFile(t, presentKey, pastKey)
	l := newLab(t, labOptions{config: map[string]string{"overrideKeys": fmt.Sprintf("%q", keys)}})
	l.set(t, l.record(1, 0))
	nobody := "http://" + shared.ports.free(t) // no server is asked
	sign := func(args ...string) ran { return command(t, nobody, "", append([]string{"override"}, args...)...) }
	got := sign("--service", labService, "--variant", "new", "--for", "2h", "--keys", keys)
	wantCode(t, got, 0)
	token := strings.TrimSuffix(got.stdout, "\n")
	if strings.ContainsAny(token, " \n") || !strings.HasPrefix(token, "v1."+labService+".new.") {
		t.Errorf("it prints %q", got.stdout)
	}
	wantRouted(t, l.get(t, "/x", [2]string{"Route-Override", token}), "new", "override")
	wantRouted(t, l.get(t, "/x", [2]string{"Cookie", "route-override=" + token}), "new", "override")
	for name, args := range map[string][]string{
		"for more than 30 days":   {"--service", labService, "--variant", "new", "--for", "721h", "--keys", keys},
		"for no time":             {"--service", labService, "--variant", "new", "--for", "0s", "--keys", keys},
		"for a time that is none": {"--service", labService, "--variant", "new", "--for", "long", "--keys", keys},
		"a variant that is none":  {"--service", labService, "--variant", "New", "--for", "1h", "--keys", keys},
		"no service":              {"--variant", "new", "--for", "1h", "--keys", keys},
		"no keys":                 {"--service", labService, "--variant", "new", "--for", "1h"},
	} {
		if got := sign(args...); got.code != 2 || got.stdout != "" {
			t.Errorf("%s: %+v, want exit code 2 and no token", name, got)
		}
	}
	for name, file := range map[string]string{"a file that is not there": "/nowhere/keys", "a short secret": textFile(t, "a short\n"), "an empty file": textFile(t, "")} {
		if got := sign("--service", labService, "--variant", "new", "--for", "1h", "--keys", file); got.code != 1 || got.stdout != "" || strings.Contains(got.stderr, "short") && name == "a short secret" && strings.Contains(got.stderr, "a short") {
			t.Errorf("%s: %+v, want exit code 1 and no token", name, got)
		}
	}
}

func TestACommandLineThatIsWrongSendsNothing(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.WriteHeader(http.StatusTeapot)
	}))
	defer s.Close()
	for _, args := range [][]string{
		{"routes", "put", "cli", "--dryrun"}, {"routes", "delete"}, {"routes", "weights", "cli", "old"}, {"routes", "weights", "cli", "old=1", "old=2"},
		{"routes", "weights", "cli", "old=1.5"}, {"routes", "rollback", "cli", "0"}, {"gateways", "all"},
	} {
		got := command(t, s.URL, "", args...)
		wantCode(t, got, 2)
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}
