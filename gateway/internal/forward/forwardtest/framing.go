package forwardtest

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
)

// smuggled is a request that stands behind one whose end could be read in two
// ways.
const smuggled = "GET " + prefix + "/smuggled HTTP/1.1\r\nHost: a\r\n\r\n"

func (s *suite) testRequestFraming(t *testing.T) {
	t.Run("one framing only", s.testOneFraming)
	t.Run("one length only", s.testOneLength)
	t.Run("lines that are folded or end in LF alone", s.testFolded)
	t.Run("lines that are no fields", s.testNoFields)
	t.Run("request lines", s.testRequestLines)
	t.Run("chunks", s.testChunks)
	t.Run("a preface behind a request", s.testPrefaceBehind)
}

// Row 4: transfer codings other than chunked alone, each beside a length.
func (s *suite) testOneFraming(t *testing.T) {
	var all []exchange
	for _, coding := range []string{
		"\x0bchunked", ",chunked", "chunked,", "gzip, chunked", "identity", "chunked, identity", "chunked, chunked",
		"chunked\r\nTransfer-Encoding: chunked", "xchunked", "\"chunked\"", "chunked;a=b", "",
	} {
		for _, length := range []string{"", "Content-Length: 5"} {
			all = append(all, exchange{
				name: coding + " " + length,
				sent: head("POST", "/x", slices.DeleteFunc([]string{"Transfer-Encoding: " + coding, length},
					func(line string) bool { return line == "" })...) + "0\r\n\r\n" + smuggled,
			})
		}
	}
	for _, x := range all {
		t.Run(x.name, func(t *testing.T) { s.refusedOutright(t, x.sent) })
	}
}

// refusedOutright sends bytes that must be refused as no HTTP, with nothing
// forwarded and the connection closed behind the refusal.
func (s *suite) refusedOutright(t *testing.T, sent string) {
	t.Helper()
	up, seen := strictUpstream(t)
	g := s.gateway(t, setup{instances: []string{up.address()}})
	c := g.dial(t)
	c.send(sent)
	a := c.read("GET")
	if a.StatusCode != 400 && a.StatusCode != 501 && a.StatusCode != 505 {
		t.Errorf("status %d, want 400, 501 or 505", a.StatusCode)
	}
	code := a.problem(t)["code"]
	if !c.ended() {
		t.Error("the connection goes on")
	}
	if got := seen.list(); len(got) != 0 {
		t.Errorf("the upstream saw %q", got)
	}
	if e := g.entries.only(t); e.Status != a.StatusCode || e.Code != code {
		t.Errorf("logged %d %q, want %d %v", e.Status, e.Code, a.StatusCode, code)
	}
}

// Row 5.
func (s *suite) testOneLength(t *testing.T) {
	for _, length := range []string{
		"", "+2", "-1", "0x2", "2, 2", "1 3", "2,", ",2", "2;", "2.0", "2e0", "٢", "99999999999999999999", "9223372036854775808",
		"2\r\nContent-Length: 3", "2\r\nContent-Length: ", "2\r\nContent-Length: +2",
	} {
		t.Run(length, func(t *testing.T) {
			s.refusedOutright(t, head("POST", "/x", "Content-Length: "+length)+"hi"+smuggled)
		})
	}
	// Two lines that say the same may be merged, but never passed on as two.
	t.Run("twice the same", func(t *testing.T) {
		up, seen := strictUpstream(t)
		g := s.gateway(t, setup{instances: []string{up.address()}})
		c := g.dial(t)
		c.send(head("POST", "/x", "Content-Length: 2", "Content-Length: 2") + "hi")
		if a := c.read("POST"); a.StatusCode == 400 {
			a.refused(t, 400, "bad_request")
		} else if got := seen.list(); len(got) != 1 || got[0].body != "hi" {
			t.Errorf("status %d, the upstream saw %q", a.StatusCode, got)
		}
	})
}

