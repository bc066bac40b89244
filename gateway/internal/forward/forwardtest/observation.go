package forwardtest

import (
	"io"
	"net/http"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/filter"
)

func (s *suite) testObservation(t *testing.T) {
	t.Run("of an answered request", s.testEntry)
	t.Run("of a refused request", s.testRefusedEntry)
	t.Run("of what is no request", s.testUnreadable)
	t.Run("of an answer that looks like a refusal", s.testLooksUnreadable)
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
	}{{"/elsewhere", "no_route", 404}, {prefix + "/%00?x", "bad_path", 400}, {prefix, "no_instance", 503}} {
		c.send("GET " + tt.path + " HTTP/1.1\r\nHost: a\r\n\r\n")
		c.read("GET").refused(t, tt.status, tt.code)
		e := g.entries.wait(t, i+1)[i]
		if e.Status != tt.status || e.Code != tt.code || e.CorrelationID == "" || e.BytesOut == 0 {
			t.Errorf("logged %+v, want status %d and code %s", e, tt.status, tt.code)
		}
	}
}

// Rows 3, 4, 5, 13 and 38: what is no HTTP is refused in the same words, and
// logged too.
func (s *suite) testUnreadable(t *testing.T) {
	up := newUpstream(t, ok("reached"))
	g := s.gateway(t, setup{instances: []string{up.address()}})
	heads := []string{
		"Transfer-Encoding : chunked", "Content-Length : 5", "Content-Length: +2", "Content-Length: -1", "Content-Length: 0x2",
		"Content-Length: 2, 2", "Content-Length: 1 3", "Content-Length: 99999999999999999999", "Content-Length: 2\r\nContent-Length: 3",
		"X-A: a\x00b", "X\x00A: a", "X A: a", ": x", "no colon", "X-A\x7f: a", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: identity",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked,",
	}
	for i, line := range heads {
		c := g.dial(t)
		if i%2 == 0 { // also where a request came before it
			c.send("GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n")
			c.read("GET").refused(t, 404, "no_route")
		}
		c.send("POST " + prefix + "/x HTTP/1.1\r\nHost: a\r\n" + line + "\r\n\r\n")
		a := c.read("POST")
		if a.StatusCode != 400 && a.StatusCode != 501 {
			t.Errorf("%q: status %d, want 400 or 501", line, a.StatusCode)
			continue
		}
		p := a.problem(t)
		if !c.ended() {
			t.Errorf("%q: the connection goes on", line)
		}
		all := g.entries.wait(t, i+1+i/2+1)
		if e := all[len(all)-1]; e.Status != a.StatusCode || e.Code != p["code"] || !e.Client.IsValid() {
			t.Errorf("%q: logged %+v", line, e)
		}
	}
	if n := up.calls.Load(); n != 0 {
		t.Errorf("the upstream was called %d times, want 0", n)
	}
}

// An answer that looks like a refusal of the server's own is left alone.
func (s *suite) testLooksUnreadable(t *testing.T) {
	const text = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"
	up := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, text)
	})
	g := s.gateway(t, setup{instances: []string{up.address()}})
	g.get(t, "/x").is(t, 200, text)
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
