package forwardtest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

func (s *suite) testConnections(t *testing.T) {
	t.Run("fifty requests in one write", s.testPipelined)
	t.Run("requests in pieces of every size", s.testPieces)
	t.Run("a request byte by byte", s.testBytewise)
	t.Run("go on after every answer", s.testKept)
	t.Run("go on after stray bytes of the upstream", s.testKeptAfterStray)
	t.Run("end when somebody says so", s.testClose)
	t.Run("half closed behind a request", s.testHalfClosedClient)
}

// numbered answers each request with its method, its path and its body.
func numbered(t *testing.T) *raw {
	t.Helper()
	return newRaw(t, func(u *raw, c net.Conn, r *bufio.Reader) {
		for head := u.readHead(r); head != ""; head = u.readHead(r) {
			body, err := readFramed(head, r)
			if err != nil {
				t.Errorf("the upstream cannot tell what this is: %v\n%q", err, head)
				return
			}
			text := arrived{head, body}.brief()
			if _, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text); err != nil {
				return
			}
		}
	})
}

// mixed are n requests of several framings, and what numbered answers to them.
func mixed(n int) (requests string, answers []string) {
	var b strings.Builder
	for i := range n {
		path, body := fmt.Sprintf("/%d?q=%d", i, i), strings.Repeat(strconv.Itoa(i%10), i*37%400+1)
		switch i % 4 {
		case 0, 1:
			b.WriteString(head("GET", path))
			answers = append(answers, "GET "+path)
		case 2:
			b.WriteString(head("POST", path, "Content-Length: "+strconv.Itoa(len(body))) + body)
			answers = append(answers, "POST "+path+" "+body)
		case 3:
			b.WriteString(head("PUT", path, "Transfer-Encoding: chunked") + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body))
			answers = append(answers, "PUT "+path+" "+body)
		}
	}
	return b.String(), answers
}

// testPipelined shows that requests that come together are answered one by one,
// in their order, and observed each.
func (s *suite) testPipelined(t *testing.T) {
	up := numbered(t)
	g := s.gateway(t, setup{instances: []string{up.address()}})
	requests, answers := mixed(50)
	c := g.dial(t)
	c.send(requests)
	for _, want := range answers {
		c.read("GET").is(t, 200, want)
	}
	if n := len(g.entries.wait(t, 50)); n != 50 {
		t.Errorf("%d entries, want 50", n)
	}
	c.send(head("GET", "/after"))
	c.read("GET").is(t, 200, "GET /after")
}

// testPieces sends three requests in two writes, divided at every byte, so that
// heads, bodies and chunks are cut wherever they can be.
func (s *suite) testPieces(t *testing.T) {
	up := numbered(t)
	g := s.gateway(t, setup{instances: []string{up.address()}})
	requests := head("GET", "/1") + head("POST", "/2", "Content-Length: 5") + "hello" +
		head("POST", "/3", "Transfer-Encoding: chunked") + "2\r\nhi\r\n0\r\n\r\n"
	for at := 1; at < len(requests); at++ {
		c := g.dial(t)
		c.send(requests[:at])
		time.Sleep(time.Millisecond) // the pace of this client is what is tested
		c.send(requests[at:])
		for _, want := range []string{"GET /1", "POST /2 hello", "POST /3 hi"} {
			if a := c.read("GET"); a.StatusCode != 200 || a.body != want {
				t.Fatalf("divided at %d: answer = %d %q, want %q", at, a.StatusCode, a.body, want)
			}
		}
		_ = c.Close()
	}
}

func (s *suite) testBytewise(t *testing.T) {
	up := numbered(t)
	g := s.gateway(t, setup{instances: []string{up.address()}})
	c := g.dial(t)
	for range 2 {
		for _, b := range []byte(head("POST", "/x", "X-A: "+strings.Repeat("a", 300), "Content-Length: 5") + "hello") {
			c.send(string([]byte{b}))
			time.Sleep(100 * time.Microsecond) // the pace of this client is what is tested
		}
		c.read("POST").is(t, 200, "POST /x hello")
	}
}