// Rows 11 and 12: folded lines and bare line feeds are refused, or arrive as what
// everybody reads in them.
func (s *suite) testFolded(t *testing.T) {
	for _, tt := range []struct{ name, sent, want string }{
		{"a folded value", head("GET", "/x", "X-A: a", " b"), "X-A: a b"},
		{"a folded coding", head("POST", "/x", "Transfer-Encoding:\r\n chunked") + "2\r\nhi\r\n0\r\n\r\n", "Transfer-Encoding: chunked"},
		{"lines that end in LF", strings.ReplaceAll(head("GET", "/x", "X-A: a", "X-B: b"), "\r\n", "\n"), "X-B: b"},
		{"one line that ends in LF", head("GET", "/x", "X-A: a\nX-B: b"), "X-B: b"},
		{"a blank line that is LF", strings.TrimSuffix(head("GET", "/x", "X-B: b"), "\r\n") + "\n", "X-B: b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			up, seen := strictUpstream(t)
			g := s.gateway(t, setup{instances: []string{up.address()}})
			c := g.dial(t)
			c.send(tt.sent)
			if a := c.read("GET"); a.StatusCode == 400 {
				a.refused(t, 400, "bad_request")
				if !c.ended() || len(seen.list()) != 0 {
					t.Errorf("refused, but the connection goes on or the upstream saw %q", seen.list())
				}
				return
			}
			name, value, _ := strings.Cut(tt.want, ": ")
			if got := seen.list(); len(got) != 1 || !slices.Equal(fieldLines(got[0].head, name), []string{value}) {
				t.Errorf("the upstream saw %q, want %q in it", got, tt.want)
			}
			c.send(head("GET", "/after"))
			c.read("GET").is(t, 200, "ok")
		})
	}
}

// Rows 3, 11 and 13.
func (s *suite) testNoFields(t *testing.T) {
	for _, line := range []string{
		" Host: b", "\tX-A: a", "Transfer-\r\nEncoding: chunked", "Transfer-Encoding : chunked", "Content-Length : 5",
		"Content-Length\t: 5", "X-A: a\rb", "X-A: a\r", "\rX-A: a", "X-A: a\x00b", "X-A: \x7f", "X-A: \x01", "X A: a", "X\x00A: a",
		"X\x7fA: a", "X(A): a", "X-\xe9: a", ": a", "no colon", "X-A\r\n\t: a", "\x00",
	} {
		t.Run(line, func(t *testing.T) {
			first := "GET " + prefix + "/x HTTP/1.1\r\n"
			if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
				// As the first line there is nothing that it could go on.
				s.refusedOutright(t, first+line+"\r\nHost: a\r\n\r\n")
				return
			}
			s.refusedOutright(t, first+"Host: a\r\n"+line+"\r\n\r\n")
		})
	}
}

func (s *suite) testRequestLines(t *testing.T) {
	for _, line := range []string{
		"GET  %s/x HTTP/1.1", "GET %s/x  HTTP/1.1", "GET\t%s/x HTTP/1.1", "GET %s/x\tHTTP/1.1", " GET %s/x HTTP/1.1", "GET %s/x y HTTP/1.1",
		"GET %s/x", "GET %s/x HTTP", "GET %s/x HTTP/", "GET %s/x HTTP/1", "GET %s/x HTTP/1.", "GET %s/x HTTP/1.1.1", "GET %s/x HTTP/1.10",
		"GET %s/x HTTP/11", "GET %s/x http/1.1", "GET %s/x Http/1.1", "GET %s/x HTTPS/1.1", "GET %s/x ICY/1.1", "GET %s/x HTTP/0.9",
		"GET %s/x HTTP/2.0", "GET %s/x HTTP/3.0", "GET %s/x HTTP/-1.1", "GET %s/x HTTP/+1.1", "GET %s/x HTTP/1.1x", "GET %s/x HTTP 1.1",
		"G(T %s/x HTTP/1.1", "G\x00T %s/x HTTP/1.1", "G\xe9T %s/x HTTP/1.1", "GET", "%s/x HTTP/1.1", "GET\r%s/x HTTP/1.1",
	} {
		t.Run(line, func(t *testing.T) {
			s.refusedOutright(t, strings.Replace(line, "%s", prefix, 1)+"\r\nHost: a\r\n\r\n")
		})
	}
	s.exchanges(t, []exchange{
		{name: "a verb that nobody knows", sent: head("BREW", "/x"), answers: []string{"200"}, upstream: []string{"BREW /x"}},
		{name: "verbs have a case", sent: head("get", "/x"), answers: []string{"200"}, upstream: []string{"get /x"}},
		{name: "a blank body behind an answer", sent: head("GET", "/x") + head("GET", "/y"), answers: []string{"200", "200"},
			upstream: []string{"GET /x", "GET /y"}},
	})
}

