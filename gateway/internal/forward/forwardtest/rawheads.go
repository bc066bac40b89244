package forwardtest

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ExerciseLoop runs what holds on the loop alone. What else it holds than net/http
// is a difference to be mended, not a promise.
func ExerciseLoop(t *testing.T, start Start) {
	s := &suite{start: start}
	for _, group := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"short bodies hold no connection", s.testSlowSenders},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			group.run(t)
		})
	}
}

// testRawHeads shows what http.ReadRequest would hide.
func (s *suite) testRawHeads(t *testing.T) {
	t.Run("two framings", s.testTwoFramings)
	t.Run("hosts that a target hides", s.testHiddenHosts)
	t.Run("fields that nobody sent", s.testPragma)
	t.Run("refusals are problems", s.testPlainRefusals)
}

// Rows 1 and 2: a length beside a coding, and a coding in a version that has none.
func (s *suite) testTwoFramings(t *testing.T) {
	old := func(lines ...string) string {
		return strings.Replace(head("POST", "/x", lines...), "HTTP/1.1", "HTTP/1.0", 1)
	}
	for name, sent := range map[string]string{
		"the length first": head("POST", "/x", "Content-Length: 5", "Transfer-Encoding: chunked") + "0\r\n\r\n" + smuggled,
		"the coding first": head("POST", "/x", "Transfer-Encoding: chunked", "Content-Length: 4") +
			fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(smuggled), smuggled),
		"lengths that agree":     head("POST", "/x", "Content-Length: 5", "Transfer-Encoding: chunked") + "0\r\n\r\n",
		"names in another case":  head("POST", "/x", "content-LENGTH: 5", "TRANSFER-encoding: Chunked") + "0\r\n\r\n" + smuggled,
		"a length of 0":          head("POST", "/x", "Content-Length: 0", "Transfer-Encoding: chunked") + "0\r\n\r\n",
		"on a GET":               head("GET", "/x", "Content-Length: 5", "Transfer-Encoding: chunked") + "0\r\n\r\n" + smuggled,
		"far apart":              head("POST", "/x", "Content-Length: 5", "X-A: "+strings.Repeat("a", 8000), "Transfer-Encoding: chunked") + "0\r\n\r\n" + smuggled,
		"1.0, both":              old("Transfer-Encoding: chunked", "Content-Length: 3") + "0\r\n\r\n",
		"1.0, the coding":        old("Transfer-Encoding: chunked") + "0\r\n\r\n",
		"1.0, another coding":    old("Transfer-Encoding: gzip", "Content-Length: 3") + "abc",
		"1.0, and a connection":  old("Connection: keep-alive", "Transfer-Encoding: chunked", "Content-Length: 5") + "0\r\n\r\n" + smuggled,
		"hidden by Connection":   head("POST", "/x", "Connection: Content-Length", "Content-Length: 5", "Transfer-Encoding: chunked") + "0\r\n\r\n" + smuggled,
		"hidden by Connection 2": head("POST", "/x", "Connection: Transfer-Encoding", "Content-Length: 5", "Transfer-Encoding: chunked") + "0\r\n\r\n" + smuggled,
	} {
		t.Run(name, func(t *testing.T) { s.refusedOutright(t, sent) })
	}
	t.Run("behind other requests", func(t *testing.T) {
		s.exchanges(t, []exchange{{
			name: "in one write",
			sent: head("GET", "/1") + head("POST", "/2", "Content-Length: 2") + "hi" +
				head("POST", "/x", "Content-Length: 5", "Transfer-Encoding: chunked") + "0\r\n\r\n" + smuggled,
			answers:  []string{"200", "200", "400 bad_request"},
			upstream: []string{"GET /1", "POST /2 hi"},
			ends:     true,
		}})
	})
}

// Rows 36 and 42: with a target in absolute form there must be one Host all the
// same, and a good one; and no target has a fragment.
func (s *suite) testHiddenHosts(t *testing.T) {
	for name, sent := range map[string]string{
		"no Host":           "GET http://a" + prefix + "/x HTTP/1.1\r\nX-A: a\r\n\r\n",
		"two Hosts":         "GET http://a" + prefix + "/x HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
		"a bad Host":        "GET http://a" + prefix + "/x HTTP/1.1\r\nHost: a b\r\n\r\n",
		"a user in Host":    "GET http://a" + prefix + "/x HTTP/1.1\r\nHost: u@a\r\n\r\n",
		"a fragment":        "GET http://a" + prefix + "/x#y HTTP/1.1\r\nHost: a\r\n\r\n",
		"a fragment alone":  head("GET", "/x#"),
		"a fragment behind": head("GET", "/a#/admin"),
	} {
		t.Run(name, func(t *testing.T) {
			up, seen := strictUpstream(t)
			g := s.gateway(t, setup{instances: []string{up.address()}})
			if a := g.request(t, sent); a.StatusCode != 400 {
				t.Errorf("status %d, want 400", a.StatusCode)
			} else {
				a.problem(t)
			}
			if got := seen.list(); len(got) != 0 {
				t.Errorf("the upstream saw %q", got)
			}
		})
	}
}

