package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"specialroutes.example/gateway/internal/records/recordstest"
)

func TestMain(m *testing.M) {
	if file := os.Getenv(profileVariable); file != "" {
		serveProfiled(file)
		return
	}
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// buffer is what a process writes, readable at any time.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// gateway is one that runs inside the test.
type gateway struct {
	data, admin    string // base URLs; data is "" until the port is open
	stdout, stderr *buffer
	opened         chan struct{} // closed when the data port is open
	stop           func() error  // ends it, once, and returns what it ended with
}

// start runs a gateway with settings in YAML until the test ends, on free ports.
func start(t *testing.T, settings string) *gateway {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	settings = "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nid: gw-1\n" + settings
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	g := &gateway{stdout: new(buffer), stderr: new(buffer), opened: make(chan struct{})}
	listening := make(chan struct{})
	p := program{stdout: g.stdout, stderr: g.stderr, onListen: func(name string, addr net.Addr) {
		if name == "admin" {
			g.admin = "http://" + addr.String()
			close(listening)
			return
		}
		g.data = "http://" + addr.String()
		close(g.opened)
	}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx, []string{"--config", file}) }()
	g.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		if err := g.stop(); err != nil {
			t.Errorf("the gateway ended with %v\n%s", err, g.stderr)
		}
	})
	select {
	case <-listening:
	case err := <-ended:
		ended <- err
		t.Fatalf("the gateway ended at once: %v\n%s", err, g.stderr)
	}
	return g
}

// open waits for the data port.
func (g *gateway) open(t *testing.T) *gateway {
	t.Helper()
	select {
	case <-g.opened:
	case <-time.After(20 * time.Second):
		t.Fatalf("the data port does not open\n%s", g.stderr)
	}
	return g
}

// client keeps no connections, so that none outlives a test.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}

// get returns the status, the head and the body.
func get(t *testing.T, url string) (int, http.Header, string) {
	t.Helper()
	res, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(body)
}

// eventually polls until condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// upstream answers with its name and what it was asked for.
func upstream(t *testing.T, name string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, name, " ", r.URL.RequestURI())
	}))
	t.Cleanup(s.Close)
	return s
}

// host is the authority of a server.
func host(s *httptest.Server) string { return strings.TrimPrefix(s.URL, "http://") }

// settings are those of one route with one instance.
func settings(feed string, old *httptest.Server, more string) string {
	return fmt.Sprintf(`
routes: [{prefix: /api/org, service: org}]
instances: {org: [{id: old-1, address: %q}]}
records: {url: %q}
drain: {delay: 0s, limit: 5s}
`, host(old), feed) + more
}

