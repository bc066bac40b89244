package forwardtest

import (
	"strings"
	"testing"
)

// testOddAnswers shows rows 6 and 63 with heads that are no answer, each with what a
// lenient reader would take for its body, and with bodies that are broken before
// their first byte: nothing of it may reach a client.
func (s *suite) testOddAnswers(t *testing.T) {
	refuse := func(t *testing.T, answer string) {
		t.Helper()
		up := answering(t, answer)
		g := s.gateway(t, setup{instances: []string{up.address()}})
		c := g.dial(t)
		for i := range 2 { // the second would read what the first left
			c.send(head("GET", "/x"))
			c.read("GET").refused(t, 502, "bad_answer")
			if e := g.entries.wait(t, i+1)[i]; e.Status != 502 || e.Code != "bad_answer" {
				t.Errorf("logged %d %q", e.Status, e.Code)
			}
		}
		if n := up.accepted.Load(); n != 2 {
			t.Errorf("%d connections for 2 requests; one is used again", n)
		}
	}
	for _, answer := range oddAnswers() {
		t.Run(answer[:min(len(answer), 100)], func(t *testing.T) { refuse(t, answer) })
	}
}

// oddAnswers are answers that every path refuses.
func oddAnswers() []string {
	const ok, body = "HTTP/1.1 200 OK\r\n", "Content-Length: 5\r\n\r\nhello"
	const chunked = "Transfer-Encoding: chunked\r\n\r\n"
	return []string{
		ok + "Transfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", ok + "Transfer-Encoding: identity\r\n" + body,
		ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		ok + "Content-Length: -5\r\n\r\nhello", ok + "Content-Length: +5\r\n\r\nhello", ok + "Content-Length: 5, 5\r\n\r\nhello",
		ok + "Content-Length: 5 6\r\n\r\nhello", ok + "Content-Length: \r\n\r\nhello", ok + "Content-Length: 99999999999999999999\r\n\r\nhello",
		ok + "X-A: a\x00b\r\n" + body, ok + "X-A: a\rSet-Cookie: x=y\r\n" + body, ok + "X-A: a\x7f\r\n" + body,
		ok + " X-A: a\r\n" + body, ok + ": a\r\n" + body, ok + "X-\xe9: a\r\n" + body,
		"HTTP/1.1 +200 OK\r\n" + body, "HTTP/1.1 2000 OK\r\n" + body, "HTTP/1.1 20 OK\r\n" + body, "HTTP/1.1\t200 OK\r\n" + body,
		"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		ok + "Content-Length : 5\r\n\r\nhello", ok + "X-A : a\r\n" + body, ok + "X A: a\r\n" + body,
		"HTTP/2.0 200 OK\r\n" + body, "HTTP/1.2 200 OK\r\n" + body, "HTTP/0.9 200 OK\r\n" + body, "HTTP/1.1  200 OK\r\n" + body,
		ok + strings.Repeat("X: a\r\n", 5000) + body, "HTTP/1.1 103 Hints\r\nX A: a\r\n\r\n" + ok + body,
		ok + chunked + "zz\r\n", ok + chunked + "\r\n", ok + chunked + "-5\r\nhello\r\n0\r\n\r\n", ok + chunked + "0\r\nnonsense\r\n\r\n",
		"http/1.1 200 OK\r\n" + body, "ICY 200 OK\r\n" + body, "\r\n" + ok + body,
	}
}

// Row 6: a length beside a coding. The coding holds, the length does not pass, and
// what follows on the connection is nobody's answer; the same after a 204 that may
// have a body.
func (s *suite) testAnswerTwoFramings(t *testing.T) {
	const chunks = "2\r\nok\r\n0\r\n\r\n"
	for name, tt := range map[string]struct {
		answer string
		status int
		body   string
	}{
		"both":              {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks, 200, "ok"},
		"the coding first":  {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n" + chunks, 200, "ok"},
		"lines end with LF": {"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nContent-Length: 2\n\n" + chunks, 200, "ok"},
		"a 204 of a length": {"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n", 204, ""},
		"a 204 of a coding": {"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", 204, ""},
	} {
		t.Run(name, func(t *testing.T) {
			up := answering(t, tt.answer)
			g := s.gateway(t, setup{instances: []string{up.address()}})
			for range 3 {
				a := g.get(t, "/x")
				if a.is(t, tt.status, tt.body); a.Header.Get("Content-Length") != "" {
					t.Errorf("Content-Length: %q passes", a.Header.Get("Content-Length"))
				}
			}
			if n := up.accepted.Load(); n != 3 {
				t.Errorf("%d connections for 3 requests; one is used again", n)
			}
		})
	}
}

// A 304 tells what a 200 would have told, on every path.
func (s *suite) testNotModified(t *testing.T) {
	up := answering(t, "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nContent-Type: text/x\r\nETag: \"a\"\r\n\r\n")
	g := s.gateway(t, setup{instances: []string{up.address()}})
	c := g.dial(t)
	for range 2 {
		c.send(head("GET", "/x"))
		a := c.read("GET")
		a.is(t, 304, "")
		for name, want := range map[string]string{"Content-Length": "5", "Content-Type": "text/x", "Etag": "\"a\""} {
			if got := a.Header.Get(name); got != want {
				t.Errorf("%s = %q, want %q", name, got, want)
			}
		}
	}
	if n := up.accepted.Load(); n != 1 {
		t.Errorf("%d connections for 2 requests, want 1", n)
	}
}
