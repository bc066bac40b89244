package forwardtest

import (
	"testing"
	"time"

	"specialroutes.example/gateway/internal/filter"
)

func (s *suite) testObservation(t *testing.T) {
	t.Run("of an answered request", s.testEntry)
	t.Run("of a refused request", s.testRefusedEntry)
	t.Run("of a request whose filter panics", s.testPanic)
}

func (s *suite) testEntry(t *testing.T) {
	up := newUpstream(t, ok("hello"))
	g := s.gateway(t, setup{instances: []string{up.address()}})
	before := time.Now()
	g.request(t, "POST "+prefix+"/a%2Fb?secret=1 HTTP/1.1\r\nHost: Shop:1\r\nContent-Length: 3\r\ntmx-correlation-id: mine\r\n\r\nabc").is(t, 200, "hello")
	e := g.entries.only(t)
	if e.Method != "POST" || e.Host != "Shop:1" || e.Path != prefix+"/a%2Fb" || e.Route != prefix || e.Service != service ||
		e.Variant != "default" || e.Reason != "no-record" || e.Instance != "i1" || e.Status != 200 || e.BytesIn != 3 ||
		e.BytesOut != 5 || e.CorrelationID != "mine" || e.CorrelationReplaced || e.Code != "" || e.Fallback != "" {
		t.Errorf("logged %+v", e)
	}
	if e.Time.Before(before) || e.Upstream <= 0 || e.Duration < e.Upstream {
		t.Errorf("logged at %v, %v of which %v upstream", e.Time, e.Duration, e.Upstream)
	}
}

func (s *suite) testRefusedEntry(t *testing.T) {
	g := s.gateway(t, setup{})
	c := g.dial(t)
	for i, tt := range []struct {
		path, code string
		status     int
	}{{"/elsewhere", "no-route", 404}, {prefix + "/%00?x", "bad-path", 400}, {prefix, "no-instance", 503}} {
		c.send("GET " + tt.path + " HTTP/1.1\r\nHost: a\r\n\r\n")
		c.read("GET").refused(t, tt.status, tt.code)
		e := g.entries.wait(t, i+1)[i]
		if e.Status != tt.status || e.Code != tt.code || e.CorrelationID == "" || e.BytesOut == 0 {
			t.Errorf("logged %+v, want status %d and code %s", e, tt.status, tt.code)
		}
	}
}

// A fault of the gateway's own is 500, logged once, and takes nothing with it.
func (s *suite) testPanic(t *testing.T) {
	g := s.gateway(t, setup{filters: []filter.Filter{
		filter.Pre(0, "panic", func(*filter.Exchange) error { panic("oops") }),
		filter.Post(0, "response", func(ex *filter.Exchange) { ex.Answer.Set("X-Post", "1") }),
	}})
	for i := range 2 {
		a := g.get(t, "/x")
		if a.StatusCode != 500 || a.Header.Get("X-Post") != "1" {
			t.Errorf("answer = %d %v", a.StatusCode, a.Header)
		}
		if e := g.entries.wait(t, i+1)[i]; e.Status != 500 || e.Code != "internal" {
			t.Errorf("logged %+v", e)
		}
	}
}
