package forwardtest

import (
	"bufio"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/services/routing"
)

func (s *suite) testRequestHeaders(t *testing.T) {
	t.Run("all but the client's connection passes", s.testFieldsPass)
	t.Run("nothing is made up", s.testNothingMadeUp)
	t.Run("the correlation ID", s.testCorrelation)
	t.Run("what only we may set", s.testOwned)
	t.Run("the host", s.testUpstreamHost)
	t.Run("sensitive headers go after routing has read them", s.testSensitive)
	t.Run("a header that routing reads has one meaning", s.testOneMeaning)
	t.Run("routing headers of clients", s.testClientLabels)
}

func (s *suite) testFieldsPass(t *testing.T) {
	up, heads := recording(t)
	g := s.gateway(t, setup{instances: []string{up.address()}})
	lines := []string{
		"Authorization: Bearer x", "Cookie: a=b; c", "Cookie: d", "tmx-user-id: u-17", "X-Custom: ", "X-Custom: two",
		"Accept-Language: de;q=0.5", "traceparent: 00-1-2-01", "tracestate: a=1,b=2", "baggage: k=v", "User-Agent: curl/8",
		"Range: bytes=0-1", "If-None-Match: \"x\"", "X-Obs: caf\xe9", "Idempotency-Key: k", "Via: 1.1 other", "version: 2",
		"Upgrade-Insecure-Requests: 1", "Dnt: 1", "Te: trailers",
	}
	g.get(t, "/x", lines...).is(t, 200, "ok")
	got := <-heads
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		if !slices.Contains(fieldLines(got, name), strings.TrimSpace(value)) {
			t.Errorf("%q does not arrive:\n%s", line, got)
		}
	}
}

// Row 79, and what a Go client or server would add by itself.
func (s *suite) testNothingMadeUp(t *testing.T) {
	up, heads := recording(t)
	g := s.gateway(t, setup{instances: []string{up.address()}})
	g.get(t, "/x").is(t, 200, "ok")
	got := <-heads
	var names []string
	for line := range strings.SplitSeq(strings.TrimSpace(got), "\r\n") {
		if name, _, ok := strings.Cut(line, ":"); ok && !strings.Contains(name, " ") {
			names = append(names, strings.ToLower(name))
		}
	}
	slices.Sort(names)
	want := []string{
		"forwarded", "host", "tmx-correlation-id", "x-forwarded-for", "x-forwarded-host", "x-forwarded-port",
		"x-forwarded-prefix", "x-forwarded-proto", "x-real-ip", "x-route-reason", "x-route-variant",
	}
	if !slices.Equal(names, want) {
		t.Errorf("fields upstream = %q, want %q", names, want)
	}
}

func (s *suite) testCorrelation(t *testing.T) {
	up, heads := recording(t)
	tests := []struct {
		name string
		line []string
		kept string // "" is replaced
	}{
		{"a usable one", []string{"tmx-correlation-id: aZ09._:/+=@-"}, "aZ09._:/+=@-"},
		{"128 bytes", []string{"tmx-correlation-id: " + strings.Repeat("a", 128)}, strings.Repeat("a", 128)},
		{"129 bytes", []string{"tmx-correlation-id: " + strings.Repeat("a", 129)}, ""},
		{"none", nil, ""},
		{"an empty one", []string{"tmx-correlation-id: "}, ""},
		{"two lines", []string{"tmx-correlation-id: a", "tmx-correlation-id: b"}, ""},
		{"a comma", []string{"tmx-correlation-id: a,b"}, ""},
		{"a space", []string{"tmx-correlation-id: a b"}, ""},
		{"not ASCII", []string{"tmx-correlation-id: caf\xc3\xa9"}, ""},
		{"named as hop-by-hop", []string{"Connection: tmx-correlation-id", "tmx-correlation-id: a"}, ""},
		{"under an alias", []string{"tmx_correlation_id: a"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := s.gateway(t, setup{instances: []string{up.address()}})
			a := g.get(t, "/x", tt.line...)
			want := tt.kept
			if want == "" {
				want = "made-1"
			}
			got := <-heads
			if lines := fieldLines(got, "tmx-correlation-id"); len(lines) != 1 || lines[0] != want {
				t.Errorf("upstream sees %q, want %q", lines, want)
			}
			if lines := fieldLines(got, "tmx_correlation_id"); lines != nil {
				t.Errorf("the alias arrives: %q", lines)
			}
			if lines := a.Header.Values("tmx-correlation-id"); len(lines) != 1 || lines[0] != want {
				t.Errorf("the answer says %q, want %q", lines, want)
			}
			if e := g.entries.only(t); e.CorrelationID != want || e.CorrelationReplaced != (tt.kept == "") {
				t.Errorf("logged %q, replaced %v; want %q, %v", e.CorrelationID, e.CorrelationReplaced, want, tt.kept == "")
			}
		})
	}
}

// Rows 22, 28, 45 and 46: the client's own are removed, under any spelling.
func (s *suite) testOwned(t *testing.T) {
	up, heads := recording(t)
	g := s.gateway(t, setup{instances: []string{up.address()}})
	const forged = "6.6.6.6"
	var lines []string
	for _, name := range []string{
		"X-Route-Variant", "X-Route-Reason", "X-Route-Fallback", "x_route_variant", "X-Forwarded-For", "X_Forwarded_For",
		"X-Forwarded_For", "X.Forwarded.For", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Proto", "X-Forwarded-Prefix",
		"X-Forwarded-Uri", "X-Forwarded-Server", "Forwarded", "X-Real-IP", "X_Real_IP", "X-Original-URL", "X-Rewrite-URL",
		"Proxy", "Content_Length", "Transfer_Encoding",
	} {
		lines = append(lines, name+": "+forged, name+": "+forged)
	}
	g.get(t, "/x", lines...).is(t, 200, "ok")
	if got := <-heads; strings.Contains(got, forged) {
		t.Errorf("forged fields arrive:\n%s", got)
	}
}

