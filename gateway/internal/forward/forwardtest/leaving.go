package forwardtest

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// testLeavingClients shows row 62: whoever leaves is logged as 499, the upstream
// notices in less than a second, and its instance does not pay for it.
func (s *suite) testLeavingClients(t *testing.T) {
	t.Run("before the answer", func(t *testing.T) { s.leave(t, head("GET", "/wait"), 0) })
	t.Run("in mid-answer", func(t *testing.T) { s.leave(t, head("GET", "/stream"), 1) })
	t.Run("in mid-body", func(t *testing.T) { s.leave(t, head("POST", "/read", "Content-Length: 100")+"x", 0) })
	t.Run("in a chunk", func(t *testing.T) { s.leave(t, head("POST", "/read", "Transfer-Encoding: chunked")+"9\r\nx", 0) })
	t.Run("with a reset", func(t *testing.T) { s.leave(t, head("POST", "/read", "Content-Length: 100")+"x", -1) })
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
	<-began
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
	<-noticed
	if took := time.Since(left); took > time.Second {
		t.Errorf("the upstream noticed after %v", took)
	}
	if e := g.entries.only(t); e.Status != 499 || e.Code != "" || e.Retries != 0 {
		t.Errorf("logged %d %q after %d retries, want 499", e.Status, e.Code, e.Retries)
	}
}
