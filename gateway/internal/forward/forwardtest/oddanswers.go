package forwardtest

import (
	"strings"
	"testing"
)

// testOddAnswers sends heads that are no answer, each with what a lenient reader
// would take for its body: nothing of it may reach a client.
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
		t.Run(answer, func(t *testing.T) { refuse(t, answer) })
	}
}

// oddAnswers are heads that every path refuses.
func oddAnswers() []string {
	const ok, body = "HTTP/1.1 200 OK\r\n", "Content-Length: 5\r\n\r\nhello"
	return []string{
		ok + "Transfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", ok + "Transfer-Encoding: identity\r\n" + body,
		ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		ok + "Content-Length: -5\r\n\r\nhello", ok + "Content-Length: +5\r\n\r\nhello", ok + "Content-Length: 5, 5\r\n\r\nhello",
		ok + "Content-Length: 5 6\r\n\r\nhello", ok + "Content-Length: \r\n\r\nhello", ok + "Content-Length: 99999999999999999999\r\n\r\nhello",
		ok + "X-A: a\x00b\r\n" + body, ok + "X-A: a\rSet-Cookie: x=y\r\n" + body, ok + "X-A: a\x7f\r\n" + body,
		ok + " X-A: a\r\n" + body, ok + ": a\r\n" + body, ok + "X-\xe9: a\r\n" + body,
		"HTTP/1.1 +200 OK\r\n" + body, "HTTP/1.1 2000 OK\r\n" + body, "HTTP/1.1 20 OK\r\n" + body, "HTTP/1.1\t200 OK\r\n" + body,
		"http/1.1 200 OK\r\n" + body, "ICY 200 OK\r\n" + body, "\r\n" + ok + body,
	}
}

// testOddAnswersLoop are heads that net/http takes and the loop refuses: a coding
// in a version that has none, which net/http passes on as a body, names that it
// drops, and versions that are not spoken.
func (s *suite) testOddAnswersLoop(t *testing.T) {
	const body = "Content-Length: 5\r\n\r\nhello"
	for _, answer := range []string{
		"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello", "HTTP/1.1 200 OK\r\nX-A : a\r\n" + body, "HTTP/1.1 200 OK\r\nX A: a\r\n" + body,
		"HTTP/2.0 200 OK\r\n" + body, "HTTP/0.9 200 OK\r\n" + body, "HTTP/1.1  200 OK\r\n" + body,
		"HTTP/1.1 200 OK\r\n" + strings.Repeat("X: a\r\n", 5000) + body,
	} {
		t.Run(answer[:min(len(answer), 60)], func(t *testing.T) {
			up := answering(t, answer)
			g := s.gateway(t, setup{instances: []string{up.address()}})
			g.get(t, "/x").refused(t, 502, "bad_answer")
		})
	}
}
