package forwardtest

import (
	"bufio"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"specialroutes.example/services/routing"
)

func (s *suite) testAnswers(t *testing.T) {
	t.Run("pass whatever their status", s.testStatus)
	t.Run("without a body", s.testBodiless)
	t.Run("stray bytes never become the next answer", s.testStrayBytes)
	t.Run("of every framing", s.testAnswerFraming)
	t.Run("over TLS", s.testTLSUpstream)
}

// Row 81: an answer of the upstream is its own business; redirects are not
// followed.
func (s *suite) testStatus(t *testing.T) {
	for _, status := range []string{"200 OK", "201 Created", "299 Odd", "301 Moved", "302 Found", "307 T", "404 Not Found", "418 Teapot", "500 Oops", "503 No", "599 X"} {
		up := answering(t, "HTTP/1.1 "+status+"\r\nLocation: http://127.0.0.1:1/x\r\nContent-Length: 4\r\n\r\nbody")
		g := s.gateway(t, setup{instances: []string{up.address()}})
		a := g.get(t, "/x")
		if got := fmt.Sprint(a.StatusCode); got != status[:3] || a.body != "body" || a.Header.Get("Location") != "http://127.0.0.1:1/x" {
			t.Errorf("%s arrives as %d %q", status, a.StatusCode, a.body)
		}
		if e := g.entries.only(t); e.Code != "" || fmt.Sprint(e.Status) != status[:3] {
			t.Errorf("%s is logged as %d %q", status, e.Status, e.Code)
		}
	}
}

// Row 76.
func (s *suite) testBodiless(t *testing.T) {
	tests := []struct{ name, method, answer, length string }{
		{"HEAD with a length", "HEAD", "200 OK\r\nContent-Length: 1234\r\n\r\n", "1234"},
		{"HEAD chunked", "HEAD", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", ""},
		{"HEAD of nothing", "HEAD", "200 OK\r\nContent-Length: 0\r\n\r\n", "0"},
		{"204", "GET", "204 No Content\r\n\r\n", ""},
		{"304", "GET", "304 Not Modified\r\nETag: \"x\"\r\n\r\n", ""},
		{"304 with a length", "GET", "304 Not Modified\r\nContent-Length: 5\r\n\r\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			up := answering(t, "HTTP/1.1 "+tt.answer)
			g := s.gateway(t, setup{instances: []string{up.address()}})
			c := g.dial(t)
			for range 3 { // on one connection on either side
				c.send(head(tt.method, "/x"))
				a := c.read(tt.method)
				if a.body != "" || a.err != nil || len(a.TransferEncoding) > 0 && tt.method != "HEAD" {
					t.Fatalf("answer = %d %q %v %v", a.StatusCode, a.body, a.TransferEncoding, a.err)
				}
				if got := a.Header.Get("Content-Length"); got != tt.length && tt.name != "304 with a length" {
					t.Errorf("Content-Length = %q, want %q", got, tt.length)
				}
			}
		})
	}
}

// Row 130: bytes that come behind the head of an answer without a body.
func (s *suite) testStrayBytes(t *testing.T) {
	const stray = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"
	for _, tt := range []struct{ method, answer string }{
		{"GET", "204 No Content\r\n\r\n"},
		{"GET", "204 No Content\r\nContent-Length: 53\r\n\r\n"},
		{"GET", "304 Not Modified\r\n\r\n"},
		{"HEAD", "200 OK\r\nContent-Length: 53\r\n\r\n"},
	} {
		up := answering(t, "HTTP/1.1 "+tt.answer+stray)
		g := s.gateway(t, setup{instances: []string{up.address()}})
		for range 20 {
			a := g.request(t, head(tt.method, "/x"))
			if want, _, _ := strings.Cut(tt.answer, " "); fmt.Sprint(a.StatusCode) != want || a.body != "" {
				t.Fatalf("%s %s: answer = %d %q", tt.method, tt.answer[:3], a.StatusCode, a.body)
			}
		}
		if n := up.accepted.Load(); n != 20 {
			t.Errorf("%s %s: %d connections for 20 requests; one with stray bytes is used again", tt.method, tt.answer[:3], n)
		}
	}
}

func (s *suite) testAnswerFraming(t *testing.T) {
	long := strings.Repeat("0123456789", 100_000)
	for name, answer := range map[string]string{
		"length":            "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + long,
		"chunked":           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nF4240;a=b\r\n" + long + "\r\n0\r\n\r\n",
		"until the end":     "HTTP/1.1 200 OK\r\n\r\n" + long,
		"1.0 until the end": "HTTP/1.0 200 OK\r\n\r\n" + long,
		"bare LF":           "HTTP/1.1 200 OK\nContent-Length: 1000000\n\n" + long,
	} {
		t.Run(name, func(t *testing.T) {
			up := newRaw(t, func(u *raw, c net.Conn, r *bufio.Reader) {
				if u.readHead(r) != "" {
					_, _ = io.WriteString(c, answer)
				}
			})
			g := s.gateway(t, setup{instances: []string{up.address()}})
			if a := g.get(t, "/x"); a.StatusCode != 200 || a.body != long || a.err != nil {
				t.Errorf("status %d, %d bytes, %v; want 200, %d, nil", a.StatusCode, len(a.body), a.err, len(long))
			}
			if e := g.entries.only(t); e.BytesOut != int64(len(long)) {
				t.Errorf("logged %d bytes out, want %d", e.BytesOut, len(long))
			}
			if a := g.request(t, strings.Replace(head("GET", "/x"), "HTTP/1.1", "HTTP/1.0", 1)); a.body != long || a.err != nil {
				t.Errorf("HTTP/1.0: %d bytes, %v; want %d, nil", len(a.body), a.err, len(long))
			}
		})
	}
}

func (s *suite) testTLSUpstream(t *testing.T) {
	up := httptest.NewTLSServer(http.HandlerFunc(ok("secured")))
	defer up.Close()
	roots := x509.NewCertPool()
	roots.AddCert(up.Certificate())
	for _, trusted := range []bool{true, false} {
		o := setup{records: []*routing.Record{bookRecord(up.URL, 0)}, draw: always(10)}
		if trusted {
			o.roots = roots
		}
		a := s.gateway(t, o).get(t, "/x")
		if trusted {
			a.is(t, 200, "secured")
		} else {
			a.refused(t, 502, "connect_failed")
		}
	}
}
