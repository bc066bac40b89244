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

	"specialroutes.example/gateway/internal/balance"
	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/records"
	"specialroutes.example/gateway/internal/records/recordstest"
	"specialroutes.example/gateway/internal/registry"
	"specialroutes.example/gateway/internal/registry/overlay"
	"specialroutes.example/gateway/internal/registry/static"
	"specialroutes.example/services/routing"
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
		Registry: static.New(c.Instances),
		Balancer: balance.New(balance.Options{Now: func() time.Time { return now }}), Metrics: prometheus.NewRegistry(), Draining: new(service.Draining),
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
	want := map[string]any{
		"id": "a1", "address": "127.0.0.1:1", "labels": map[string]any{"version": "2"}, "circuit": "closed", "active": 0.0,
		"origins": map[string]any{"version": map[string]any{"from": "settings"}},
	}
	if got := body["services"].(map[string]any)["a"].([]any); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("/instances: got %v, want %v", got, want)
	}
	if aside := body["setAside"].([]any); len(aside) != 1 || aside[0].(map[string]any)["id"] != "a2" {
		t.Errorf("/instances: set aside: got %v, want a2", aside)
	}
}

// follow fills the fixture's records with an answer of specialroutes.
func (f *fixture) follow(t *testing.T, answer string) {
	t.Helper()
	server := recordstest.NewScript(t)
	server.Then(recordstest.JSON(answer))
	follower, err := records.NewFollower(records.Options{URLs: []string{server.URL}, Now: f.Now}, f.Records)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- follower.Run(t.Context()) }()
	<-follower.Ready()
	f.Status = follower.Status
	t.Cleanup(func() { // the test's context has ended by then
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestRecordsInForceAndSetAsideAreShown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.check(t, "/records", 200, `{"source":"none","ageSeconds":null,"cursor":"","inForce":0,"setAside":0,"errors":0,"records":[]}`)
	f.follow(t, recordstest.Full("3.a",
		recordstest.Book("a", 2, 5, "http://127.0.0.1:1"), recordstest.Item("b", 3, `{"service":"b","active":true,"x":1}`)))
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
}

// inConsul is a registry whose instance has labels from tags and from meta.
type inConsul struct{ registry.Registry }

func (inConsul) Load() *registry.Snapshot {
	return registry.NewSnapshot(map[string][]registry.Instance{"a": {{
		ID: "a1", Address: "127.0.0.1:1", FromMeta: []string{"zone"}, Warnings: []string{"odd"},
		Labels: map[string]string{"version": "1", "zone": "x", "app": "beta"},
	}}, "b": {{ID: "b1", Address: "127.0.0.1:0"}}})
}

func (inConsul) Status() registry.Status {
	return registry.Status{Source: registry.File, Since: time.Unix(400, 0)}
}

func TestInstancesTellWhereTheirLabelsComeFrom(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Config.Registry.Consul.Address = "consul:8500"
	const ends = `"ends":"1970-01-01T01:00:00Z"`
	f.follow(t, recordstest.Envelope("9.a", true, nil, nil, []string{
		recordstest.LabelItem("a", "a1", 5, `"labels":{"version":null,"zone":"y","lane":"alice"},`+ends),
		recordstest.LabelItem("a", "away", 6, `"labels":{"version":"2"},`+ends),
		recordstest.LabelItem("a", "over", 7, `"labels":{"version":"2"},"ends":"1970-01-01T00:10:00Z"`),
		recordstest.LabelItem("b", "bad", 8, `"labels":{"a=b":"2"},`+ends),
	}, nil))
	f.Registry = overlay.New(inConsul{}, func() *records.Overlays { return f.Records.Load().Overlays() }, f.Now)
	p := f.Balancer.Select(balance.Want{Service: "a", Instances: f.Registry.Load()}).Next()
	p.ConnectFailed()
	code, body := f.get(t, "/instances")
	aside := body["changesSetAside"].([]any)[0].(map[string]any)
	if reason := aside["reason"].(string); aside["id"] != "bad" || aside["revision"] != 8.0 || !strings.Contains(reason, `without "="`) {
		t.Errorf("set aside: got %v", aside)
	}
	delete(body, "changesSetAside")
	want := `{"source":"file","ageSeconds":600,"endpoints":[],
	"setAside":[{"service":"b","id":"b1","reason":"the address \"127.0.0.1:0\" has no usable port"}],
	"changesWaiting":[{"service":"a","id":"away","revision":6,` + ends + `}],
	"services":{"a":[{"id":"a1","address":"127.0.0.1:1","labels":{"app":"beta","zone":"y","lane":"alice"},"warnings":["odd"],
	"circuit":"closed","failures":1,"active":1,"origins":{
	"app":{"from":"tag"},
	"version":{"from":"operator","hidden":true,"registered":"1","revision":5,` + ends + `},
	"zone":{"from":"operator","registered":"x","revision":5,` + ends + `},
	"lane":{"from":"operator","revision":5,` + ends + `}}}]}}`
	var wanted map[string]any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if code != 200 || !reflect.DeepEqual(body, wanted) {
		t.Errorf("got %d %v\nwant %v", code, body, wanted)
	}
	if _, one := f.get(t, "/instances?service=b"); len(one["services"].(map[string]any)) != 0 || len(one["setAside"].([]any)) != 1 {
		t.Errorf("/instances?service=b: got %v", one)
	}
}

func TestOpenCircuitsOfInstancesAndEndpointsAreShown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	endpoint := "http://127.0.0.1:9"
	rt, err := routing.Compile(&routing.Record{
		Service: "a", Active: new(true), Default: new("old"), OnUnavailable: new("fail"),
		Variants: []routing.Variant{{Name: "old", Weight: new(int64(1))}, {Name: "new", Weight: new(int64(1)), Endpoint: &endpoint}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for variant := range 2 {
		for range 3 {
			p := f.Balancer.Select(balance.Want{Service: "a", Route: rt, Variant: variant, Instances: f.Registry.Load()}).Next()
			p.TimedOut()
			p.Release()
		}
	}
	_, body := f.get(t, "/instances")
	until := "1970-01-01T00:16:50Z"
	e := map[string]any{"endpoint": endpoint, "circuit": "open", "failures": 3.0, "active": 0.0, "until": until}
	if got := body["endpoints"].([]any); len(got) != 1 || !reflect.DeepEqual(got[0], e) {
		t.Errorf("endpoints: got %v, want %v", got, e)
	}
	a1 := body["services"].(map[string]any)["a"].([]any)[0].(map[string]any)
	if a1["circuit"] != "open" || a1["failures"] != 3.0 || a1["until"] != until {
		t.Errorf("instance: got %v, want it open", a1)
	}
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
	return registry.Status{
		Source: registry.Live, Since: time.Unix(940, 0), Errors: 7, LastError: "No cluster leader",
		LastErrorAt: time.Unix(990, 0), FailingSince: time.Unix(945, 0),
	}
}

func TestARegistryThatWasAwayIsTold(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Registry = away{}
	f.check(t, "/instances", 200, `{"source":"live","ageSeconds":60,"errors":7,"lastError":"No cluster leader",
		"lastErrorAt":"1970-01-01T00:16:30Z","failingSince":"1970-01-01T00:15:45Z","setAside":[],
		"endpoints":[],"changesWaiting":[],"changesSetAside":[],
		"services":{"a":[{"id":"a1","address":"127.0.0.1:1","circuit":"closed","active":0,"unconfirmed":true},
		{"id":"a2","address":"127.0.0.1:2","circuit":"closed","active":0}]}}`)
	close(f.opened)
	f.check(t, "/readyz", 200, `{"status":"ready","records":"none","registry":"live","ageSeconds":{"records":null,"registry":60},
		"failingSince":{"registry":"1970-01-01T00:15:45Z"}}`)
}