// kinds are answers of every kind, by the path that asks for them, with the method
// of the request. close says that the upstream closes behind them.
func kinds() map[string]struct {
	method, answer string
	status         int
	body           string
	close          bool
} {
	type kind = struct {
		method, answer string
		status         int
		body           string
		close          bool
	}
	return map[string]kind{
		"length":           {"GET", "200 OK\r\nContent-Length: 4\r\n\r\nbody", 200, "body", false},
		"length 0":         {"GET", "200 OK\r\nContent-Length: 0\r\n\r\n", 200, "", false},
		"chunked":          {"GET", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n", 200, "body", false},
		"chunked, empty":   {"GET", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200, "", false},
		"with trailers":    {"GET", "200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n4\r\nbody\r\n0\r\nX-T: 1\r\n\r\n", 200, "body", false},
		"until the end":    {"GET", "200 OK\r\n\r\nbody", 200, "body", true},
		"empty until end":  {"GET", "200 OK\r\n\r\n", 200, "", true},
		"closed":           {"GET", "200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody", 200, "body", true},
		"of HTTP/1.0":      {"GET", "200 OK\r\nContent-Length: 4\r\n\r\nbody", 200, "body", true},
		"HEAD, length":     {"HEAD", "200 OK\r\nContent-Length: 1234\r\n\r\n", 200, "", false},
		"HEAD, chunked":    {"HEAD", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 200, "", false},
		"HEAD, unknown":    {"HEAD", "200 OK\r\n\r\n", 200, "", false},
		"HEAD, 404":        {"HEAD", "404 No\r\nContent-Length: 9\r\n\r\n", 404, "", false},
		"204":              {"GET", "204 No Content\r\n\r\n", 204, "", false},
		"204 on a POST":    {"POST", "204 No Content\r\n\r\n", 204, "", false},
		"204, length 0":    {"GET", "204 No Content\r\nContent-Length: 0\r\n\r\n", 204, "", false},
		"304":              {"GET", "304 Not Modified\r\nETag: \"x\"\r\n\r\n", 304, "", false},
		"304, length":      {"GET", "304 Not Modified\r\nContent-Length: 99\r\n\r\n", 304, "", false},
		"205":              {"GET", "205 Reset Content\r\nContent-Length: 0\r\n\r\n", 205, "", false},
		"404":              {"GET", "404 Not Found\r\nContent-Length: 2\r\n\r\nno", 404, "no", false},
		"500":              {"POST", "500 Oops\r\nContent-Length: 2\r\n\r\nno", 500, "no", false},
		"413 on a POST":    {"POST", "413 Big\r\nContent-Length: 2\r\n\r\nno", 413, "no", false},
		"after hints":      {"GET", "103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", 200, "body", false},
		"hints, then 204":  {"GET", "103 Early Hints\r\n\r\nHTTP/1.1 204 No\r\n\r\n", 204, "", false},
		"a long reason":    {"GET", "200 " + strings.Repeat("x", 200) + "\r\nContent-Length: 2\r\n\r\nok", 200, "ok", false},
		"without a reason": {"GET", "200\r\nContent-Length: 2\r\n\r\nok", 200, "ok", false},
		"an empty reason":  {"GET", "200 \r\nContent-Length: 2\r\n\r\nok", 200, "ok", false},
		"an odd status":    {"GET", "299 Odd\r\nContent-Length: 2\r\n\r\nok", 299, "ok", false},
	}
}

// testKept shows that a client's connection takes the next request whatever the
// answer before was, and that the next answer is the next request's.
func (s *suite) testKept(t *testing.T) {
	for name, k := range kinds() {
		t.Run(name, func(t *testing.T) {
			version := "HTTP/1.1 "
			if strings.Contains(name, "HTTP/1.0") {
				version = "HTTP/1.0 "
			}
			up := newRaw(t, func(u *raw, c net.Conn, r *bufio.Reader) {
				for head := u.readHead(r); head != ""; head = u.readHead(r) {
					if _, err := readFramed(head, r); err != nil {
						return
					}
					if strings.HasPrefix(head, "GET /plain") {
						_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain")
						continue
					}
					if _, _ = io.WriteString(c, version+k.answer); k.close {
						return
					}
				}
			})
			g := s.gateway(t, setup{instances: []string{up.address()}})
			c := g.dial(t)
			for range 3 {
				request := head(k.method, "/kind")
				if k.method == "POST" {
					request = head("POST", "/kind", "Content-Length: 2") + "hi"
				}
				c.send(request + head("GET", "/plain"))
				a := c.read(k.method)
				for a.StatusCode == 103 {
					a = c.read(k.method)
				}
				a.is(t, k.status, k.body)
				if got := a.Header.Get("Connection"); got != "" || a.Close {
					t.Errorf("Connection: %q, close %v: the upstream's connection is not the client's", got, a.Close)
				}
				c.read("GET").is(t, 200, "plain")
			}
		})
	}
}

// Rows 76 and 130: bytes of the upstream behind an answer that has no body are
// nobody's answer, also on one connection of a client.
func (s *suite) testKeptAfterStray(t *testing.T) {
	const stray = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"
	for _, tt := range []struct{ method, answer string }{
		{"GET", "204 No Content\r\n\r\n"},
		{"GET", "204 No Content\r\nContent-Length: 53\r\n\r\n"},
		{"GET", "204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{"GET", "304 Not Modified\r\n\r\n"},
		{"GET", "304 Not Modified\r\nContent-Length: 53\r\n\r\n"},
		{"HEAD", "200 OK\r\nContent-Length: 53\r\n\r\n"},
		{"HEAD", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{"GET", "200 OK\r\nContent-Length: 0\r\n\r\n"},
		{"GET", "200 OK\r\nContent-Length: 2\r\n\r\nok"},
		{"GET", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"},
	} {
		t.Run(tt.method+" "+tt.answer, func(t *testing.T) {
			up := newRaw(t, func(u *raw, c net.Conn, r *bufio.Reader) {
				for head := u.readHead(r); head != ""; head = u.readHead(r) {
					if strings.Contains(head, " /plain ") {
						_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain")
					} else {
						_, _ = io.WriteString(c, "HTTP/1.1 "+tt.answer+stray)
					}
				}
			})
			g := s.gateway(t, setup{instances: []string{up.address()}})
			c := g.dial(t)
			for range 10 {
				c.send(head(tt.method, "/kind"))
				if a := c.read(tt.method); fmt.Sprint(a.StatusCode) != tt.answer[:3] || strings.Contains(a.body, "wrong") ||
					a.StatusCode == 204 && len(a.TransferEncoding) > 0 {
					t.Fatalf("answer = %d %q %v", a.StatusCode, a.body, a.TransferEncoding)
				}
				c.send(head("GET", "/plain"))
				c.read("GET").is(t, 200, "plain")
			}
		})
	}
}

func (s *suite) testClose(t *testing.T) {
	up := numbered(t)
	g := s.gateway(t, setup{instances: []string{up.address()}})
	for _, tt := range []struct {
		name, request string
		kept          bool
	}{
		{"close", head("GET", "/x", "Connection: close"), false},
		{"close in a list", head("GET", "/x", "Connection: X-A, Close"), false},
		{"keep-alive", head("GET", "/x", "Connection: keep-alive"), true},
		{"1.0", strings.Replace(head("GET", "/x"), "HTTP/1.1", "HTTP/1.0", 1), false},
		{"1.0 with keep-alive", strings.Replace(head("GET", "/x", "Connection: keep-alive"), "HTTP/1.1", "HTTP/1.0", 1), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := g.dial(t)
			c.send(tt.request)
			a := c.read("GET")
			a.is(t, 200, "GET /x")
			if !tt.kept {
				if !c.ended() {
					t.Error("the connection goes on")
				}
				return
			}
			if a.ProtoMinor == 1 && strings.Contains(tt.request, "HTTP/1.0") && !strings.EqualFold(a.Header.Get("Connection"), "keep-alive") {
				t.Error("an HTTP/1.0 client is not told that its connection is kept")
			}
			c.send(head("GET", "/y"))
			c.read("GET").is(t, 200, "GET /y")
		})
	}
}

// A client that closes its sending half counts as gone: its answer may be cut, but
// never a part of it taken for the whole, and no request is lost in the log.
func (s *suite) testHalfClosedClient(t *testing.T) {
	up := numbered(t)
	g := s.gateway(t, setup{instances: []string{up.address()}})
	c := g.dial(t)
	c.send(head("GET", "/x"))
	c.read("GET").is(t, 200, "GET /x")
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if !c.ended() {
		t.Error("the connection goes on")
	}
	if n := len(g.entries.wait(t, 1)); n != 1 {
		t.Errorf("%d entries, want 1: the end of a connection is no request", n)
	}
}