func TestACallIsSplitLoggedAndCounted(t *testing.T) {
	t.Parallel()
	feed, before, after := recordstest.NewFeed(t), upstream(t, "OLD"), upstream(t, "NEW")
	feed.Put("org", recordstest.BookRecord("org", 5, after.URL))
	g := start(t, settings(feed.URL, before, "")).open(t)

	const calls = 400
	got := make(map[string]int)
	for range calls {
		status, head, body := get(t, g.data+"/api/org/v1/x?q=%2F")
		if status != http.StatusOK || head.Get("tmx-correlation-id") == "" {
			t.Fatalf("got %d %v", status, head)
		}
		got[head.Get("X-Route-Variant")+" "+head.Get("X-Route-Reason")+": "+body]++
	}
	const stays, goes = "default draw: OLD /v1/x?q=%2F", "alternate draw: NEW /v1/x?q=%2F"
	// Five standard deviations of 400 fair draws are 50.
	if n := got[stays]; n < 150 || n > 250 || n+got[goes] != calls {
		t.Errorf("got %v, want %q and %q, half each", got, stays, goes)
	}
	_, _, metrics := get(t, g.admin+"/metrics")
	for _, want := range []string{
		fmt.Sprintf(`gateway_requests_total{class="2xx",service="org",variant="default"} %d`, got[stays]),
		fmt.Sprintf(`gateway_requests_total{class="2xx",service="org",variant="alternate"} %d`, got[goes]),
		`gateway_records_in_force 1`, `gateway_records_cursor_revision 1`, `gateway_build_info{`, `go_goroutines`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	if err := g.stop(); err != nil {
		t.Errorf("the gateway ended with %v", err)
	}
	checkLines(t, g.stdout.String(), calls, map[string]string{"default": "old-1", "alternate": host(after)})
}

// checkLines checks the access log of calls that went well.
func checkLines(t *testing.T, log string, calls int, instances map[string]string) {
	t.Helper()
	lines := 0
	for line := range strings.Lines(log) {
		lines++
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		variant, _ := e["variant"].(string)
		if e["instance"] != instances[variant] || e["status"] != 200.0 || e["path"] != "/api/org/v1/x" || e["service"] != "org" ||
			e["reason"] != "draw" || e["client"] != "127.0.0.1" || e["correlationId"] == "" || e["correlationReplaced"] != true {
			t.Fatalf("unexpected line: %s", line)
		}
		if e["duration"].(float64) < e["upstream"].(float64) || e["upstream"].(float64) <= 0 {
			t.Fatalf("durations that cannot be: %s", line)
		}
	}
	if lines != calls {
		t.Errorf("got %d lines of access log, want %d", lines, calls)
	}
}

func TestAChangeIsInForceInUnderASecond(t *testing.T) {
	t.Parallel()
	feed, before, after := recordstest.NewFeed(t), upstream(t, "OLD"), upstream(t, "NEW")
	feed.Put("org", recordstest.BookRecord("org", 10, after.URL))
	g := start(t, settings(feed.URL, before, "")).open(t)
	const changes = 20
	var took []time.Duration
	for n := range changes {
		want, stay := "NEW", 0
		if n%2 == 1 {
			want, stay = "OLD", 10
		}
		feed.Put("org", recordstest.BookRecord("org", stay, after.URL))
		written := time.Now()
		eventually(t, want, func() bool {
			_, _, body := get(t, g.data+"/api/org/")
			return strings.HasPrefix(body, want)
		})
		took = append(took, time.Since(written))
	}
	if slowest := slices.Max(took); slowest > time.Second {
		t.Errorf("the slowest change took %s, want less than a second", slowest)
	}
	feed.Delete("org")
	eventually(t, "no record", func() bool {
		_, head, _ := get(t, g.data+"/api/org/")
		return head.Get("X-Route-Reason") == "no-record"
	})
}

func TestReadinessAndRecordsFollowTheLifeOfTheGateway(t *testing.T) {
	t.Parallel()
	script, before := recordstest.NewScript(t), upstream(t, "OLD")
	g := start(t, settings(script.URL, before, ""))
	status, _, body := get(t, g.admin+"/readyz")
	if status != http.StatusServiceUnavailable || !strings.Contains(body, `"records":"none"`) {
		t.Errorf("/readyz before the first answer: got %d %s", status, body)
	}
	select {
	case <-g.opened:
		t.Error("the data port is open before there are records")
	default:
	}
	script.Then(recordstest.JSON(recordstest.Full("1.a", recordstest.Item("org", 1, `{"service":"org","active":1}`))))
	g.open(t)
	status, _, body = get(t, g.admin+"/readyz")
	if status != http.StatusOK || !strings.Contains(body, `"records": "live"`) || !strings.Contains(body, `"registry": "live"`) {
		t.Errorf("/readyz: got %d %s", status, body)
	}
	if _, _, body := get(t, g.admin+"/records"); !strings.Contains(body, `"setAside": 1`) || !strings.Contains(body, "/active") {
		t.Errorf("/records: got %s, want the reason", body)
	}
	if _, head, body := get(t, g.data+"/api/org/x"); head.Get("X-Route-Reason") != "no-record" || body != "OLD /x" {
		t.Errorf("with a record that never was good: got %v %s", head, body)
	}
}

func TestWithoutSpecialroutesTheFileIsRoutedBy(t *testing.T) {
	t.Parallel()
	feed, before, after := recordstest.NewFeed(t), upstream(t, "OLD"), upstream(t, "NEW")
	feed.Put("org", recordstest.BookRecord("org", 0, after.URL))
	file := filepath.Join(t.TempDir(), "records.json")
	const more = "log: {access: false}\n"
	with := func(url string) string {
		return strings.Replace(settings(url, before, more), "records: {", fmt.Sprintf("records: {file: %q, ", file), 1)
	}
	if err := start(t, with(feed.URL)).open(t).stop(); err != nil {
		t.Fatal(err)
	}
	g := start(t, with("http://127.0.0.1:1")).open(t)
	if status, _, body := get(t, g.admin+"/readyz"); status != http.StatusOK || !strings.Contains(body, `"records": "file"`) {
		t.Errorf("/readyz: got %d %s", status, body)
	}
	if _, _, body := get(t, g.data+"/api/org/x"); body != "NEW /x" {
		t.Errorf("got %s, want NEW", body)
	}
	if g.stdout.String() != "" {
		t.Errorf("access: false: got lines all the same: %s", g.stdout)
	}
}

func TestTheDataPortOpensAfterTenSecondsWithoutAnything(t *testing.T) {
	t.Parallel()
	script, before := recordstest.NewScript(t), upstream(t, "OLD") // the script answers nothing
	started := time.Now()
	g := start(t, settings(script.URL, before, "")).open(t)
	if took := time.Since(started); took < 9*time.Second || took > 15*time.Second {
		t.Errorf("the data port opened after %s, want 10 s", took)
	}
	if status, _, body := get(t, g.admin+"/readyz"); status != http.StatusOK || !strings.Contains(body, `"records": "none"`) {
		t.Errorf("/readyz: got %d %s", status, body)
	}
	if _, head, body := get(t, g.data+"/api/org/x"); body != "OLD /x" || head.Get("X-Route-Reason") != "no-record" {
		t.Errorf("got %s, %v", body, head)
	}
}

func TestTheDataPortHasNothingButItsRoutes(t *testing.T) {
	t.Parallel()
	feed, before := recordstest.NewFeed(t), upstream(t, "OLD")
	g := start(t, settings(feed.URL, before, "")).open(t)
	for _, path := range []string{"/", "/healthz", "/readyz", "/metrics", "/records", "/debug/pprof/", "/debug/vars", "/api", "/api/organization"} {
		status, head, _ := get(t, g.data+path)
		if status != http.StatusNotFound || head.Get("Content-Type") != "application/problem+json" {
			t.Errorf("GET %s: got %d %s, want a 404 problem", path, status, head.Get("Content-Type"))
		}
	}
	for _, path := range []string{"/debug/pprof/", "/debug/vars"} {
		if status, _, _ := get(t, g.admin+path); status != http.StatusNotFound {
			t.Errorf("GET %s on the admin port: got %d, want 404", path, status)
		}
	}
}

func TestTheStopIsSeenBeforeThePortCloses(t *testing.T) {
	t.Parallel()
	feed, before := recordstest.NewFeed(t), upstream(t, "OLD")
	s := strings.Replace(settings(feed.URL, before, ""), "delay: 0s", "delay: 1s", 1)
	g := start(t, s).open(t)
	ended := make(chan error, 1)
	go func() { ended <- g.stop() }()
	eventually(t, "/readyz is 503", func() bool {
		status, _, body := get(t, g.admin+"/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(body, "draining")
	})
	res, err := client.Get(g.data + "/api/org/x")
	if err != nil {
		t.Fatalf("within the delay: %v", err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK || !res.Close {
		t.Errorf("within the delay: got %d, Connection: close %t; want 200 and true", res.StatusCode, res.Close)
	}
	if err := <-ended; err != nil {
		t.Errorf("the gateway ended with %v", err)
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	routes := "GATEWAY_ROUTES=[{prefix: /a, service: a}]"
	for name, test := range map[string]struct {
		args, environ []string
		out, err      string // parts
	}{
		"version":           {args: []string{"version"}, out: "gateway "},
		"check":             {args: []string{"check"}, environ: []string{routes}, out: "the settings can be used: 1 routes"},
		"check and Consul":  {args: []string{"check", "--registry-consul-address=c:8500"}, environ: []string{routes}, out: "instances from Consul at c:8500"},
		"check refuses":     {args: []string{"check"}, err: "routes: at least one"},
		"check reads files": {args: []string{"check", "--records-ca-file=/nonexistent"}, environ: []string{routes}, err: "/nonexistent"},
		"help":              {args: []string{"--help"}, out: "-records-url"},
		"unknown":           {args: []string{"run"}, err: `there is no command "run"`},
		"unhealthy":         {args: []string{"healthcheck", "--admin=127.0.0.1:1"}, err: "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := new(buffer)
			err := program{environ: test.environ, stdout: out, stderr: io.Discard}.run(t.Context(), test.args)
			if !strings.Contains(out.String(), test.out) {
				t.Errorf("got output %q, want it to contain %q", out, test.out)
			}
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("got error %v, want one with %q", err, test.err)
			}
		})
	}
}

func TestHealthcheckAsksTheAdminPort(t *testing.T) {
	t.Parallel()
	feed, before := recordstest.NewFeed(t), upstream(t, "OLD")
	g := start(t, settings(feed.URL, before, ""))
	environ := []string{"GATEWAY_ADMIN=" + strings.TrimPrefix(g.admin, "http://"), "GATEWAY_ROUTES=broken"}
	if err := (program{environ: environ, stdout: io.Discard}).run(t.Context(), []string{"healthcheck"}); err != nil {
		t.Errorf("healthcheck: %v", err)
	}
}
