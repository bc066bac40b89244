package forwardtest

import (
	"strings"
	"testing"

	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/services/routing"
)

func (s *suite) testPath(t *testing.T) {
	t.Run("bytes reach the upstream as they were sent", s.testPathBytes)
	t.Run("what could be read in two ways is refused", s.testPathRefused)
	t.Run("other forms of the request-target", s.testTargetForms)
	t.Run("only what the table names is reachable", s.testNoRoute)
	t.Run("a prefix may stay", s.testPrefixStays)
	t.Run("a base of the endpoint comes first", s.testBase)
}

// targets are what must pass byte for byte, path and query (rows 33, 35, 37, 39,
// 96, and 34 as far as it passes).
func targets() []string {
	many := strings.Repeat("a=1&", 10_001) + "hidden=y"
	return []string{
		"/v1/organizations/e254f8c-c442-4ebe-a82a-e2fc1d1ff78a",
		"/a%2Fb", "/a%2fb", "/test/%2F/foo", "/%3B", "/;a=b", "/a;..", "/%3f%23",
		"/a%20b/%C3%A9", "/%252e%252e/x", "/%ff", "/%0d%0aFAKE%20LINE",
		`/{a}|b"c<d>e^f` + "`g", "/[x]", "/~!$&'()*+,=:@", "/...", "/.a",
		"//", "//evil.com/", "///", "//{x}", "///{x}?y", "//a//b//", "/a//",
		"/?", "/??", "/?a", "/?a=1;b=2&c=3", "/?a=%zz&c=3", "/?x=%2F%20+", "/?q=/../", "/?a#b",
		"/?\x80\xff", `/?"{}|\^` + "`", "/?" + many[:8000],
		"", "?x=1", "?",
	}
}

func (s *suite) testPathBytes(t *testing.T) {
	up, heads := recording(t)
	g := s.gateway(t, setup{instances: []string{up.address()}})
	for _, target := range targets() {
		g.get(t, target).is(t, 200, "ok")
		want := target
		if !strings.HasPrefix(want, "/") {
			want = "/" + want
		}
		line, _, _ := strings.Cut(<-heads, "\r\n")
		if line != "GET "+want+" HTTP/1.1" {
			t.Errorf("%.100q arrives as %.100q", target, line)
		}
	}
}

// Rows 30, 32, 34, 36 and 38.
func (s *suite) testPathRefused(t *testing.T) {
	up := newUpstream(t, ok("reached"))
	g := s.gateway(t, setup{instances: []string{up.address()}})
	for _, path := range []string{
		"/..", "/../admin", "/%2e%2e/admin", "/.%2e/admin", "/..;/admin", "/./admin", "/.", "/..;x=y", "/a%2F..", "/..%2fadmin",
		"/a%5cb", "/%5C..", `/a\b`, `/a\..\b`, "/%00", "/%zz", "/%", "/%2", "/a\x80b", "/a#/admin", "/a#",
	} {
		a := g.get(t, path)
		if code := a.problem(t)["code"]; a.StatusCode != 400 || code != "bad_path" && code != "bad_request" {
			t.Errorf("%q: answer %d %s, want 400", path, a.StatusCode, a.body)
		}
	}
	g.request(t, "GET /api%2e/organization HTTP/1.1\r\nHost: a\r\n\r\n").refused(t, 404, "no_route")
	if n := up.calls.Load(); n != 0 {
		t.Errorf("the upstream was called %d times, want 0", n)
	}
}

