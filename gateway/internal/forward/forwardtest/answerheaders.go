package forwardtest

import (
	"strings"
	"testing"

	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/services/routing"
)

func (s *suite) testAnswerHeaders(t *testing.T) {
	t.Run("pass as they are", s.testAnswerFieldsPass)
	t.Run("nothing is made up", s.testAnswerNothingMadeUp)
	t.Run("ours replace the upstream's", s.testOursReplace)
	t.Run("the route may be hidden", s.testHidden)
}

func (s *suite) testAnswerFieldsPass(t *testing.T) {
	lines := []string{
		"Server: upstream/1", "Date: Tue, 15 Nov 1994 08:12:31 GMT", "Content-Type: text/x", "ETag: \"x\"", "X-A: 1", "X-A: 2",
		"Set-Cookie: a=b; Path=/", "Set-Cookie: c=d", "Content-Encoding: gzip", "Location: http://10.0.0.5:8080/x",
		"Vary: Accept", "X-Obs: caf\xe9", "Cache-Control: max-age=1",
	}
	up := answering(t, "HTTP/1.1 200 OK\r\n"+strings.Join(lines, "\r\n")+"\r\nContent-Length: 2\r\n\r\nok")
	g := s.gateway(t, setup{instances: []string{up.address()}})
	a := g.get(t, "/x")
	a.is(t, 200, "ok")
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		if got := strings.Join(a.Header.Values(name), "|"); !strings.Contains("|"+got+"|", "|"+value+"|") {
			t.Errorf("%s = %q, want %q in it", name, got, value)
		}
	}
	if len(a.Header.Values("Date")) != 1 || len(a.Header.Values("Server")) != 1 {
		t.Errorf("Date %q, Server %q; want the upstream's alone", a.Header.Values("Date"), a.Header.Values("Server"))
	}
}

// Rows 79 and 129: no content type is guessed, no encoding undone, no
// Cache-Control made out of Pragma.
func (s *suite) testAnswerNothingMadeUp(t *testing.T) {
	up := answering(t, "HTTP/1.1 200 OK\r\nPragma: no-cache\r\nContent-Length: 15\r\n\r\n<html></html>\r\n")
	g := s.gateway(t, setup{instances: []string{up.address()}})
	a := g.get(t, "/x")
	a.is(t, 200, "<html></html>\r\n")
	for name := range a.Header {
		switch name {
		case "Pragma", "Content-Length", "Date", "Tmx-Correlation-Id", "X-Route-Variant", "X-Route-Reason":
		case "Cache-Control": // http.ReadResponse makes it up on our side of the test too
		default:
			t.Errorf("the answer has %s: %q", name, a.Header[name])
		}
	}
	c := g.dial(t)
	c.send(head("GET", "/x"))
	for {
		line, err := c.r.ReadString('\n')
		if err != nil || line == "\r\n" {
			break
		}
		if strings.HasPrefix(strings.ToLower(line), "cache-control") {
			t.Errorf("the gateway sends %q", line)
		}
	}
}

func (s *suite) testOursReplace(t *testing.T) {
	up := answering(t, "HTTP/1.1 200 OK\r\ntmx-correlation-id: theirs\r\nX-Route-Variant: theirs\r\nX-Route-Reason: theirs\r\n"+
		"X-Route-Fallback: theirs\r\nContent-Length: 0\r\n\r\n")
	g := s.gateway(t, setup{instances: []string{up.address()}})
	a := g.get(t, "/x", "tmx-correlation-id: mine")
	for name, want := range map[string]string{
		"Tmx-Correlation-Id": "mine", "X-Route-Variant": "default", "X-Route-Reason": "no-record", "X-Route-Fallback": "",
	} {
		if got := strings.Join(a.Header.Values(name), "|"); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
}

func (s *suite) testHidden(t *testing.T) {
	up, heads := recording(t)
	r := bookRecord("http://"+closedPort(t), 0)
	g := s.gateway(t, setup{
		instances: []string{up.address()}, records: []*routing.Record{r}, draw: always(10),
		config: func(c *config.Config) { c.ExposeRoute = false },
	})
	a := g.get(t, "/x")
	a.is(t, 200, "ok")
	for _, name := range []string{"X-Route-Variant", "X-Route-Reason", "X-Route-Fallback"} {
		if got := a.Header.Values(name); got != nil {
			t.Errorf("the answer has %s: %q", name, got)
		}
	}
	if got := fieldLines(<-heads, "X-Route-Reason"); len(got) != 1 || got[0] != "draw" {
		t.Errorf("X-Route-Reason upstream = %q, want draw", got)
	}
	if e := g.entries.only(t); e.Fallback != "wanted=new; reason=connect" {
		t.Errorf("logged fallback = %q", e.Fallback)
	}
}
