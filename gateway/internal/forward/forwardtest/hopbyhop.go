package forwardtest

import (
	"strings"
	"testing"

	"specialroutes.example/services/routing"
)

func (s *suite) testHopByHop(t *testing.T) {
	t.Run("of the client stay here", s.testHopRequest)
	t.Run("cannot take ours away", s.testHopCannotTakeOurs)
	t.Run("cannot take the framing away", s.testHopFraming)
	t.Run("a routing header that is one is gone before the decision", s.testHopRouting)
	t.Run("of the upstream stay here", s.testHopAnswer)
}

// Row 28.
func (s *suite) testHopRequest(t *testing.T) {
	up, heads := recording(t)
	g := s.gateway(t, setup{instances: []string{up.address()}})
	g.get(t, "/x", "Connection: keep-alive, X-Gone", "Connection: x-too", "X-Gone: 1", "X-Too: 1", "Keep-Alive: timeout=5",
		"Proxy-Connection: keep-alive", "Proxy-Authorization: x", "Proxy-Authenticate: x", "TE: trailers, deflate",
		"Upgrade: foo", "Proxy: http://evil").is(t, 200, "ok")
	got := <-heads
	for _, name := range []string{"Connection", "X-Gone", "X-Too", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization",
		"Proxy-Authenticate", "Upgrade", "Proxy"} {
		if lines := fieldLines(got, name); lines != nil {
			t.Errorf("%s arrives: %q", name, lines)
		}
	}
	if te := fieldLines(got, "TE"); len(te) != 1 || te[0] != "trailers" {
		t.Errorf("TE = %q, want trailers alone", te)
	}
}

// Rows 22 and 24.
func (s *suite) testHopCannotTakeOurs(t *testing.T) {
	up, heads := recording(t)
	g := s.gateway(t, setup{instances: []string{up.address()}})
	ours := []string{
		"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Proto", "X-Forwarded-Prefix", "Forwarded",
		"X-Real-IP", "X-Route-Variant", "X-Route-Reason", "tmx-correlation-id",
	}
	g.get(t, "/x", "Connection: close, "+strings.ToLower(strings.Join(ours, ", "))).is(t, 200, "ok")
	got := <-heads
	for _, name := range ours {
		if len(fieldLines(got, name)) != 1 {
			t.Errorf("%s = %q, want one line of ours", name, fieldLines(got, name))
		}
	}
}

// Row 25.
func (s *suite) testHopFraming(t *testing.T) {
	up := newUpstream(t, echo)
	g := s.gateway(t, setup{instances: []string{up.address()}})
	c := g.dial(t)
	c.send(head("POST", "/x", "Connection: Host, Content-Length, Transfer-Encoding, Authorization", "Content-Length: 5") + "hello")
	c.read("POST").is(t, 200, "hello")
	c.send(head("POST", "/x", "Connection: Transfer-Encoding", "Transfer-Encoding: chunked") + "2\r\nhi\r\n0\r\n\r\n")
	c.read("POST").is(t, 200, "hi")
	if n := up.calls.Load(); n != 2 {
		t.Errorf("the upstream was called %d times, want 2", n)
	}
}

func (s *suite) testHopRouting(t *testing.T) {
	up := newUpstream(t, ok("old"))
	r := bookRecord("http://"+closedPort(t), 10)
	r.Rules = []routing.Rule{{Name: "lab", Variant: new("new"),
		Match: []routing.Match{{On: "header", Name: new("x-lab"), Present: new(true)}}}}
	g := s.gateway(t, setup{instances: []string{up.address()}, records: []*routing.Record{r}})
	a := g.get(t, "/x", "Connection: X-Lab", "X-Lab: 1")
	a.is(t, 200, "old")
	if got := a.Header.Get("X-Route-Reason"); got != "draw" {
		t.Errorf("reason = %q, want draw", got)
	}
}

// Row 128, and the same without close.
func (s *suite) testHopAnswer(t *testing.T) {
	for _, connection := range []string{"close, X-N", "X-N", "x-n, close", "keep-alive, X-N", "close\r\nConnection: X-N"} {
		up := answering(t, "HTTP/1.1 200 OK\r\nConnection: "+connection+"\r\nX-N: leak\r\nKeep-Alive: timeout=5\r\n"+
			"Proxy-Authenticate: x\r\nUpgrade: h2c\r\nX-Stays: 1\r\nContent-Length: 2\r\n\r\nok")
		g := s.gateway(t, setup{instances: []string{up.address()}})
		a := g.get(t, "/x")
		a.is(t, 200, "ok")
		for _, name := range []string{"X-N", "Keep-Alive", "Proxy-Authenticate", "Upgrade", "Connection"} {
			if got := a.Header.Values(name); got != nil {
				t.Errorf("Connection: %s: the client sees %s: %q", connection, name, got)
			}
		}
		if a.Header.Get("X-Stays") != "1" {
			t.Errorf("Connection: %s: an end-to-end field is gone", connection)
		}
	}
}
