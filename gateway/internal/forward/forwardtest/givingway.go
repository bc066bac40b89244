package forwardtest

import (
	"net/http"
	"strings"
	"testing"

	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/services/routing"
)

func (s *suite) testGivingWay(t *testing.T) {
	t.Run("the alternate cannot be connected to", s.testConnectFallback)
	t.Run("and the record forbids the default", s.testConnectFail)
	t.Run("one of two instances is dead", s.testDeadInstance)
	t.Run("no instance at all", s.testNoInstance)
	t.Run("nobody can be connected to", s.testAllDead)
	t.Run("link-local addresses are not dialled", s.testLinkLocal)
	t.Run("what is in flight is counted to the end", s.testActive)
	t.Run("a hundred calls to a dead alternate", s.testCircuit)
}

// Row 86 and R1, R3: the body goes whole to who answers.
func (s *suite) testConnectFallback(t *testing.T) {
	up := newUpstream(t, framingOf)
	g := s.gateway(t, setup{
		instances: []string{up.address()},
		records:   []*routing.Record{bookRecord("http://"+closedPort(t), 5)},
		draw:      always(10),
	})
	body := strings.Repeat("0123456789", 100_000)
	a := g.request(t, head("PUT", "/x", "Content-Length: 1000000")+body)
	if a.StatusCode != 200 || !strings.HasPrefix(a.body, `PUT 1000000 [] ["1000000"] 1000000 `) {
		t.Fatalf("answer = %d %q", a.StatusCode, a.body)
	}
	for name, want := range map[string]string{
		"X-Route-Variant": "old", "X-Route-Reason": "draw", "X-Route-Fallback": "wanted=new; reason=connect",
	} {
		if got := a.Header.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	e := g.entries.only(t)
	if e.Fallback != "wanted=new; reason=connect" || e.Variant != "old" || e.Instance != "i1" || e.Retries != 1 || e.Status != 200 {
		t.Errorf("logged %+v", e)
	}
}

func (s *suite) testConnectFail(t *testing.T) {
	up := newUpstream(t, ok("old"))
	r := bookRecord("http://"+closedPort(t), 5)
	r.OnUnavailable = new(routing.OnUnavailableFail)
	g := s.gateway(t, setup{instances: []string{up.address()}, records: []*routing.Record{r}, draw: always(10)})
	g.get(t, "/x").refused(t, 502, "connect_failed")
	if n := up.calls.Load(); n != 0 {
		t.Errorf("the default was called %d times, want 0", n)
	}
	if e := g.entries.only(t); e.Variant != "new" || e.Code != "connect_failed" {
		t.Errorf("logged %+v", e)
	}
}

// R6: a retry goes to another instance. Nothing gave way, so nothing says so.
func (s *suite) testDeadInstance(t *testing.T) {
	up := newUpstream(t, echo)
	g := s.gateway(t, setup{instances: []string{closedPort(t), up.address()}})
	for range 8 {
		a := g.request(t, head("POST", "/x", "Content-Length: 5")+"hello")
		a.is(t, 200, "hello")
		if got := a.Header.Get("X-Route-Fallback"); got != "" {
			t.Errorf("X-Route-Fallback = %q, want none", got)
		}
	}
	retries := 0
	for _, e := range g.entries.wait(t, 8) {
		retries += e.Retries
	}
	if retries != 3 {
		t.Errorf("%d retries in 8 calls, want 3: then the circuit is open", retries)
	}
}

func (s *suite) testNoInstance(t *testing.T) {
	r := &routing.Record{Service: service, Active: new(true), LabelRules: []routing.LabelRule{
		{Header: "version", Label: "version", Mode: "lenient"},
	}}
	g := s.gateway(t, setup{records: []*routing.Record{r}})
	a := g.get(t, "/x", "version: 2.0.0")
	a.refused(t, 503, "no_instance")
	p := a.problem(t)
	if p["service"] != service || p["variant"] != "default" {
		t.Errorf("the problem names service %v and variant %v", p["service"], p["variant"])
	}
	if labels, _ := p["labels"].(map[string]any); labels["version"] != "2.0.0" {
		t.Errorf("the problem names labels %v, want version 2.0.0", p["labels"])
	}
	steps, _ := p["steps"].([]any)
	if len(steps) == 0 || steps[0].(map[string]any)["left"] != 0.0 {
		t.Errorf("steps = %v, want the count left at each", p["steps"])
	}
}

func (s *suite) testAllDead(t *testing.T) {
	g := s.gateway(t, setup{
		instances: []string{closedPort(t), closedPort(t)},
		records:   []*routing.Record{bookRecord("http://"+closedPort(t), 5)},
		draw:      always(10),
	})
	g.get(t, "/x").refused(t, 502, "connect_failed")
	if e := g.entries.only(t); e.Retries != 1 {
		t.Errorf("%d retries, want 1: the alternate, then one of the default", e.Retries)
	}
}

// Row 104: whatever name or spelling leads there.
func (s *suite) testLinkLocal(t *testing.T) {
	for _, address := range []string{"169.254.169.254:80", "[::ffff:169.254.169.254]:80", "[fe80::1]:80"} {
		g := s.gateway(t, setup{instances: []string{address}})
		g.get(t, "/x").refused(t, 502, "connect_failed")
		if e := g.entries.only(t); e.Duration > g.connectLimit()/2 {
			t.Errorf("%s: refused after %v, so it was dialled", address, e.Duration)
		}
	}
}

// Every way that a request ends gives its place at the instance back.
func (s *suite) testActive(t *testing.T) {
	up := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/cut" {
			panic(http.ErrAbortHandler)
		}
	})
	g := s.gateway(t, setup{instances: []string{up.address()}, most: 1, config: func(c *config.Config) { c.Limits.BodyBytes = 1 }})
	for i, request := range []string{
		head("GET", "/x"), head("POST", "/cut", "Content-Length: 1") + "x", head("GET", "/cut"), head("GET", "/x"),
		head("POST", "/x", "Transfer-Encoding: chunked") + "2\r\nxx\r\n0\r\n\r\n", head("POST", "/x", "Transfer-Encoding: chunked") + "zz\r\n",
		head("GET", "/x"),
	} {
		g.request(t, request)
		if e := g.entries.wait(t, i+1)[i]; e.Fallback != "" {
			t.Errorf("%.20q: fallback %q, so an earlier request still has its place", request, e.Fallback)
		}
	}
}

// Row 89: a dead alternate costs a connect until its circuit is open, not one a
// call.
func (s *suite) testCircuit(t *testing.T) {
	up := newUpstream(t, ok("old"))
	g := s.gateway(t, setup{
		instances: []string{up.address()},
		records:   []*routing.Record{bookRecord("http://"+closedPort(t), 0)},
		draw:      always(10),
		config:    func(*config.Config) {},
	})
	for range 100 {
		g.get(t, "/x").is(t, 200, "old")
	}
	reasons := make(map[string]int)
	for _, e := range g.entries.wait(t, 100) {
		reasons[e.Fallback]++
	}
	if reasons["wanted=new; reason=connect"] != 3 || reasons["wanted=new; reason=tripped"] != 97 {
		t.Errorf("fallbacks = %v, want 3 for connect, then tripped", reasons)
	}
}
