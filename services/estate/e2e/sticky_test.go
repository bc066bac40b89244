package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// stickyKeys are keys of many kinds, as they stand in a decoded query.
func stickyKeys(n int) []string {
	random := rand.New(rand.NewPCG(3, 14))
	keys := []string{"u-17", "u-42", " ", "a b", "ü", "Ω≈ç", "'", `"`, `\`, "a,b", "{}", "NULL", "\t", "🙂", strings.Repeat("k", 512)}
	for len(keys) < n {
		keys = append(keys, fmt.Sprintf("user-%d", random.Uint64()))
	}
	return keys
}

// assigned asks a gateway for the variant of each key, which the calls carry in
// the query as u; every one must be given by the key.
func assigned(t testing.TB, l *lab, keys []string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for i, variant := range each(t, len(keys), func(i int) (string, error) {
		got, err := do("GET", l.base+"/x?u="+url.QueryEscape(keys[i]), nil, nil)
		if err == nil && (got.status != 200 || routeOf(got).reason != "sticky") {
			err = fmt.Errorf("key %.50q: status %d, %+v", keys[i], got.status, routeOf(got))
		}
		return routeOf(got).variant, err
	}) {
		found[keys[i]] = variant
	}
	return found
}

// differing lists the keys that are not in the same variant.
func differing(a, b map[string]string) []string {
	var keys []string
	for key, variant := range a {
		if b[key] != variant {
			keys = append(keys, fmt.Sprintf("%.40q: %s and %s", key, variant, b[key]))
		}
	}
	return keys
}

func wantSame(t testing.TB, what string, got, want map[string]string) {
	t.Helper()
	if d := differing(want, got); len(d) > 0 || len(got) != len(want) {
		t.Errorf("%s: %d of %d keys differ, want and got: %.1000s", what, len(d), len(want), fmt.Sprint(d))
	}
}

func TestTheSameKeyIsInTheSameVariantOnEveryGatewayAfterARestartAndInPostgreSQL(t *testing.T) {
	s := postgres(t)
	l := newLab(t, labOptions{new: newUpstream(t, "new", echo)})
	other := l.twin(t, "lab-2", nil)
	const salt = "spring's ß"
	weights := []int64{3, 1, 2}
	l.set(t, l.spread([]string{fmt.Sprintf(`"sticky":{"by":"query","name":"u","salt":%q}`, salt)}, weights...))
	keys := stickyKeys(400)

	first := assigned(t, l, keys)
	counted := map[string]int{}
	for _, variant := range first {
		counted[variant]++
	}
	wantShares(t, counted, map[string]int64{"old": 3, "v1": 1, "v2": 2})
	wantSame(t, "the other gateway", assigned(t, other, keys), first)
	if code := l.gateway.stop(t); code != 0 {
		t.Errorf("the gateway ended with code %d", code)
	}
	l.startGateway(t)
	wantSame(t, "after a restart", assigned(t, l, keys), first)
	// Without specialroutes a gateway that starts has the records of its file.
	l.special.kill()
	other.gateway.stop(t)
	other.startGateway(t)
	wantSame(t, "after a restart from the file", assigned(t, other, keys), first)
	wantSame(t, "PostgreSQL", s.sticky(t, labService, salt, keys, []string{"old", "v1", "v2"}, weights), first)
}

// sticky runs docs/sticky.sql.
func (s *server) sticky(t testing.TB, service, salt string, keys, variants []string, weights []int64) map[string]string {
	t.Helper()
	query := strings.TrimSuffix(strings.TrimSpace(readFile(t, filepath.Join(repositoryRoot(t), "docs", "sticky.sql"))), ";")
	query = strings.Replace(query, "SELECT DISTINCT ON (key) key, variant", "SELECT DISTINCT ON (key) json_build_array(key, variant)", 1)
	literal := func(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
	list := func(texts []string) string {
		var quoted []string
		for _, text := range texts {
			quoted = append(quoted, literal(text))
		}
		return "ARRAY[" + strings.Join(quoted, ",") + "]"
	}
	rows := s.sql(t, s.newDatabase(t), fmt.Sprintf("SET client_encoding TO 'UTF8'; PREPARE sticky (text, text, text[], text[], bigint[]) AS\n%s;\nEXECUTE sticky (%s, %s, %s, %s, ARRAY%s)",
		query, literal(service), literal(salt), list(keys), list(variants), strings.ReplaceAll(fmt.Sprint(weights), " ", ",")))
	found := map[string]string{}
	for row := range strings.Lines(rows) {
		var pair []string
		if err := json.Unmarshal([]byte(row), &pair); err != nil || len(pair) != 2 {
			t.Fatalf("psql: %v: %q", err, row)
		}
		found[pair[0]] = pair[1]
	}
	return found
}

func TestTheKeyComesFromWhereTheRecordSays(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{config: map[string]string{"trustedProxies": "[127.0.0.1/32]"}})
	for by, carry := range map[string]func(key string) headers{
		`"by":"header","name":"tmx-user-id"`: func(key string) headers { return headers{{"Tmx-User-Id", key}} },
		`"by":"cookie","name":"session"`:     func(key string) headers { return headers{{"Cookie", "xsession=a; session=" + key + "; session=b"}} },
	} {
		t.Run(by, func(t *testing.T) {
			l.set(t, l.record(1, 1, `"sticky":{`+by+`}`))
			want := assignedBy(t, l, func(i int) headers { return carry(fmt.Sprintf("user-%d", i)) })
			again := assignedBy(t, l, func(i int) headers { return carry(fmt.Sprintf("user-%d", i)) })
			if !slices.Equal(again, want) {
				t.Errorf("the second time %v, the first time %v", again, want)
			}
			if !slices.Contains(want, "old") || !slices.Contains(want, "new") {
				t.Errorf("forty users are all in one variant: %v", want)
			}
			for name, h := range map[string]headers{"no key": nil, "an empty key": carry("")} {
				if r := routeOf(l.get(t, "/x", h...)); r.reason != "draw" {
					t.Errorf("%s: the reason is %q, want draw", name, r.reason)
				}
			}
		})
	}
	t.Run("the client's address, of IPv6 the first half", func(t *testing.T) {
		l.set(t, l.record(1, 1, `"sticky":{"by":"client"}`))
		from := func(format string) func(int) headers {
			return func(i int) headers { return headers{{"X-Forwarded-For", fmt.Sprintf(format, i)}} }
		}
		want := assignedBy(t, l, from("2001:db8:0:%x::1"))
		if again := assignedBy(t, l, from("2001:db8:0:%x:ffff:1:2:3")); !slices.Equal(again, want) {
			t.Errorf("another address of the same /64: %v, want %v", again, want)
		}
		plain := assignedBy(t, l, from("192.0.2.%d"))
		if again := assignedBy(t, l, from("::ffff:192.0.2.%d")); !slices.Equal(again, plain) {
			t.Errorf("an IPv4 address in IPv6 clothes: %v, want %v", again, plain)
		}
		for _, list := range [][]string{want, plain} {
			if !slices.Contains(list, "old") || !slices.Contains(list, "new") {
				t.Errorf("forty clients are all in one variant: %v", list)
			}
		}
	})
}

// assignedBy makes a call for each of forty users and returns the variants, all of
// them given by a key.
func assignedBy(t testing.TB, l *lab, h func(i int) headers) []string {
	t.Helper()
	return each(t, 40, func(i int) (string, error) {
		got, err := do("GET", l.base+"/x", nil, h(i))
		if err == nil && (got.status != 200 || routeOf(got).reason != "sticky") {
			err = fmt.Errorf("%v: status %d, %+v: %.200s", h(i), got.status, routeOf(got), got.body)
		}
		return routeOf(got).variant, err
	})
}

func TestAMissingAnEmptyAndATooLongKeyAreOneCase(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	keys := map[string]string{"missing": "", "empty": "u=", "of 513 bytes": "u=" + strings.Repeat("k", 513), "of 600 bytes": "u=" + strings.Repeat("k", 600)}
	for _, place := range []string{"query", "cookie"} {
		ask := func(key string) answer {
			if place == "query" {
				return l.get(t, "/x?"+key)
			}
			return l.get(t, "/x", [2]string{"Cookie", key})
		}
		sticky := func(missing string) string { return fmt.Sprintf(`"sticky":{"by":%q,"name":"u"%s}`, place, missing) }
		// The default has no weight, so that it is told from the draw.
		l.set(t, l.record(0, 1, sticky(`,"missing":"default"`)))
		for name, key := range keys {
			wantRouted(t, ask(key), "old", "sticky")
			if t.Failed() {
				t.Fatalf("%s, %s, missing: default", place, name)
			}
		}
		wantRouted(t, ask("u="+strings.Repeat("k", 512)), "new", "sticky")
		for _, missing := range []string{"", `,"missing":"draw"`} {
			l.set(t, l.record(0, 1, sticky(missing)))
			for name, key := range keys {
				wantRouted(t, ask(key), "new", "draw")
				if t.Failed() {
					t.Fatalf("%s, %s, %s", place, name, missing)
				}
			}
		}
	}
}

func TestOneUserInTenIsInANewVariantHoweverOftenHeCalls(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	l.set(t, l.record(9, 1, `"sticky":{"by":"query","name":"u"}`))
	keys := stickyKeys(500)
	first := assigned(t, l, keys)
	for range 2 {
		wantSame(t, "again", assigned(t, l, keys), first)
	}
	counted := map[string]int{}
	for _, variant := range first {
		counted[variant]++
	}
	wantShares(t, counted, map[string]int64{"old": 9, "new": 1})

	// A ramp keeps everybody who is in; a weight of 0 takes everybody out at once,
	// and the way back finds the same users; a salt deals anew.
	at := func(members string, oldWeight, newWeight int64) map[string]string {
		l.set(t, l.record(oldWeight, newWeight, members))
		return assigned(t, l, keys)
	}
	const plain = `"sticky":{"by":"query","name":"u"}`
	third := at(plain, 7, 3)
	for key, variant := range first {
		if variant == "new" && third[key] != "new" {
			t.Errorf("%.40q was in at one tenth and is out at three", key)
		}
	}
	for key, variant := range at(plain, 1, 0) {
		if variant != "old" {
			t.Errorf("%.40q is in %s, which has no weight", key, variant)
		}
	}
	wantSame(t, "back at one tenth", at(plain, 9, 1), first)
	salted := at(`"sticky":{"by":"query","name":"u","salt":"2"}`, 9, 1)
	if d := differing(first, salted); len(d) < 20 {
		t.Errorf("a new salt moved %d of %d users, want about 90", len(d), len(keys))
	}
}

func TestAnInstanceThatGoesAwayTakesNobodyOutOfHisVariant(t *testing.T) {
	t.Parallel()
	labelled, plain := upstreams(t, 2, "labelled"), upstreams(t, 2, "plain")
	l := newLab(t, labOptions{config: map[string]string{"instances": instancesOf(plain, labelled)}})
	l.set(t, recordOf(labService, []string{`{"name":"old","weight":1}`, `{"name":"new","weight":1,"selector":{"version":"two"}}`},
		`"sticky":{"by":"query","name":"u"}`))
	keys := stickyKeys(100)
	want := assigned(t, l, keys)
	labelled[0].CloseClientConnections()
	labelled[0].Close()
	wantSame(t, "with one instance gone", assigned(t, l, keys), want)
	if plain[0].count()+plain[1].count() == 0 || labelled[1].count() == 0 {
		t.Error("one of the variants was never asked")
	}
}

// keyCookies are the sr-key cookies that an answer sets.
func keyCookies(got answer) []*http.Cookie {
	var found []*http.Cookie
	for _, cookie := range (&http.Response{Header: got.header}).Cookies() {
		if cookie.Name == "sr-key" {
			found = append(found, cookie)
		}
	}
	return found
}

var keyForm = regexp.MustCompile(`^[A-Za-z0-9_-]{22}$`)

// wantIssued checks that an answer sets one key and says that it is nobody
// else's, and returns the key.
func wantIssued(t testing.TB, got answer) *http.Cookie {
	t.Helper()
	cookies := keyCookies(got)
	if len(cookies) != 1 || !keyForm.MatchString(cookies[0].Value) {
		t.Fatalf("Set-Cookie = %q, want one sr-key of 22 characters", got.header.Values("Set-Cookie"))
	}
	if d := directives(got.header); !d["private"] || d["public"] {
		t.Errorf("Cache-Control = %q, want private and not public", got.header.Values("Cache-Control"))
	}
	if r := routeOf(got); r.reason != "sticky" {
		t.Errorf("the reason is %q, want sticky", r.reason)
	}
	return cookies[0]
}

// wantNotIssued checks that an answer sets no key and is as cacheable as before.
func wantNotIssued(t testing.TB, got answer) {
	t.Helper()
	if cookies := keyCookies(got); len(cookies) != 0 {
		t.Errorf("Set-Cookie = %q, want no sr-key", got.header.Values("Set-Cookie"))
	}
	if directives(got.header)["private"] {
		t.Errorf("Cache-Control = %q, want no private", got.header.Values("Cache-Control"))
	}
}

// directives are the names in Cache-Control.
func directives(h http.Header) map[string]bool {
	found := map[string]bool{}
	for _, part := range strings.Split(strings.Join(h.Values("Cache-Control"), ","), ",") {
		name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(part)), "=")
		found[name] = true
	}
	return found
}

func TestTheGatewaysCookieHoldsAKeyAndKeepsAClientInItsVariantOnEveryGateway(t *testing.T) {
	t.Parallel()
	// The estate's way to treat cookies: upstreams never see one, and set none.
	config := map[string]string{"sensitiveHeaders": "[Cookie, Set-Cookie]", "trustedProxies": "[127.0.0.1/32]"}
	l := newLab(t, labOptions{config: config})
	other := l.twin(t, "lab-2", config)
	l.set(t, l.record(1, 1, `"sticky":{"by":"gateway-cookie","maxAge":3600}`))
	seen := map[string]bool{}
	inVariant := map[string]int{}
	for range 30 {
		got := l.get(t, "/x")
		cookie := wantIssued(t, got)
		if cookie.Path != "/" || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.MaxAge != 3600 || cookie.Secure || cookie.Domain != "" {
			t.Errorf("Set-Cookie = %q, want Path=/, HttpOnly, SameSite=Lax and Max-Age=3600, neither Secure nor Domain", cookie.Raw)
		}
		if seen[cookie.Value] {
			t.Fatalf("the key %q was issued twice", cookie.Value)
		}
		seen[cookie.Value] = true
		variant := routeOf(got).variant
		inVariant[variant]++
		for _, gateway := range []*lab{l, other, l} {
			again := gateway.get(t, "/x", [2]string{"Cookie", "a=b; sr-key=" + cookie.Value})
			wantRouted(t, again, variant, "sticky")
			wantNotIssued(t, again)
		}
	}
	if inVariant["old"] == 0 || inVariant["new"] == 0 {
		t.Errorf("thirty clients: %v", inVariant)
	}
	for _, u := range []*upstream{l.old, l.new} {
		for _, saw := range u.all() {
			if v := saw.header.Values("Cookie"); len(v) != 0 {
				t.Errorf("Cookie = %q at the upstream, though it is a sensitive header", v)
			}
		}
	}
	over := wantIssued(t, l.get(t, "/x", [2]string{"X-Forwarded-For", "192.0.2.1"}, [2]string{"X-Forwarded-Proto", "https"}))
	if !over.Secure {
		t.Errorf("Set-Cookie = %q to a client over TLS, want Secure", over.Raw)
	}
	l.set(t, l.record(1, 1, `"sticky":{"by":"gateway-cookie"}`))
	if cookie := wantIssued(t, l.get(t, "/x")); cookie.MaxAge != 30*24*3600 {
		t.Errorf("Max-Age = %d without maxAge, want 30 days", cookie.MaxAge)
	}
}

func TestAKeyIsIssuedOnlyWhenADecisionNeededOne(t *testing.T) {
	t.Parallel()
	l := overrideLab(t, labOptions{})
	sticky := `"sticky":{"by":"gateway-cookie"}`
	l.set(t, l.record(1, 1, sticky, rulesOf(ruleTo("testers", "new", `{"on":"query","name":"tester","present":true}`))))
	wantNotIssued(t, l.get(t, "/x?tester=1"))
	// An override's answer is private for another reason: it is its tester's alone.
	overridden := l.get(t, "/x", [2]string{"Route-Override", signed(t, presentKey, labService, "new", time.Hour)})
	if len(keyCookies(overridden)) != 0 || !directives(overridden.header)["private"] {
		t.Errorf("by override: Set-Cookie = %q, Cache-Control = %q, want no sr-key, and private",
			overridden.header.Values("Set-Cookie"), overridden.header.Values("Cache-Control"))
	}
	wantIssued(t, l.get(t, "/x"))
	l.set(t, strings.Replace(l.record(1, 1, sticky), `"active":true`, `"active":false`, 1))
	wantNotIssued(t, l.get(t, "/x"))
	l.set(t, l.record(1, 1))
	wantNotIssued(t, l.get(t, "/x"))
	l.set(t, l.record(1, 1, `"sticky":{"by":"cookie","name":"session"}`))
	wantNotIssued(t, l.get(t, "/x"))
}

func TestACookieThatIsNoKeyCountsAsAbsent(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	l.set(t, l.record(1, 1, `"sticky":{"by":"gateway-cookie"}`))
	good := wantIssued(t, l.get(t, "/x")).Value
	rubbish := strings.Repeat("rubbish!", 512)
	for name, cookie := range map[string]string{
		"4 KiB of rubbish":            "sr-key=" + rubbish,
		"4 KiB of letters":            "sr-key=" + strings.Repeat("a", 4096),
		"empty":                       "sr-key=",
		"one character short":         "sr-key=" + good[:21],
		"one character more":          "sr-key=" + good + "A",
		"a character of another kind": "sr-key=" + good[:21] + "+",
		"a variant":                   "sr-key=new",
		"of another name":             "xsr-key=" + good,
		"in another case":             "SR-KEY=" + good,
		"percent-encoded":             "sr-key=%41" + good[1:],
		"a tilde and a space":         "sr-key=~ ~",
	} {
		t.Run(name, func(t *testing.T) {
			got := rawGet(t, l.data, labPrefix+"/x", "Cookie: "+cookie)
			if got.status != 200 {
				t.Fatalf("status = %d: %.200s", got.status, got.body)
			}
			if fresh := wantIssued(t, got); fresh.Value == good {
				t.Error("the key is one that another client has")
			}
		})
	}
	if strings.Contains(l.gateway.out.String(), "rubbish!") {
		t.Error("the gateway's log tells what the cookie held")
	}
}

// TestLongBodiesAndUpgradesAreDecidedAsAnyOtherCall sends what the gateway must
// forward by other means than a short call: the decision is the same.
func TestLongBodiesAndUpgradesAreDecidedAsAnyOtherCall(t *testing.T) {
	t.Parallel()
	l := overrideLab(t, labOptions{config: map[string]string{"sensitiveHeaders": "[Cookie, Set-Cookie]"}})
	l.set(t, l.record(1, 1, `"sticky":{"by":"gateway-cookie"}`, rulesOf(ruleTo("tester", "new", `{"on":"query","name":"tester","present":true}`))))
	long := func(length int64) func(target string, h headers) (answer, error) {
		return func(target string, h headers) (answer, error) {
			req, err := http.NewRequest("POST", l.base+target, noise(200_000))
			if err != nil {
				return answer{}, err
			}
			req.ContentLength = length
			for _, field := range h {
				req.Header.Add(field[0], field[1])
			}
			return send(req)
		}
	}
	with := func(method, body string, more headers) func(string, headers) (answer, error) {
		return func(target string, h headers) (answer, error) {
			return do(method, l.base+target, strings.NewReader(body), append(h, more...))
		}
	}
	for name, ask := range map[string]func(target string, h headers) (answer, error){
		"a short call":         with("GET", "", nil),
		"a short body":         with("POST", "body", nil),
		"a long body":          long(200_000),
		"a body in chunks":     long(-1),
		"Expect: 100-continue": with("PUT", "body", headers{{"Expect", "100-continue"}}),
		"an upgrade":           with("GET", "", headers{{"Connection", "Upgrade"}, {"Upgrade", "websocket"}, {"Sec-WebSocket-Version", "13"}, {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}}),
	} {
		t.Run(name, func(t *testing.T) {
			must := func(target string, h ...[2]string) answer {
				t.Helper()
				got, err := ask(target, h)
				if err != nil {
					t.Fatal(err)
				}
				return got
			}
			inVariant := map[string]int{}
			for range 12 {
				first := must("/x")
				cookie := wantIssued(t, first)
				variant := routeOf(first).variant
				inVariant[variant]++
				again := must("/x", [2]string{"Cookie", "sr-key=" + cookie.Value})
				wantRouted(t, again, variant, "sticky")
				wantNotIssued(t, again)
				if got := varied(again.header); !slices.Equal(got, []string{"cookie"}) {
					t.Errorf("Vary names %v, want cookie", got)
				}
				wantRouted(t, l.get(t, "/x", [2]string{"Cookie", "sr-key=" + cookie.Value}), variant, "sticky")
			}
			if inVariant["old"] == 0 || inVariant["new"] == 0 {
				t.Errorf("twelve clients: %v", inVariant)
			}
			wantRouted(t, must("/x?tester"), "new", "rule:tester")
			toOld := signed(t, presentKey, labService, "old", time.Hour)
			l.old.reset()
			got := must("/x?tester", [2]string{"Route-Override", toOld + ", rubbish"})
			wantRouted(t, got, "old", "override")
			if v := got.header.Get("X-Route-Override-Invalid"); v != "malformed" {
				t.Errorf("X-Route-Override-Invalid = %q", v)
			}
			if v := l.old.only(t).header.Values("Route-Override"); len(v) != 1 || v[0] != toOld {
				t.Errorf("Route-Override = %q at the upstream, want the valid one", v)
			}
		})
	}
}

func TestVaryIsTheSameForAllVariantsAndMergedWithTheUpstreams(t *testing.T) {
	t.Parallel()
	withVary := func(values ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for _, v := range values {
				w.Header().Add("Vary", v)
			}
			_, _ = io.WriteString(w, "ok")
		}
	}
	// One upstream says Vary of its own, with one of ours in another case; the other
	// says nothing.
	l := overrideLab(t, labOptions{old: newUpstream(t, "old", withVary("Accept-Encoding", "x-team, Origin")), new: newUpstream(t, "new", nil)})
	l.set(t, l.record(1, 1,
		rulesOf(
			ruleTo("team", "new", `{"on":"header","name":"X-Team","in":["a"]}`),
			ruleTo("cookie", "old", `{"on":"cookie","name":"canary","in":["off"]}`),
			ruleTo("query", "new", `{"on":"query","name":"q","present":true}`),
		),
		`"sticky":{"by":"header","name":"tmx-user-id"}`,
		`"labelRules":[{"header":"version","label":"version","mode":"lenient"}]`,
	))
	own := []string{"cookie", "tmx-user-id", "version", "x-team"}
	for _, test := range []struct {
		name, variant string
		h             headers
	}{
		{"by a rule", "new", headers{{"X-Team", "a"}}},
		{"by a cookie", "old", headers{{"Cookie", "canary=off"}}},
		{"by the key", "", headers{{"tmx-user-id", "u-1"}}},
		{"by the other key", "", headers{{"tmx-user-id", "u-2"}}},
		{"by the draw", "", nil},
		{"by an override", "new", headers{{"Route-Override", signed(t, presentKey, labService, "new", time.Hour)}}},
	} {
		for range 5 {
			got := l.get(t, "/x", test.h...)
			variant := routeOf(got).variant
			if test.variant != "" && variant != test.variant {
				t.Errorf("%s: answered by %q, want %q", test.name, variant, test.variant)
			}
			want := slices.Clone(own)
			if variant == "old" {
				want = append(want, "accept-encoding", "origin")
			}
			slices.Sort(want)
			if got := varied(got.header); !slices.Equal(got, want) {
				t.Errorf("%s, answered by %s: Vary names %v, want %v", test.name, variant, got, want)
			}
		}
	}
	t.Run("switched off it is the same", func(t *testing.T) {
		off := strings.Replace(l.record(1, 1, `"sticky":{"by":"header","name":"tmx-user-id"}`), `"active":true`, `"active":false`, 1)
		l.set(t, off)
		if got := varied(l.get(t, "/x").header); !slices.Contains(got, "tmx-user-id") {
			t.Errorf("Vary names %v", got)
		}
	})
	t.Run("of a record that reads nothing it is the upstream's", func(t *testing.T) {
		l.set(t, l.record(1, 0))
		if got := l.get(t, "/x").header.Values("Vary"); !slices.Equal(got, []string{"Accept-Encoding", "x-team, Origin"}) {
			t.Errorf("Vary = %q", got)
		}
		l.set(t, l.record(0, 1))
		if got := l.get(t, "/x").header.Values("Vary"); len(got) != 0 {
			t.Errorf("Vary = %q", got)
		}
	})
	t.Run("of the gateway's cookie it is Cookie", func(t *testing.T) {
		l.set(t, l.record(0, 1, `"sticky":{"by":"gateway-cookie"}`))
		for _, h := range []headers{nil, {{"Cookie", "sr-key=" + strings.Repeat("A", 22)}}} {
			if got := varied(l.get(t, "/x", h...).header); !slices.Equal(got, []string{"cookie"}) {
				t.Errorf("Vary names %v, want cookie", got)
			}
		}
	})
}

// varied are the names in Vary, in lower case and sorted; a name that stands there
// twice is there twice.
func varied(h http.Header) []string {
	var names []string
	for _, line := range h.Values("Vary") {
		for _, name := range strings.Split(line, ",") {
			names = append(names, strings.ToLower(strings.TrimSpace(name)))
		}
	}
	slices.Sort(names)
	return names
}

// sharedCache is a cache that many clients share, as simple as RFC 9111 lets one
// be: it keeps what says max-age, unless it says private or no-store, by URL and
// by the fields that Vary names.
type sharedCache struct {
	upstream string
	mu       sync.Mutex
	kept     map[string][]keptAnswer
	hits     int
}

type keptAnswer struct {
	request http.Header
	answer  answer
}

func (c *sharedCache) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	got, hit := c.find(r)
	if !hit {
		var h headers
		for name, values := range r.Header {
			for _, v := range values {
				h = append(h, [2]string{name, v})
			}
		}
		var err error
		if got, err = do("GET", c.upstream+r.RequestURI, nil, h); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		d := directives(got.header)
		if d["max-age"] && !d["private"] && !d["no-store"] && !slices.Contains(varied(got.header), "*") {
			c.kept[r.RequestURI] = append(c.kept[r.RequestURI], keptAnswer{r.Header.Clone(), got})
		}
	}
	maps.Copy(w.Header(), got.header)
	w.WriteHeader(got.status)
	_, _ = w.Write(got.body)
}

func (c *sharedCache) find(r *http.Request) (answer, bool) {
	for _, kept := range c.kept[r.RequestURI] {
		if !slices.ContainsFunc(varied(kept.answer.header), func(name string) bool {
			return !slices.Equal(kept.request.Values(name), r.Header.Values(name))
		}) {
			c.hits++
			return kept.answer, true
		}
	}
	return answer{}, false
}

func TestACacheInFrontGivesNobodyAnothersKeyAndNobodyAnothersVariant(t *testing.T) {
	t.Parallel()
	cacheable := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "public, max-age=600")
			_, _ = io.WriteString(w, name)
		}
	}
	l := newLab(t, labOptions{old: newUpstream(t, "old", cacheable("old")), new: newUpstream(t, "new", cacheable("new"))})
	l.set(t, l.record(1, 1, `"sticky":{"by":"gateway-cookie"}`))
	cache := &sharedCache{upstream: "http://" + l.data, kept: map[string][]keptAnswer{}}
	front := httptest.NewServer(cache)
	defer front.Close()
	ask := func(h ...[2]string) answer { return call(t, "GET", front.URL+labPrefix+"/page", nil, h) }

	keys, variants := map[string]bool{}, map[string]int{}
	for range 20 { // new visitors
		got := ask()
		cookie := wantIssued(t, got)
		keys[cookie.Value] = true
		variants[string(got.body)]++
		for range 2 { // and again, perhaps from the cache
			again := ask([2]string{"Cookie", "sr-key=" + cookie.Value})
			if string(again.body) != string(got.body) {
				t.Errorf("a visitor was in %s and got the page of %s", got.body, again.body)
			}
		}
	}
	if len(keys) != 20 || variants["old"] == 0 || variants["new"] == 0 {
		t.Errorf("20 new visitors got %d keys and were in %v", len(keys), variants)
	}
	if cache.hits == 0 {
		t.Error("the cache never answered: pages of a visitor with a key may be kept")
	}

	// By a header it is Vary alone that keeps users apart.
	l.set(t, l.record(1, 1, `"sticky":{"by":"header","name":"tmx-user-id"}`))
	variants = map[string]int{}
	for i := range 20 {
		user := [2]string{"tmx-user-id", "user-" + strconv.Itoa(i)}
		want := string(l.get(t, "/users", user).body)
		for range 2 {
			got := call(t, "GET", front.URL+labPrefix+"/users", nil, headers{user})
			if string(got.body) != want {
				t.Errorf("user %d is in %s and got the page of %s", i, want, got.body)
			}
			variants[string(got.body)]++
		}
	}
	if variants["old"] == 0 || variants["new"] == 0 {
		t.Errorf("twenty users were in %v", variants)
	}
}
