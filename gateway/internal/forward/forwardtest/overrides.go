package forwardtest

import (
	"strings"
	"testing"
	"time"

	"specialroutes.example/services/override"
	"specialroutes.example/services/routing"
)

func (s *suite) testOverrides(t *testing.T) {
	t.Run("of the service asked for are obeyed", s.testObeyed)
	t.Run("that are not valid are removed and named", s.testInvalid)
	t.Run("to a variant that is away are 503", s.testOverrideAway)
	t.Run("without keys none is valid", s.testNoKeys)
}

// keysOf returns the keys of a file with one key for each secret's letter.
func keysOf(t *testing.T, letters string) *override.Keys {
	t.Helper()
	var file strings.Builder
	for _, letter := range letters {
		file.WriteString(string(letter) + " " + strings.Repeat(string(letter), override.MinSecret) + "\n")
	}
	k, err := override.ParseKeys([]byte(file.String()))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func sign(t *testing.T, k *override.Keys, service, variant string, life time.Duration) string {
	t.Helper()
	now := time.Now()
	if life <= 0 { // one that was valid once
		now = now.Add(2*life - time.Hour)
	}
	token, err := k.Sign(override.Token{Service: service, Variant: variant, Expires: time.Now().Add(life)}, now)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (s *suite) testObeyed(t *testing.T) {
	keys := keysOf(t, "ab")
	old, oldHeads := recording(t)
	alternate, newHeads := recording(t)
	r := bookRecord("http://"+alternate.address(), 10)
	r.Rules = []routing.Rule{{Name: "all", Variant: new("old"), Match: []routing.Match{{On: "method", In: []string{"GET"}}}}}
	toNew, toOld := sign(t, keys, service, "new", time.Hour), sign(t, keys, service, "old", time.Hour)
	other := sign(t, keysOf(t, "b"), "other", "x", time.Hour)
	for _, tt := range []struct {
		name   string
		lines  []string
		active bool
		want   string // the variant
		reason string
	}{
		{"none", nil, true, "old", "rule:all"},
		{"header", []string{"Route-Override: " + toNew}, true, "new", "override"},
		{"cookie", []string{"Cookie: a=b; route-override=" + toNew + "; c=d"}, true, "new", "override"},
		{"several", []string{"Route-Override: " + other + " , " + toNew}, true, "new", "override"},
		{"lines", []string{"Route-Override: " + other, "Route-Override: " + toNew}, true, "new", "override"},
		{"the first of a service", []string{"Route-Override: " + toNew + "," + toOld}, true, "new", "override"},
		{"the header before the cookie", []string{"Cookie: route-override=" + toOld, "Route-Override: " + toNew}, true, "new", "override"},
		{"another service's", []string{"Route-Override: " + other}, true, "old", "rule:all"},
		{"not when inactive", []string{"Route-Override: " + toNew}, false, "old", "inactive"},
		{"an alias", []string{"Route_Override: " + toNew}, true, "old", "rule:all"},
		{"named as hop-by-hop", []string{"Connection: Route-Override", "Route-Override: " + toNew}, true, "old", "rule:all"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r.Active = new(tt.active)
			g := s.gateway(t, setup{instances: []string{old.address()}, records: []*routing.Record{r}, keys: keys})
			a := g.get(t, "/x", tt.lines...)
			a.is(t, 200, "ok")
			if v, why := a.Header.Get("X-Route-Variant"), a.Header.Get("X-Route-Reason"); v != tt.want || why != tt.reason {
				t.Errorf("variant %q for %q, want %q, %q", v, why, tt.want, tt.reason)
			}
			if private := a.Header.Get("Cache-Control") == "private"; private != (tt.reason == "override") {
				t.Errorf("Cache-Control = %q for the reason %s", a.Header.Get("Cache-Control"), tt.reason)
			}
			if got := a.Header.Get("X-Route-Override-Invalid"); got != "" {
				t.Errorf("called invalid: %q", got)
			}
			heads := oldHeads
			if tt.want == "new" {
				heads = newHeads
			}
			travelled := strings.Join(fieldLines(<-heads, "Route-Override"), ",")
			if strings.Contains(strings.Join(tt.lines, ""), other) && !strings.Contains(travelled, other) {
				t.Errorf("another service's override does not travel on: %q", travelled)
			}
		})
	}
}

func (s *suite) testInvalid(t *testing.T) {
	keys := keysOf(t, "a")
	up, heads := recording(t)
	r := bookRecord("http://"+closedPort(t), 10)
	g := s.gateway(t, setup{instances: []string{up.address()}, records: []*routing.Record{r}, keys: keys})
	good := sign(t, keys, "other", "x", time.Hour)
	forged := sign(t, keys, service, "new", time.Hour)
	forged = strings.Replace(forged, ".new.", ".old.", 1)
	n := 0
	for name, tt := range map[string]struct{ token, why string }{
		"forged":          {forged, "forged"},
		"expired":         {sign(t, keys, service, "new", -time.Hour), "expired"},
		"another's key":   {sign(t, keysOf(t, "z"), service, "new", time.Hour), "unknown-key"},
		"rubbish":         {strings.Repeat("x", 4096), "malformed"},
		"unknown variant": {sign(t, keys, service, "nobody", time.Hour), "unknown-variant"},
	} {
		for _, lines := range [][]string{
			{"Route-Override: " + good + ", " + tt.token},
			{"Route-Override: " + good, "Cookie: a=b;route-override=" + tt.token + "; c=d"},
		} {
			a := g.get(t, "/x", lines...)
			a.is(t, 200, "ok")
			if got := a.Header.Get("X-Route-Override-Invalid"); got != tt.why {
				t.Errorf("%s: named %q, want %q", name, got, tt.why)
			}
			got := <-heads
			if strings.Contains(got, tt.token) {
				t.Errorf("%s: it travels on:\n%.500s", name, got)
			}
			if kept := fieldLines(got, "Route-Override"); len(kept) != 1 || kept[0] != good {
				t.Errorf("%s: Route-Override = %q, want the valid one", name, kept)
			}
			if cookie := strings.Join(fieldLines(got, "Cookie"), ""); strings.Contains(lines[len(lines)-1], "Cookie") && cookie != "a=b; c=d" {
				t.Errorf("%s: Cookie = %q, want the others as they were", name, cookie)
			}
			n++
			if e := g.entries.wait(t, n)[n-1]; e.OverrideInvalid != tt.why {
				t.Errorf("%s: logged %q, want %q", name, e.OverrideInvalid, tt.why)
			}
		}
	}
	many := strings.Repeat("x, ", 16) + sign(t, keys, service, "new", time.Hour)
	if got := g.get(t, "/x", "Route-Override: "+many).Header.Get("X-Route-Variant"); got != "old" {
		t.Errorf("the seventeenth override is obeyed: variant %q", got)
	}
}

func (s *suite) testOverrideAway(t *testing.T) {
	keys := keysOf(t, "a")
	up := newUpstream(t, ok("old"))
	r := bookRecord("http://"+closedPort(t), 10)
	g := s.gateway(t, setup{instances: []string{up.address()}, records: []*routing.Record{r}, keys: keys})
	for range 5 { // by connects that fail, then by the open circuit
		g.get(t, "/x", "Route-Override: "+sign(t, keys, service, "new", time.Hour)).refused(t, 503, "override_unavailable")
	}
	if n := up.calls.Load(); n != 0 {
		t.Errorf("the default was called %d times, want 0", n)
	}
}

func (s *suite) testNoKeys(t *testing.T) {
	up, heads := recording(t)
	g := s.gateway(t, setup{instances: []string{up.address()}, records: []*routing.Record{bookRecord("http://"+closedPort(t), 10)}})
	a := g.get(t, "/x", "Route-Override: "+sign(t, keysOf(t, "a"), service, "new", time.Hour))
	a.is(t, 200, "ok")
	if got := a.Header.Get("X-Route-Override-Invalid"); got != "unknown-key" {
		t.Errorf("named %q, want unknown-key", got)
	}
	if got := fieldLines(<-heads, "Route-Override"); got != nil {
		t.Errorf("it travels on: %q", got)
	}
}
