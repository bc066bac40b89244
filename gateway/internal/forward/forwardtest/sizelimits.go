package forwardtest

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"specialroutes.example/gateway/internal/config"
)

func (s *suite) testLimits(t *testing.T) {
	t.Run("of the head", s.testLongHead)
	t.Run("of the head, to the byte", s.testHeadToTheByte)
	t.Run("of the body", s.testBodyLimit)
}

// Rows 50 and 51.
func (s *suite) testLongHead(t *testing.T) {
	up := newUpstream(t, ok("ok"))
	g := s.gateway(t, setup{instances: []string{up.address()}, config: func(c *config.Config) {
		c.Limits.HeaderBytes, c.Limits.HeaderFields = 8<<10, 20
	}})
	g.get(t, "/x", "X-A: "+strings.Repeat("a", 8<<10)).refused(t, 431, "header_too_large")
	g.get(t, "/"+strings.Repeat("a", 8<<10)).refused(t, 431, "header_too_large")
	var many []string
	for range 20 {
		many = append(many, "X-A: a")
	}
	g.get(t, "/x", many...).refused(t, 431, "header_too_large")
	g.get(t, "/x", many[1:]...).is(t, 200, "ok")
	g.get(t, "/x", "X-A: "+strings.Repeat("a", 7<<10)).is(t, 200, "ok")
	c := g.dial(t)
	c.send("GET " + prefix + "/x HTTP/1.1\r\nHost: a\r\n")
	go func() {
		_, _ = io.Copy(c.Conn, io.LimitReader(strings.NewReader(strings.Repeat("X-A: a\r\n", 200_000)), 1<<20))
	}()
	c.read("GET").refused(t, 431, "header_too_large")
}

// Row 50, to the byte and to the line: a head is as long as it came, whatever is added
// to it here, and however much of it stands between a name and its value.
func (s *suite) testHeadToTheByte(t *testing.T) {
	up := newUpstream(t, ok("ok"))
	g := s.gateway(t, setup{instances: []string{up.address()}})
	const bytes, fields = 64 << 10, 100
	for _, filled := range []func(int) string{
		func(n int) string { return "X-A: " + strings.Repeat("a", n-len("X-A: ")) },
		func(n int) string {
			const some = 98
			return strings.Repeat("X:"+strings.Repeat("a", 660)+"\r\n", some) + "X:" + strings.Repeat("a", n-some*664-2)
		},
	} {
		rest := bytes - len(head("GET", "/x")) - len("\r\n")
		for _, method := range []string{"GET", "OPTIONS"} {
			rest := rest - (len(method) - len("GET"))
			g.request(t, head(method, "/x", filled(rest))).is(t, 200, "ok")
			g.request(t, head(method, "/x", filled(rest+1))).refused(t, 431, "header_too_large")
		}
	}
	many := slices.Repeat([]string{"X-A: a"}, fields)
	g.get(t, "/x", many[1:]...).is(t, 200, "ok")
	g.get(t, "/x", many...).refused(t, 431, "header_too_large")
}

// Row 58: 413, and the upstream never takes a part for the whole.
func (s *suite) testBodyLimit(t *testing.T) {
	whole := make(chan int, 16)
	up := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err == nil {
			whole <- len(b)
		}
	})
	g := s.gateway(t, setup{instances: []string{up.address()}, config: func(c *config.Config) { c.Limits.BodyBytes = 10 }})
	g.request(t, head("POST", "/x", "Content-Length: 11")+"01234567890").refused(t, 413, "body_too_large")
	g.request(t, head("POST", "/x", "Transfer-Encoding: chunked")+"b\r\n01234567890\r\n0\r\n\r\n").refused(t, 413, "body_too_large")
	g.request(t, head("POST", "/x", "Transfer-Encoding: chunked")+"6\r\n012345\r\n5\r\n67890\r\n0\r\n\r\n").refused(t, 413, "body_too_large")
	g.request(t, head("POST", "/x", "Content-Length: 10")+"0123456789").is(t, 200, "")
	g.request(t, head("POST", "/x", "Transfer-Encoding: chunked")+"a\r\n0123456789\r\n0\r\n\r\n").is(t, 200, "")
	close(whole)
	for n := range whole {
		if n != 10 {
			t.Errorf("the upstream took %d bytes for a whole body", n)
		}
	}
}