func (s *suite) testUpstreamHost(t *testing.T) {
	up, heads := recording(t)
	for _, preserve := range []bool{false, true} {
		g := s.gateway(t, setup{instances: []string{up.address()}, config: func(c *config.Config) { c.Routes[0].PreserveHost = preserve }})
		g.request(t, "GET "+prefix+" HTTP/1.1\r\nHost: Shop.example:99\r\n\r\n").is(t, 200, "ok")
		want := up.address()
		if preserve {
			want = "Shop.example:99"
		}
		if got := fieldLines(<-heads, "Host"); len(got) != 1 || got[0] != want {
			t.Errorf("preserveHost %v: Host = %q, want %q", preserve, got, want)
		}
	}
}

func (s *suite) testSensitive(t *testing.T) {
	up := newRaw(t, func(u *raw, c net.Conn, r *bufio.Reader) {
		for head := u.readHead(r); head != ""; head = u.readHead(r) {
			seen := strings.Join(fieldLines(head, "Cookie"), "") + strings.Join(fieldLines(head, "X-Secret"), "")
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nSet-Cookie: s=1\r\nX-Secret: 1\r\nX-Other: 2\r\nContent-Length: "+
				string(rune('0'+len(seen)))+"\r\n\r\n"+seen)
		}
	})
	r := bookRecord("http://"+closedPort(t), 10)
	r.Rules = []routing.Rule{{Name: "cookie", Variant: new("old"),
		Match: []routing.Match{{On: "cookie", Name: new("t"), In: []string{"1"}}}}}
	g := s.gateway(t, setup{
		instances: []string{up.address()},
		records:   []*routing.Record{r},
		config:    func(c *config.Config) { c.SensitiveHeaders = []string{"cookie", "set-cookie", "x-secret"} },
	})
	a := g.get(t, "/x", "Cookie: t=1", "X-Secret: 1")
	a.is(t, 200, "")
	if a.Header.Get("X-Route-Reason") != "rule:cookie" {
		t.Errorf("reason = %q, want the rule that reads the cookie", a.Header.Get("X-Route-Reason"))
	}
	if a.Header["Set-Cookie"] != nil || a.Header["X-Secret"] != nil || a.Header.Get("X-Other") != "2" {
		t.Errorf("answer headers = %v, want the sensitive ones gone and the other there", a.Header)
	}
}

// Row 48 and 51.
func (s *suite) testOneMeaning(t *testing.T) {
	up := newUpstream(t, ok("ok"))
	r := bookRecord("http://"+closedPort(t), 10)
	r.Rules = []routing.Rule{{Name: "user", Variant: new("old"),
		Match: []routing.Match{{On: "header", Name: new("tmx-user-id"), In: []string{"u-17"}}}}}
	g := s.gateway(t, setup{instances: []string{up.address()}, records: []*routing.Record{r}})
	for _, lines := range [][]string{
		{"tmx-user-id: u-17", "tmx-user-id: u-17"},
		{"tmx-user-id: u-17", "TMX-USER-ID: u-18"},
		{"tmx-user-id: " + strings.Repeat("u", 256)},
		{"tmx-user-id: caf\xc3\xa9"},
		{"tmx-user-id: a\tb"},
	} {
		a := g.get(t, "/x", lines...)
		a.refused(t, 400, "bad_header")
		if p := a.problem(t); p["header"] != "Tmx-User-Id" {
			t.Errorf("the problem names %v, want the header", p["header"])
		}
	}
	for _, lines := range [][]string{{}, {"tmx-user-id: "}, {"tmx-user-id: u-17"}, {"X-Other: 1", "X-Other: 2"}, {"tmx-user-id: " + strings.Repeat("u", 255)}} {
		g.get(t, "/x", lines...).is(t, 200, "ok")
	}
	if n := up.calls.Load(); n != 5 {
		t.Errorf("the upstream was called %d times, want 5", n)
	}
}

func (s *suite) testClientLabels(t *testing.T) {
	up, heads := recording(t)
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	for _, tt := range []struct {
		whose   config.ClientLabels
		trusted []netip.Prefix
		kept    bool
	}{
		{config.ClientLabelsAll, nil, true},
		{config.ClientLabelsNone, loopback, false},
		{config.ClientLabelsTrusted, nil, false},
		{config.ClientLabelsTrusted, loopback, true},
	} {
		r := &routing.Record{Service: service, Active: new(true), LabelRules: []routing.LabelRule{
			{Header: "x-lane", Label: "lane", Mode: "lenient"},
		}}
		g := s.gateway(t, setup{instances: []string{up.address()}, records: []*routing.Record{r}, config: func(c *config.Config) {
			c.ClientLabels, c.TrustedProxies = tt.whose, tt.trusted
		}})
		g.get(t, "/x", "version: 1", "app: a", "zone: z", "x-lane: l", "X-Other: 1").is(t, 200, "ok")
		got := <-heads
		for _, name := range []string{"version", "app", "zone", "x-lane"} {
			if kept := fieldLines(got, name) != nil; kept != tt.kept {
				t.Errorf("clientLabels %s, trusted %v: %s kept %v, want %v", tt.whose, tt.trusted, name, kept, tt.kept)
			}
		}
		if fieldLines(got, "X-Other") == nil {
			t.Error("another header is removed")
		}
	}
}
