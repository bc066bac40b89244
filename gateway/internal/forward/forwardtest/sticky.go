package forwardtest

import (
	"net/http"
	"strings"
	"testing"

	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/services/routing"
)

// testSticky shows the gateway's cookie (wire.md, Gateway cookie).
func (s *suite) testSticky(t *testing.T) {
	t.Run("a client keeps the variant of its cookie", s.testKeeps)
	t.Run("a cookie is issued only where one is needed", s.testIssued)
	t.Run("an answer with a new cookie is the client's alone", s.testPrivate)
}

func sticking(alternate string) *routing.Record {
	r := bookRecord(alternate, 5)
	r.Sticky = &routing.Sticky{By: routing.ByGatewayCookie, MaxAge: new(int64(3600))}
	return r
}

func (s *suite) testKeeps(t *testing.T) {
	old, alternate := newUpstream(t, ok("OLD")), newUpstream(t, ok("NEW"))
	g := s.gateway(t, setup{instances: []string{old.address()}, records: []*routing.Record{sticking(alternate.URL)}})
	seen := make(map[string]int)
	for range 20 {
		first := g.get(t, "/x")
		cookies := first.Cookies()
		if len(cookies) != 1 || first.Header.Get("X-Route-Reason") != "sticky" {
			t.Fatalf("cookies %v for the reason %q, want one for sticky", cookies, first.Header.Get("X-Route-Reason"))
		}
		want := http.Cookie{Name: "sr-key", Value: cookies[0].Value, Path: "/", MaxAge: 3600, HttpOnly: true, SameSite: http.SameSiteLaxMode}
		if got := *cookies[0]; got.String() != want.String() {
			t.Errorf("cookie = %s, want %s", got.String(), want.String())
		}
		seen[first.body]++
		for range 3 {
			again := g.get(t, "/x", "Cookie: a=b; sr-key="+cookies[0].Value)
			if again.body != first.body || again.Cookies() != nil && len(again.Cookies()) > 0 {
				t.Fatalf("%q, then %q with cookies %v", first.body, again.body, again.Cookies())
			}
		}
	}
	if seen["OLD"] == 0 || seen["NEW"] == 0 {
		t.Errorf("20 keys all lead to one variant: %v", seen)
	}
}

func (s *suite) testIssued(t *testing.T) {
	old := newUpstream(t, ok("OLD"))
	ruled := sticking("http://" + closedPort(t))
	ruled.Rules = []routing.Rule{{Name: "all", Variant: new("old"), Match: []routing.Match{{On: "method", In: []string{"GET"}}}}}
	inactive := sticking("http://" + closedPort(t))
	inactive.Active = new(false)
	for name, r := range map[string]*routing.Record{"a rule decided": ruled, "inactive": inactive, "not sticky": bookRecord("http://"+closedPort(t), 10)} {
		g := s.gateway(t, setup{instances: []string{old.address()}, records: []*routing.Record{r}})
		if a := g.get(t, "/x"); len(a.Cookies()) > 0 {
			t.Errorf("%s: the client gets %v", name, a.Cookies())
		}
	}
	g := s.gateway(t, setup{instances: []string{old.address()}, records: []*routing.Record{sticking(old.URL)}})
	for _, rubbish := range []string{"", "x", strings.Repeat("k", 23), strings.Repeat("=", 22), strings.Repeat("k", 4096)} {
		if a := g.get(t, "/x", "Cookie: sr-key="+rubbish); len(a.Cookies()) != 1 {
			t.Errorf("the cookie %.30q counts as one: %v", rubbish, a.Cookies())
		}
	}
}

// The route's sensitive headers do not hold back a cookie of ours.
func (s *suite) testPrivate(t *testing.T) {
	for theirs, want := range map[string]string{
		"":                                  "private",
		"Cache-Control: public, max-age=60": "max-age=60, private",
		"Cache-Control: max-age=60\r\nCache-Control: public": "max-age=60, private",
		"Cache-Control: no-store":                            "no-store",
		"Cache-Control: Private":                             "Private",
	} {
		up := answering(t, "HTTP/1.1 200 OK\r\nSet-Cookie: theirs=1\r\n"+theirs+strings.Repeat("\r\n", min(len(theirs), 1))+"Content-Length: 2\r\n\r\nok")
		g := s.gateway(t, setup{
			instances: []string{up.address()}, records: []*routing.Record{sticking("http://" + up.address())},
			config: func(c *config.Config) { c.SensitiveHeaders = []string{"Set-Cookie", "Cookie"} },
		})
		a := g.get(t, "/x")
		a.is(t, 200, "ok")
		if got := strings.Join(a.Header.Values("Cache-Control"), "|"); got != want {
			t.Errorf("%q becomes %q, want %q", theirs, got, want)
		}
		if got := a.Cookies(); len(got) != 1 || got[0].Name != "sr-key" {
			t.Errorf("cookies = %v, want ours alone", got)
		}
	}
}

func (s *suite) testVary(t *testing.T) {
	ruled := bookRecord("http://"+closedPort(t), 10)
	ruled.Rules = []routing.Rule{{Name: "r", Variant: new("old"), Match: []routing.Match{
		{On: "header", Name: new("tmx-user-id"), Present: new(true)},
		{On: "cookie", Name: new("t"), Present: new(true)},
	}}}
	for _, tt := range []struct {
		record     *routing.Record
		theirs     string
		want, said string
	}{
		{ruled, "", "Cookie, Tmx-User-Id", "rules"},
		{ruled, "Vary: Accept-Encoding\r\n", "Accept-Encoding, Cookie, Tmx-User-Id", "rules and the upstream"},
		{ruled, "Vary: a\r\nVary: COOKIE, b\r\n", "a, COOKIE, b, Tmx-User-Id", "the same twice"},
		{ruled, "Vary: *\r\n", "*", "all"},
		{bookRecord("http://"+closedPort(t), 10), "Vary: a\r\n", "a", "no rules"},
		{nil, "", "", "no record"},
	} {
		up := answering(t, "HTTP/1.1 200 OK\r\n"+tt.theirs+"Content-Length: 0\r\n\r\n")
		o := setup{instances: []string{up.address()}}
		if tt.record != nil {
			o.records = []*routing.Record{tt.record}
		}
		g := s.gateway(t, o)
		for _, lines := range [][]string{nil, {"tmx-user-id: u", "Cookie: t=1"}} {
			if got := strings.Join(g.get(t, "/x", lines...).Header.Values("Vary"), "|"); got != tt.want {
				t.Errorf("%s: Vary = %q, want %q", tt.said, got, tt.want)
			}
		}
	}
}
