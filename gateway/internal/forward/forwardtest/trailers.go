package forwardtest

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"specialroutes.example/gateway/internal/config"
)

func (s *suite) testTrailers(t *testing.T) {
	t.Run("of requests pass", s.testRequestTrailers)
	t.Run("of answers pass", s.testAnswerTrailers)
}

// trailersOf answers with the trailers that came.
func trailersOf(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	var all []string
	for name, lines := range r.Trailer {
		all = append(all, fmt.Sprintf("%s=%s", name, strings.Join(lines, "|")))
	}
	slices.Sort(all)
	_, _ = io.WriteString(w, strings.Join(all, " "))
}

// Rows 14 and 15: a trailer passes if it was announced and means nothing before
// the body; one that only we may set does not.
func (s *suite) testRequestTrailers(t *testing.T) {
	up := newUpstream(t, trailersOf)
	g := s.gateway(t, setup{instances: []string{up.address()}, config: func(c *config.Config) {
		c.SensitiveHeaders = []string{"X-Secret"}
	}})
	tests := []struct{ announced, sent, want string }{
		{"X-T", "X-T: v", "X-T=v"},
		{"X-T, X-U", "X-U: 2\r\nX-T: 1", "X-T=1 X-U=2"},
		{"X-T", "X-T: 1\r\nX-T: 2", "X-T=1|2"},
		{"X-T", "X-T: v\r\nX-Unannounced: v", "X-T=v"},
		{"", "X-T: v", ""},
		{"X-T, Authorization", "Authorization: v\r\nX-T: v", "X-T=v"},
		{"X-Forwarded-For, X-T", "X-Forwarded-For: 6.6.6.6\r\nX-T: v", "X-T=v"},
		{"X-Route-Variant, tmx-correlation-id", "X-Route-Variant: v\r\ntmx-correlation-id: v", ""},
		{"X_Forwarded_For, X-T", "X_Forwarded_For: v\r\nX-T: v", "X-T=v"},
		{"X-Secret, X-T", "X-Secret: v\r\nX-T: v", "X-T=v"},
		{"X-T", "X-T: v\r\nHost: b\r\nX-Forwarded-For: 6.6.6.6", "X-T=v"},
	}
	for _, tt := range tests {
		lines := []string{"Transfer-Encoding: chunked"}
		if tt.announced != "" {
			lines = append(lines, "Trailer: "+tt.announced)
		}
		a := g.request(t, head("POST", "/x", lines...)+"2\r\nhi\r\n0\r\n"+tt.sent+"\r\n\r\n")
		a.is(t, 200, tt.want)
	}
	for _, framing := range []string{"Content-Length", "Transfer-Encoding", "Trailer"} {
		a := g.request(t, head("POST", "/x", "Transfer-Encoding: chunked", "Trailer: "+framing)+"0\r\n"+framing+": 9\r\n\r\n")
		if a.StatusCode != 400 {
			t.Errorf("trailer %s: status %d, want 400", framing, a.StatusCode)
		}
	}
}

func (s *suite) testAnswerTrailers(t *testing.T) {
	up := answering(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T, Set-Cookie, X-Route-Variant\r\n\r\n"+
		"2\r\nhi\r\n0\r\nX-T: v\r\nSet-Cookie: a=b\r\nX-Route-Variant: v\r\n\r\n")
	g := s.gateway(t, setup{instances: []string{up.address()}})
	a := g.get(t, "/x", "TE: trailers")
	a.is(t, 200, "hi")
	if len(a.Trailer) != 1 || a.Trailer.Get("X-T") != "v" {
		t.Errorf("trailers = %v, want X-T alone", a.Trailer)
	}
}