// Row 129: Pragma makes no Cache-Control.
func (s *suite) testPragma(t *testing.T) {
	up, seen := strictUpstream(t)
	g := s.gateway(t, setup{instances: []string{up.address()}})
	g.get(t, "/x", "Pragma: no-cache").is(t, 200, "ok")
	g.request(t, head("POST", "/x", "Pragma: no-cache", "Transfer-Encoding: chunked")+"2\r\nhi\r\n0\r\n\r\n").is(t, 200, "ok")
	g.get(t, "/x", "Pragma: no-cache", "Cache-Control: max-age=1").is(t, 200, "ok")
	for i, want := range [][]string{nil, nil, {"max-age=1"}} {
		got := seen.list()[i].head
		if lines := fieldLines(got, "Cache-Control"); !slices.Equal(lines, want) {
			t.Errorf("request %d: Cache-Control = %q, want %q", i+1, lines, want)
		}
		if lines := fieldLines(got, "Pragma"); !slices.Equal(lines, []string{"no-cache"}) {
			t.Errorf("request %d: Pragma = %q", i+1, lines)
		}
	}
}

// Rows 50 and 51, and more: what net/http would refuse with a line of text, or none at all, is refused as
// everything else is.
func (s *suite) testPlainRefusals(t *testing.T) {
	for name, tt := range map[string]struct {
		sent   string
		status int
	}{
		"an expectation that nobody has": {head("POST", "/x", "Expect: 200-ok", "Content-Length: 2") + "hi", 417},
		"a version of its own":           {"GET " + prefix + "/x HTTP/2.0\r\nHost: a\r\n\r\n", 505},
		"a head that is too long":        {head("GET", "/x", "X-A: "+strings.Repeat("a", 200<<10)), 431},
		"too many fields":                {head("GET", "/x", slices.Repeat([]string{"A: b"}, 10_000)...), 431},
		"one long Cookie":                {head("GET", "/x", "Cookie: "+strings.Repeat("a=;", 300<<10)), 431},
		"a path that is too long":        {head("GET", "/"+strings.Repeat("a", 2<<20)), 431},
		"bytes of TLS":                   {"\x16\x03\x01\x00\x05hello\r\n\r\n", 400},
	} {
		t.Run(name, func(t *testing.T) {
			up, seen := strictUpstream(t)
			g := s.gateway(t, setup{instances: []string{up.address()}})
			c := g.dial(t)
			go func() { _, _ = io.WriteString(c.Conn, tt.sent) }()
			a := c.read("GET")
			if a.StatusCode != tt.status {
				t.Errorf("status %d, want %d", a.StatusCode, tt.status)
			}
			p := a.problem(t)
			if e := g.entries.only(t); e.Status != a.StatusCode || e.Code != p["code"] {
				t.Errorf("logged %d %q", e.Status, e.Code)
			}
			if got := seen.list(); len(got) != 0 {
				t.Errorf("the upstream saw %q", got)
			}
		})
	}
}

// Row 63, where nothing but the end of the connection says where an answer ends:
// a reset is all that tells a part from the whole.
func (s *suite) testCutAnswerOld(t *testing.T) {
	for name, answer := range map[string]string{
		"chunked":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
		"in a size": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1",
	} {
		t.Run(name, func(t *testing.T) {
			up := serveOnce(t, answer)
			g := s.gateway(t, setup{instances: []string{up.address()}})
			a := g.request(t, strings.Replace(head("GET", "/x"), "HTTP/1.1", "HTTP/1.0", 1))
			if a.StatusCode != 200 || a.err == nil {
				t.Errorf("answer = %d %q with a clean end, want a broken one", a.StatusCode, a.body)
			}
			if e := g.entries.only(t); e.Code != "answer_cut" {
				t.Errorf("logged %d %q, want answer_cut", e.Status, e.Code)
			}
		})
	}
}

// Row 54: who sends a short body slowly holds no upstream connection.
func (s *suite) testSlowSenders(t *testing.T) {
	const senders, length = 20, 1000
	up, seen := strictUpstream(t)
	g := s.gateway(t, setup{instances: []string{up.address()}})
	clients := make([]*client, senders)
	for i := range clients {
		clients[i] = g.dial(t)
		clients[i].send(head("POST", "/slow", "Content-Length: "+strconv.Itoa(length)) + "x")
	}
	for _, c := range clients {
		time.Sleep(time.Millisecond) // the pace of these clients is what is tested
		c.send("x")
	}
	g.get(t, "/quick").is(t, 200, "ok")
	if n := up.accepted.Load(); n != 1 || len(seen.list()) != 1 {
		t.Errorf("the upstream has %d connections while bodies are on their way, want that of the quick one", n)
	}
	body := strings.Repeat("x", length)
	for _, c := range clients {
		c.send(body[2:])
	}
	for _, c := range clients {
		c.read("POST").is(t, 200, "ok")
	}
	for _, a := range seen.list()[1:] {
		if a.body != body {
			t.Errorf("a body of %d bytes arrived, want %d", len(a.body), length)
		}
	}
}