// The preface of HTTP/2 belongs at the start of a connection: behind a request it is
// no request, and what follows it none either.
func (s *suite) testPrefaceBehind(t *testing.T) {
	frames := http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	for name, first := range map[string]string{
		"a plain request": head("GET", "/1"),
		"a short body":    head("POST", "/1", "Content-Length: 2") + "hi",
		"chunks":          head("POST", "/1", "Transfer-Encoding: chunked") + "2\r\nhi\r\n0\r\n\r\n",
	} {
		for _, apart := range []bool{false, true} {
			up, seen := strictUpstream(t)
			g := s.gateway(t, setup{instances: []string{up.address()}})
			c := g.dial(t)
			if apart {
				c.send(first)
				c.read("POST").is(t, 200, "ok")
				c.send(frames)
			} else {
				c.send(first + frames)
				c.read("POST").is(t, 200, "ok")
			}
			c.read("PRI").refused(t, 505, "bad_request")
			if !c.ended() {
				t.Errorf("behind %s: the connection goes on", name)
			}
			if n := len(seen.list()); n != 1 {
				t.Errorf("behind %s: the upstream saw %d requests, want 1", name, n)
			}
		}
	}
}

// Rows 7, 8 and 9: each body is broken in its framing, and what follows it is
// never a request.
func (s *suite) testChunks(t *testing.T) {
	var all []exchange
	for _, body := range []string{
		"2\nhi\r\n0\r\n\r\n", "2\r\nhi\n0\r\n\r\n", "2;\nxx\r\nhi\r\n0\r\n\r\n", "2;a\rb\r\nhi\r\n0\r\n\r\n", "2\r\r;a\r\nhi\r\n0\r\n\r\n",
		"2;a=\"\r\n\"\r\nhi\r\n0\r\n\r\n", "10000000000000002\r\nhi\r\n0\r\n\r\n", "0x2\r\nhi\r\n0\r\n\r\n", "+2\r\nhi\r\n0\r\n\r\n",
		"-2\r\nhi\r\n0\r\n\r\n", "0_2\r\nhi\r\n0\r\n\r\n", "\r\nhi\r\n0\r\n\r\n", "INVALID\r\nhi\r\n0\r\n\r\n", "2 2\r\nhi\r\n0\r\n\r\n",
		"2\r\nhix\r\n0\r\n\r\n", "2\r\nhi0\r\n\r\n", "\xb2\r\nhi\r\n0\r\n\r\n", "2\r\nhi\r\n0\r\nnonsense\r\n\r\n", "2\x00\r\nhi\r\n0\r\n\r\n",
	} {
		all = append(all, exchange{
			name: body, sent: head("POST", "/x", "Transfer-Encoding: chunked") + body + smuggled,
			answers: []string{"400 bad_body"}, ends: true,
		})
	}
	for _, x := range all {
		t.Run(x.name, func(t *testing.T) { s.brokenBody(t, x) })
	}
	s.exchanges(t, []exchange{
		{name: "an extension is dropped", sent: head("POST", "/x", "Transfer-Encoding: chunked") + "2;a=b\r\nhi\r\n0;c=\"d\"\r\n\r\n" + head("GET", "/y"),
			answers: []string{"200", "200"}, upstream: []string{"POST /x hi", "GET /y"}},
		{name: "sizes in hexadecimal", sent: head("POST", "/x", "Transfer-Encoding: chunked") + "00A\r\n0123456789\r\na\r\n0123456789\r\n000\r\n\r\n",
			answers: []string{"200"}, upstream: []string{"POST /x 01234567890123456789"}},
		{name: "the coding has no case", sent: head("POST", "/x", "Transfer-Encoding: CHUNKED") + "2\r\nhi\r\n0\r\n\r\n",
			answers: []string{"200"}, upstream: []string{"POST /x hi"}},
	})
}

// brokenBody sends a body that ends nowhere: the upstream never sees a whole
// request, and does not pay for it.
func (s *suite) brokenBody(t *testing.T, x exchange) {
	t.Helper()
	var whole atomic.Int64
	up := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		echo(w, r)
		whole.Add(1)
	})
	g := s.gateway(t, setup{instances: []string{up.address()}})
	c := g.dial(t)
	c.send(x.sent)
	c.read("POST").refused(t, 400, "bad_body")
	if !c.ended() {
		t.Error("the connection goes on")
	}
	if n := whole.Load(); n != 0 {
		t.Errorf("the upstream took %d requests for whole", n)
	}
	if e := g.entries.only(t); e.Status != 400 || e.Code != "bad_body" || e.Fallback != "" || e.Retries != 0 {
		t.Errorf("logged %d %q, fallback %q, %d retries", e.Status, e.Code, e.Fallback, e.Retries)
	}
}
