package forwardtest

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func (s *suite) testBrokenAnswers(t *testing.T) {
	t.Run("are 502", s.testBadAnswers)
	t.Run("that end before the body are 502 too", s.testGoneBeforeBody)
	t.Run("break the transfer once it has begun", s.testCutAnswer)
	t.Run("break the transfer to HTTP/1.0 too", s.testCutAnswerOld)
}

// serveOnce answers one request with bytes and closes.
func serveOnce(t *testing.T, answer string) *raw {
	t.Helper()
	return newRaw(t, func(u *raw, c net.Conn, r *bufio.Reader) {
		if u.readHead(r) != "" {
			_, _ = io.WriteString(c, answer)
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, r)
		}
	})
}

// Row 6, and more that no client should see.
func (s *suite) testBadAnswers(t *testing.T) {
	for name, answer := range map[string]string{
		"two lengths":             "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
		"status 000":              "HTTP/1.1 000 No\r\nContent-Length: 0\r\n\r\n",
		"status 099":              "HTTP/1.1 099 No\r\nContent-Length: 0\r\n\r\n",
		"no HTTP":                 "hello\r\n\r\n",
		"half a head":             "HTTP/1.1 200 OK\r\nContent-",
		"a field without a colon": "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n",
		"a head without end":      "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: "+strings.Repeat("a", 1000)+"\r\n", 300),
	} {
		t.Run(name, func(t *testing.T) {
			up := serveOnce(t, answer)
			g := s.gateway(t, setup{instances: []string{up.address()}})
			g.get(t, "/x", "tmx-correlation-id: mine").refused(t, 502, "bad_answer")
			if n := up.calls.Load(); n != 1 {
				t.Errorf("the request was sent %d times, want 1", n)
			}
			if e := g.entries.only(t); e.Status != 502 || e.Code != "bad_answer" {
				t.Errorf("logged %d %q", e.Status, e.Code)
			}
		})
	}
}

// Row 63: nothing was sent to the client yet, however long the upstream took to
// die.
func (s *suite) testGoneBeforeBody(t *testing.T) {
	up := newRaw(t, func(u *raw, c net.Conn, r *bufio.Reader) {
		if u.readHead(r) != "" {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nX-Theirs: 1\r\n\r\n")
			time.Sleep(brief) // the pace of this upstream is what is tested
		}
	})
	g := s.gateway(t, setup{instances: []string{up.address()}})
	a := g.get(t, "/x")
	a.refused(t, 502, "bad_answer")
	if got := a.Header.Get("X-Theirs"); got != "" {
		t.Errorf("the upstream's X-Theirs: %q is on our answer", got)
	}
}

// Row 63: the client sees that the answer is not whole.
func (s *suite) testCutAnswer(t *testing.T) {
	for name, answer := range map[string]string{
		"length":  "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
		"chunked": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
		"chunk":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc",
		"framing": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nnonsense\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			up := serveOnce(t, answer)
			g := s.gateway(t, setup{instances: []string{up.address()}})
			c := g.dial(t)
			c.send(head("GET", "/x"))
			a := c.read("GET")
			if a.StatusCode != 200 || a.body != "abc" || a.err != io.ErrUnexpectedEOF {
				t.Errorf("answer = %d %q %v, want 200, abc, an unexpected end", a.StatusCode, a.body, a.err)
			}
			if e := g.entries.only(t); e.Status != 200 || e.Code != "answer_cut" || e.BytesOut != 3 {
				t.Errorf("logged %d %q, %d bytes; want 200, answer_cut, 3", e.Status, e.Code, e.BytesOut)
			}
		})
	}
}
