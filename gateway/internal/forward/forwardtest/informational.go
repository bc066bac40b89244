package forwardtest

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func (s *suite) testInformational(t *testing.T) {
	t.Run("pass in order", s.testInformationalPass)
	t.Run("do not come to HTTP/1.0", s.testInformationalOld)
	t.Run("without end are no answer", s.testInformationalFlood)
}

// Rows 26 and 77: hop-by-hop fields and those that only we may set do not pass,
// and nothing of a 1xx is in the answer.
func (s *suite) testInformationalPass(t *testing.T) {
	const hints = "HTTP/1.1 103 Early Hints\r\nLink: </s.css>\r\nConnection: X-N\r\nX-N: leak\r\nKeep-Alive: x\r\n" +
		"Proxy-Authenticate: x\r\nX-Route-Variant: leak\r\nSet-Cookie: leak\r\n\r\n"
	up := answering(t, "HTTP/1.1 102 Processing\r\n\r\n"+strings.Repeat(hints, 8)+"HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 2\r\n\r\nok")
	g := s.gateway(t, setup{instances: []string{up.address()}})
	c := g.dial(t)
	for range 2 {
		c.send(head("GET", "/x"))
		if a := c.read("GET"); a.StatusCode != http.StatusProcessing {
			t.Fatalf("first status = %d, want 102", a.StatusCode)
		}
		for range 8 {
			a := c.read("GET")
			if a.StatusCode != http.StatusEarlyHints || a.Header.Get("Link") != "</s.css>" {
				t.Fatalf("status = %d %v, want 103 with the link", a.StatusCode, a.Header)
			}
			for _, name := range []string{"X-N", "Keep-Alive", "Proxy-Authenticate", "Connection", "X-Route-Variant"} {
				if got := a.Header.Values(name); got != nil {
					t.Errorf("103 has %s: %q", name, got)
				}
			}
		}
		a := c.read("GET")
		a.is(t, 200, "ok")
		if a.Header["Link"] != nil || a.Header.Get("X-A") != "1" {
			t.Errorf("final headers = %v", a.Header)
		}
	}
}

func (s *suite) testInformationalOld(t *testing.T) {
	up := answering(t, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	g := s.gateway(t, setup{instances: []string{up.address()}})
	g.request(t, "GET "+prefix+"/x HTTP/1.0\r\nHost: a\r\n\r\n").is(t, 200, "ok")
}

func (s *suite) testInformationalFlood(t *testing.T) {
	up := newRaw(t, func(u *raw, c net.Conn, r *bufio.Reader) {
		if u.readHead(r) == "" {
			return
		}
		for {
			if _, err := io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"); err != nil {
				return
			}
		}
	})
	g := s.gateway(t, setup{instances: []string{up.address()}})
	c := g.dial(t)
	c.send(head("GET", "/x"))
	for n := 0; ; n++ {
		a := c.read("GET")
		if a.StatusCode == http.StatusEarlyHints && n < 1000 {
			continue
		}
		a.refused(t, 502, "bad_answer")
		return
	}
}
