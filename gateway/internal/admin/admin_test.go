package admin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/records"
	"specialroutes.example/gateway/internal/records/recordstest"
	"specialroutes.example/gateway/internal/registry"
	"specialroutes.example/gateway/internal/registry/static"
	"specialroutes.example/services/service"
)

// fixture is an admin port with something to tell.
type fixture struct {
	Options
	status records.Status
	opened chan struct{}
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	c := config.Default()
	c.Routes = []config.Route{{Prefix: "/api/a", Service: "a", Timeouts: config.Timeouts{Connect: time.Second}}}
	c.Instances = map[string][]config.Instance{
		"a": {{ID: "a1", Address: "127.0.0.1:1", Labels: map[string]string{"version": "2"}}, {ID: "a2", Address: "nowhere"}},
		"b": {},
	}
	now := time.Unix(1000, 0)
	f := &fixture{opened: make(chan struct{}), status: records.Status{Source: records.SourceNone}}
	f.Options = Options{
		Config: &c, Records: new(records.Store), Status: func() records.Status { return f.status },
		Registry: static.New(c.Instances), Metrics: prometheus.NewRegistry(), Draining: new(service.Draining),
		Opened: f.opened, Now: func() time.Time { return now },
	}
	return f
}

// get returns the status and the decoded body.
func (f *fixture) get(t *testing.T, target string) (int, map[string]any) {
	t.Helper()
	w := httptest.NewRecorder()
	New(f.Options).ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
	var body map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatalf("%s: %v in %s", target, err, w.Body)
	}
	return w.Code, body
}

func (f *fixture) check(t *testing.T, target string, status int, want string) {
	t.Helper()
	var wanted map[string]any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if code, got := f.get(t, target); code != status || !reflect.DeepEqual(got, wanted) {
		t.Errorf("%s: got %d %v, want %d %v", target, code, got, status, wanted)
	}
}

func TestReadyFromTheOpenDataPortToTheDrain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	code, body := f.get(t, "/readyz")
	if code != http.StatusServiceUnavailable || body["code"] != "starting" || body["records"] != "none" || body["registry"] != "live" {
		t.Errorf("before the data port is open: got %d %v", code, body)
	}
	close(f.opened)
	f.check(t, "/readyz", 200, `{"status":"ready","records":"none","registry":"live","ageSeconds":{"records":null,"registry":0}}`)
	f.status = records.Status{Source: records.SourceFile, AsOf: f.Now().Add(-90 * time.Minute)}
	f.check(t, "/readyz", 200, `{"status":"ready","records":"file","registry":"live","ageSeconds":{"records":5400,"registry":0}}`)
	f.status = records.Status{Source: records.SourceLive, AsOf: f.Now().Add(-1500 * time.Millisecond)}
	f.check(t, "/readyz", 200, `{"status":"ready","records":"live","registry":"live","ageSeconds":{"records":1.5,"registry":0}}`)
	f.Draining.Begin()
	if code, body := f.get(t, "/readyz"); code != http.StatusServiceUnavailable || body["code"] != "draining" {
		t.Errorf("while draining: got %d %v", code, body)
	}
	f.check(t, "/healthz", 200, `{"status":"ok"}`)
}

func TestRoutesAndInstancesAreShown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.check(t, "/routes", 200, `{"routes":[{"prefix":"/api/a","service":"a","stripPrefix":true,"preserveHost":false,"sensitiveHeaders":[],
		"timeouts":{"connect":"1s","response":"none","idle":"none","tunnel":"none","total":"none"}}]}`)
	_, body := f.get(t, "/instances")
	want := map[string]any{"id": "a1", "address": "127.0.0.1:1", "labels": map[string]any{"version": "2"}}
	if got := body["services"].(map[string]any)["a"].([]any); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("/instances: got %v, want %v", got, want)
	}
	if aside := body["setAside"].([]any); len(aside) != 1 || aside[0].(map[string]any)["id"] != "a2" {
		t.Errorf("/instances: set aside: got %v, want a2", aside)
	}
}

func TestRecordsInForceAndSetAsideAreShown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.check(t, "/records", 200, `{"source":"none","ageSeconds":null,"cursor":"","inForce":0,"setAside":0,"errors":0,"records":[]}`)

	server := recordstest.NewScript(t)
	server.Then(recordstest.JSON(recordstest.Full("3.a",
		recordstest.Book("a", 2, 5, "http://127.0.0.1:1"), recordstest.Item("b", 3, `{"service":"b","active":true,"x":1}`))))
	follower, err := records.NewFollower(records.Options{URLs: []string{server.URL}}, f.Records)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- follower.Run(t.Context()) }()
	<-follower.Ready()
	f.Status = follower.Status
	code, body := f.get(t, "/records")
	if code != 200 || body["source"] != "live" || body["cursor"] != "3.a" || body["inForce"] != 1.0 || body["setAside"] != 1.0 {
		t.Errorf("/records: got %d %v", code, body)
	}
	list := body["records"].([]any)
	a, b := list[0].(map[string]any), list[1].(map[string]any)
	if a["service"] != "a" || a["revision"] != 2.0 || a["record"].(map[string]any)["default"] != "default" {
		t.Errorf("/records: a: got %v", a)
	}
	aside := b["setAside"].(map[string]any)
	if b["record"] != nil || aside["revision"] != 3.0 || !strings.Contains(aside["reason"].(string), "/x") || aside["record"] == nil {
		t.Errorf("/records: b: got %v", b)
	}
	if _, one := f.get(t, "/records?service=b"); len(one["records"].([]any)) != 1 {
		t.Errorf("/records?service=b: got %v", one)
	}
	if code, _ := f.get(t, "/records?service=c"); code != http.StatusNotFound {
		t.Errorf("/records?service=c: got %d, want 404", code)
	}
	t.Cleanup(func() { // the test's context has ended by then
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestThereIsNothingElseAndNothingToWrite(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, path := range []string{"/", "/debug/pprof/", "/debug/vars", "/records/x"} {
		if code, body := f.get(t, path); code != http.StatusNotFound || body["code"] != "not_found" {
			t.Errorf("GET %s: got %d %v, want a 404 problem", path, code, body)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/routes", "/records", "/instances"} {
		w := httptest.NewRecorder()
		New(f.Options).ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, nil))
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s: got %d, Allow %q; want 405", path, w.Code, w.Header().Get("Allow"))
		}
	}
	w := httptest.NewRecorder()
	New(f.Options).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Errorf("GET /metrics: got %d %s", w.Code, w.Header().Get("Content-Type"))
	}
}

// away is a registry that was away, and does not know all it did before.
type away struct{ registry.Registry }

func (away) Load() *registry.Snapshot {
	return registry.NewSnapshot(map[string][]registry.Instance{"a": {{ID: "a1", Address: "127.0.0.1:1", Unconfirmed: true}, {ID: "a2", Address: "127.0.0.1:2"}}})
}

func (away) Status() registry.Status {
	return registry.Status{Source: registry.Live, Since: time.Unix(940, 0), Errors: 7, LastError: "No cluster leader"}
}

func TestARegistryThatWasAwayIsTold(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Registry = away{}
	f.check(t, "/instances", 200, `{"source":"live","ageSeconds":60,"errors":7,"lastError":"No cluster leader","setAside":[],
		"services":{"a":[{"id":"a1","address":"127.0.0.1:1","unconfirmed":true},{"id":"a2","address":"127.0.0.1:2"}]}}`)
	close(f.opened)
	f.check(t, "/readyz", 200, `{"status":"ready","records":"none","registry":"live","ageSeconds":{"records":null,"registry":60}}`)
}