func (s *suite) testTargetForms(t *testing.T) {
	up, heads := recording(t)
	g := s.gateway(t, setup{instances: []string{up.address()}})
	g.request(t, "GET http://a"+prefix+"/x%2Fy?q=1 HTTP/1.1\r\nHost: a\r\n\r\n").is(t, 200, "ok")
	if line, _, _ := strings.Cut(<-heads, "\r\n"); line != "GET /x%2Fy?q=1 HTTP/1.1" {
		t.Errorf("absolute-form arrives as %q", line)
	}
	g.request(t, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").refused(t, 400, "bad_path")
	g.request(t, "CONNECT "+prefix+"/x HTTP/1.1\r\nHost: a\r\n\r\n").refused(t, 400, "bad_request")
	g.request(t, "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n").refused(t, 400, "bad_path")
	if up.calls.Load() != 1 {
		t.Errorf("the upstream was called %d times, want 1", up.calls.Load())
	}
}

// Rows 32, 41 and 116: nothing is reachable but the table's paths, on the raw
// bytes and on a segment's border.
func (s *suite) testNoRoute(t *testing.T) {
	up := newUpstream(t, ok("reached"))
	g := s.gateway(t, setup{instances: []string{up.address()}})
	for _, path := range []string{
		"/", "/api", "/api/", "/api/organizations", "/api/organization2/x", "/API/organization", "/%61pi/organization",
		"/api%2Forganization", "//api/organization", "/orgservice-new/v1", "/metrics", "/healthz", "/debug/pprof/",
	} {
		a := g.request(t, "GET "+path+" HTTP/1.1\r\nHost: a\r\ntmx-correlation-id: mine\r\n\r\n")
		a.refused(t, 404, "no_route")
		if got := a.Header.Values("Tmx-Correlation-Id"); len(got) != 1 || got[0] != "mine" {
			t.Errorf("%s: correlation ID %q, want the client's", path, got)
		}
	}
	if n := up.calls.Load(); n != 0 {
		t.Errorf("the upstream was called %d times, want 0", n)
	}
}

func (s *suite) testPrefixStays(t *testing.T) {
	up, heads := recording(t)
	g := s.gateway(t, setup{instances: []string{up.address()}, config: func(c *config.Config) {
		c.Routes[0].StripPrefix = new(false)
	}})
	g.get(t, "/%2F{").is(t, 200, "ok")
	got := <-heads
	if line, _, _ := strings.Cut(got, "\r\n"); line != "GET "+prefix+"/%2F{ HTTP/1.1" {
		t.Errorf("arrives as %q", line)
	}
	if lines := fieldLines(got, "X-Forwarded-Prefix"); lines != nil {
		t.Errorf("X-Forwarded-Prefix = %q where nothing was cut off", lines)
	}
}

func (s *suite) testBase(t *testing.T) {
	up, heads := recording(t)
	for base, want := range map[string]string{
		"":          "//x?y",
		"/base":     "/base//x?y",
		"/b%2Fc/d":  "/b%2Fc/d//x?y",
		"/~a!$&'()": "/~a!$&'()//x?y",
	} {
		g := s.gateway(t, setup{
			records: []*routing.Record{bookRecord("http://"+up.address()+base, 0)},
			draw:    always(10),
		})
		g.get(t, "//x?y").is(t, 200, "ok")
		if line, _, _ := strings.Cut(<-heads, "\r\n"); line != "GET "+want+" HTTP/1.1" {
			t.Errorf("below the base %q it arrives as %q, want %q", base, line, want)
		}
	}
}

// Row 42.
func (s *suite) testHost(t *testing.T) {
	up := newUpstream(t, ok("reached"))
	g := s.gateway(t, setup{instances: []string{up.address()}})
	for _, host := range []string{
		"Host: a b", "Host: a/b?c", "Host: u@b", "Host: a\x00b", "Host: a:99999x", "Host: a:99999", "Host: a:0",
		"Host: [fe80::1%25eth0]:80", "Host: [1.2.3.4]", "Host: [::1", "Host: ", "Host: a\r\nHost: b", "X: no-host",
	} {
		a := g.request(t, "GET "+prefix+"/x HTTP/1.1\r\n"+host+"\r\n\r\n")
		if a.StatusCode != 400 {
			t.Errorf("%q: status %d, want 400", host, a.StatusCode)
		}
	}
	for _, host := range []string{"a", "A.example:8080", "127.0.0.1", "[::1]:80", "under_score", "a."} {
		a := g.request(t, "GET "+prefix+"/x HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
		a.is(t, 200, "reached")
	}
	if n := up.calls.Load(); n != 6 {
		t.Errorf("the upstream was called %d times, want 6", n)
	}
}
