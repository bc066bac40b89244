package forwardtest

import (
	"bufio"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/config"
)

func (s *suite) testRetries(t *testing.T) {
	t.Run("once, of what may be sent twice", s.testSentTwice)
	t.Run("never of what may not", s.testSentOnce)
	t.Run("never after a byte of an answer", s.testHalfAnswer)
	t.Run("never after a timeout", s.testTimeoutOnce)
	t.Run("of kept connections that the upstream has closed", s.testStaleConnections)
}

// hangingUp reads a head, and a body of the length it names, and closes without a
// word. The first so many requests on fresh connections are answered, so that the
// pool has connections to try.
func hangingUp(t *testing.T, answers int64) *raw {
	t.Helper()
	return newRaw(t, func(u *raw, c net.Conn, r *bufio.Reader) {
		for {
			head := u.readHead(r)
			if head == "" {
				return
			}
			for _, length := range fieldLines(head, "Content-Length") {
				n, _ := strconv.ParseInt(length, 10, 64)
				_, _ = io.CopyN(io.Discard, r, n)
			}
			if u.calls.Load() > answers {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
}

// sends makes a request against an upstream that reads it and hangs up, on a
// fresh or on a kept connection, and returns how often it was sent.
func (s *suite) sends(t *testing.T, request string, kept bool) (times int64, a answer) {
	t.Helper()
	answers := int64(0)
	if kept {
		answers = 1
	}
	up := hangingUp(t, answers)
	g := s.gateway(t, setup{instances: []string{up.address()}})
	if kept {
		g.get(t, "/first").is(t, 200, "ok")
	}
	a = g.request(t, request)
	up.close() // so that nothing is still on its way
	return up.calls.Load() - answers, a
}

func (s *suite) testSentTwice(t *testing.T) {
	for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
		for _, kept := range []bool{false, true} {
			n, a := s.sends(t, head(method, "/x"), kept)
			if n != 2 || a.StatusCode != 502 {
				t.Errorf("%s, kept connection %v: sent %d times, status %d; want 2, 502", method, kept, n, a.StatusCode)
			}
		}
	}
}

// Rows 84 and 87, R2 and R5: exactly one copy, whatever the client's headers say.
func (s *suite) testSentOnce(t *testing.T) {
	for name, request := range map[string]string{
		"POST":                               head("POST", "/x", "Content-Length: 5") + "hello",
		"PUT":                                head("PUT", "/x", "Content-Length: 5") + "hello",
		"DELETE":                             head("DELETE", "/x"),
		"TRACE":                              head("TRACE", "/x"),
		"GET with a body":                    head("GET", "/x", "Content-Length: 5") + "hello",
		"POST without a body":                head("POST", "/x", "Content-Length: 0"),
		"POST with Idempotency-Key":          head("POST", "/x", "Content-Length: 0", "Idempotency-Key: k"),
		"POST with X-Idempotency-Key":        head("POST", "/x", "X-Idempotency-Key: k"),
		"DELETE with Idempotency-Key":        head("DELETE", "/x", "Idempotency-Key: k"),
		"POST with a body and the key":       head("POST", "/x", "Content-Length: 5", "Idempotency-Key: k") + "hello",
		"PATCH, the key in another spelling": head("PATCH", "/x", "Content-Length: 0", "idempotency-KEY: k"),
	} {
		for _, kept := range []bool{false, true} {
			n, a := s.sends(t, request, kept)
			if n != 1 {
				t.Errorf("%s, kept connection %v: sent %d times, want 1", name, kept, n)
			}
			a.refused(t, 502, "bad_answer")
		}
	}
}

// Row 88.
func (s *suite) testHalfAnswer(t *testing.T) {
	up := serveOnce(t, "HTTP/1.1 200 OK\r\nX-A")
	g := s.gateway(t, setup{instances: []string{up.address()}})
	g.get(t, "/x").refused(t, 502, "bad_answer")
	if n := up.calls.Load(); n != 1 {
		t.Errorf("sent %d times, want 1", n)
	}
}

func (s *suite) testTimeoutOnce(t *testing.T) {
	up := newRaw(t, func(u *raw, c net.Conn, r *bufio.Reader) {
		for u.readHead(r) != "" {
		}
	})
	g := s.gateway(t, setup{
		instances: []string{up.address(), up.address()},
		config:    func(c *config.Config) { c.Timeouts.Response = 100 * time.Millisecond },
	})
	g.get(t, "/x").refused(t, 504, "response_timeout")
	if n := up.calls.Load(); n != 1 {
		t.Errorf("sent %d times, want 1", n)
	}
	if e := g.entries.only(t); e.Retries != 0 || e.Status != 504 {
		t.Errorf("logged %d after %d retries, want 504 after 0", e.Status, e.Retries)
	}
}

// Row 87: connections that close while they are idle fail nobody, and send nothing
// twice.
func (s *suite) testStaleConnections(t *testing.T) {
	closed := make(chan struct{}, 1)
	up := newRaw(t, func(u *raw, c net.Conn, r *bufio.Reader) {
		if u.readHead(r) == "" {
			return
		}
		_, _ = io.CopyN(io.Discard, r, 5)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, r) // ends when the gateway has noticed
		closed <- struct{}{}
	})
	g := s.gateway(t, setup{instances: []string{up.address()}})
	for range 50 {
		g.request(t, head("POST", "/x", "Content-Length: 5")+"hello").is(t, 200, "ok")
		<-closed
	}
	if n := up.calls.Load(); n != 50 {
		t.Errorf("sent %d times, want 50", n)
	}
}
