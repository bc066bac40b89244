package forwardtest

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// testLeavingClients shows row 62: whoever leaves is logged as 499, the upstream
// notices in less than a second, and its instance does not pay for it.
func (s *suite) testLeavingClients(t *testing.T) {
	t.Run("before the answer", func(t *testing.T) { s.leave(t, head("GET", "/wait"), 0) })
	t.Run("in mid-answer", func(t *testing.T) { s.leave(t, head("GET", "/stream"), 1) })
	t.Run("in mid-body", func(t *testing.T) { s.leave(t, head("POST", "/read", "Content-Length: 100000")+"x", 0) })
	t.Run("in a chunk", func(t *testing.T) { s.leave(t, head("POST", "/read", "Transfer-Encoding: chunked")+"9\r\nx", 0) })
	t.Run("with a reset", func(t *testing.T) { s.leave(t, head("POST", "/read", "Content-Length: 100000")+"x", -1) })
	t.Run("in a short body", s.testLeaveShortBody)
	t.Run("with requests behind", s.testLeavePipelined)
	t.Run("is not counted against the instance", s.testLeaversCostNothing)
}

// A short body that does not come to its end is no request that an upstream could
// take for whole, whether or not it is told of it at all.
func (s *suite) testLeaveShortBody(t *testing.T) {
	var whole atomic.Int64
	up := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		echo(w, r)
		whole.Add(1)
	})
	for _, body := range []string{"Content-Length: 100\r\n\r\nx", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "Content-Length: 1\r\n\r\n"} {
		for _, reset := range []bool{false, true} {
			g := s.gateway(t, setup{instances: []string{up.address()}})
			c := g.dial(t)
			c.send(strings.TrimSuffix(head("POST", "/x"), "\r\n") + body)
			if reset {
				_ = c.Conn.(*net.TCPConn).SetLinger(0)
			}
			_ = c.Close()
			if e := g.entries.only(t); e.Status != 499 || e.Code != "" || e.Retries != 0 || e.Fallback != "" {
				t.Errorf("%q, reset %v: logged %d %q, %d retries, fallback %q; want 499", body, reset, e.Status, e.Code, e.Retries, e.Fallback)
			}
		}
	}
	if n := whole.Load(); n != 0 {
		t.Errorf("the upstream took %d requests for whole", n)
	}
}

// Ten clients leave one after the other, more than a circuit would stand.
func (s *suite) testLeaversCostNothing(t *testing.T) {
	began := make(chan struct{}, 16)
	up := newUpstream(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			began <- struct{}{}
			<-r.Context().Done()
		}
	})
	g := s.gateway(t, setup{instances: []string{up.address()}})
	for i := range 10 {
		c := g.dial(t)
		c.send(head("GET", "/wait"))
		within(t, began, "the request does not arrive")
		_ = c.Close()
		if e := g.entries.wait(t, i+1)[i]; e.Status != 499 {
			t.Fatalf("logged %d, want 499", e.Status)
		}
	}
	g.get(t, "/x").is(t, 200, "")
	if e := g.entries.wait(t, 11)[10]; e.Fallback != "" || e.Retries != 0 || e.Instance != "i1" {
		t.Errorf("fallback %q after %d retries: the instance paid for clients that left", e.Fallback, e.Retries)
	}
}

// leave sends a request, waits until the upstream has it, reads so many heads of
// answers and goes; a negative number of them goes with a reset.
func (s *suite) leave(t *testing.T, request string, answers int) {
	began, noticed := make(chan struct{}), make(chan struct{})
	up := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		close(began)
		defer close(noticed)
		switch r.URL.Path {
		case "/read":
			_, _ = io.Copy(io.Discard, r.Body)
		case "/stream":
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(time.Millisecond)
			}
		default:
			<-r.Context().Done()
		}
	})
	g := s.gateway(t, setup{instances: []string{up.address()}})
	c := g.dial(t)
	c.send(request)
	within(t, began, "the request does not arrive")
	if answers > 0 {
		if res, err := http.ReadResponse(c.r, nil); err != nil || res.StatusCode != 200 {
			t.Fatalf("no answer: %v", err)
		}
	}
	if answers < 0 {
		_ = c.Conn.(*net.TCPConn).SetLinger(0)
	}
	left := time.Now()
	_ = c.Close()
	within(t, noticed, "the upstream does not notice")
	if took := time.Since(left); took > time.Second {
		t.Errorf("the upstream noticed after %v", took)
	}
	if e := g.entries.only(t); e.Status != 499 || e.Code != "" || e.Retries != 0 {
		t.Errorf("logged %d %q after %d retries, want 499", e.Status, e.Code, e.Retries)
	}
}

// Row 62: the end of a client is seen behind requests that it has already sent,
// and none of those goes on.
func (s *suite) testLeavePipelined(t *testing.T) {
	for name, leave := range map[string]func(*net.TCPConn) error{
		"closing": func(c *net.TCPConn) error { return c.Close() },
		"half":    func(c *net.TCPConn) error { return c.CloseWrite() },
		"with a reset": func(c *net.TCPConn) error {
			_ = c.SetLinger(0)
			return c.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			began, noticed := make(chan struct{}, 8), make(chan struct{}, 8)
			up := newRaw(t, func(u *raw, c net.Conn, r *bufio.Reader) {
				if u.readHead(r) == "" {
					return
				}
				began <- struct{}{}
				_, _ = r.ReadByte() // ends when the gateway lets go
				noticed <- struct{}{}
			})
			g := s.gateway(t, setup{instances: []string{up.address()}})
			c := g.dial(t)
			c.send(head("GET", "/wait") + head("GET", "/next") + head("GET", "/last"))
			within(t, began, "the request does not arrive")
			left := time.Now()
			if err := leave(c.Conn.(*net.TCPConn)); err != nil {
				t.Fatal(err)
			}
			within(t, noticed, "the upstream does not notice")
			if took := time.Since(left); took > time.Second {
				t.Errorf("the upstream noticed after %v", took)
			}
			if e := g.entries.wait(t, 1)[0]; e.Status != 499 || e.Code != "" || e.Retries != 0 {
				t.Errorf("logged %d %q after %d retries, want 499", e.Status, e.Code, e.Retries)
			}
		})
	}
}
