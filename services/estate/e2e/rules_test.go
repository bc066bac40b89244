package e2e_test

import (
	"fmt"
	"strings"
	"testing"
)

// ruleTo is a rule that leads to a variant when all matches hold.
func ruleTo(name, variant string, matches ...string) string {
	return fmt.Sprintf(`{"name":%q,"match":[%s],"variant":%q}`, name, strings.Join(matches, ","), variant)
}

func rulesOf(rules ...string) string { return `"rules":[` + strings.Join(rules, ",") + `]` }

// ruleCalls are calls to a lab whose record has the rules of ruleMatches, each
// with the rule that must take it; "" is none.
var ruleCalls = []struct {
	name, method, target string
	h                    headers
	rule                 string
}{
	{"a header in the list", "GET", "/", headers{{"X-In", "b"}}, "header-in"},
	{"a header's name in another case", "GET", "/", headers{{"x-IN", "a"}}, "header-in"},
	{"a header's value in another case", "GET", "/", headers{{"X-In", "B"}}, ""},
	{"a header that only begins so", "GET", "/", headers{{"X-In", "bb"}}, ""},
	{"a list in one header is one value", "GET", "/", headers{{"X-In", "a, b"}}, ""},
	{"a header with the prefix", "GET", "/", headers{{"X-Prefix", "beta-1"}}, "header-prefix"},
	{"a header that holds the prefix further on", "GET", "/", headers{{"X-Prefix", "a-beta-1"}}, ""},
	{"a header that the regex matches", "GET", "/", headers{{"X-Regex", "u-17"}}, "header-regex"},
	{"a header that begins as the regex", "GET", "/", headers{{"X-Regex", "u-17x"}}, ""},
	{"a header that ends as the regex", "GET", "/", headers{{"X-Regex", "xu-17"}}, ""},
	{"an alternative is over the whole value", "GET", "/", headers{{"X-Regex", "admin-2"}}, ""},
	{"the other alternative of the regex", "GET", "/", headers{{"X-Regex", "admin"}}, "header-regex"},
	{"a header that is there", "GET", "/", headers{{"X-Present", "x"}}, "header-present"},
	{"a blank header counts as absent", "GET", "/", headers{{"X-Present", " "}}, ""},
	{"a header that is absent", "GET", "/?absent=yes", nil, "header-absent"},
	{"a header that should be absent", "GET", "/?absent=yes", headers{{"X-Absent", "1"}}, ""},
	{"a blank header that should be absent", "GET", "/?absent=yes", headers{{"X-Absent", ""}}, "header-absent"},

	{"a cookie", "GET", "/", headers{{"Cookie", "canary=on"}}, "cookie-in"},
	{"a cookie among others", "GET", "/", headers{{"Cookie", "a=b; canary=on; c=d"}}, "cookie-in"},
	{"a cookie in another line", "GET", "/", headers{{"Cookie", "a=b"}, {"Cookie", "canary=on"}}, "cookie-in"},
	{"a cookie whose name ends so", "GET", "/", headers{{"Cookie", "xcanary=on"}}, ""},
	{"a cookie whose name ends so, before the real one", "GET", "/", headers{{"Cookie", "xcanary=off; canary=on"}}, "cookie-in"},
	{"a cookie whose value holds the pair", "GET", "/", headers{{"Cookie", "a=canary=on"}}, ""},
	{"a cookie whose value goes on", "GET", "/", headers{{"Cookie", "canary=on-and-on"}}, ""},
	{"a cookie's name in another case", "GET", "/", headers{{"Cookie", "Canary=on"}}, ""},
	{"the first cookie of the name counts", "GET", "/", headers{{"Cookie", "canary=off; canary=on"}}, ""},
	{"a header of a cookie's name", "GET", "/", headers{{"canary", "on"}}, ""},

	{"a parameter", "GET", "/?beta=1", nil, "query-in"},
	{"a parameter among others", "GET", "/?a=2&beta=1&c=3", nil, "query-in"},
	{"a parameter's value is decoded", "GET", "/?beta=%31", nil, "query-in"},
	{"a parameter's name is decoded", "GET", "/?%62eta=1", nil, "query-in"},
	{"the first value of a parameter counts", "GET", "/?beta=2&beta=1", nil, ""},
	{"a semicolon separates nothing", "GET", "/?a=2;beta=1", nil, ""},
	{"a semicolon belongs to the value", "GET", "/?beta=1;x", nil, ""},
	{"a parameter whose name ends so", "GET", "/?xbeta=1", nil, ""},
	{"a plus is a space", "GET", "/?words=a+b", nil, "query-regex"},
	{"a parameter in the path is none", "GET", "/beta=1", nil, ""},

	{"the path", "GET", "/exact", nil, "path-in"},
	{"the path with more", "GET", "/exact/more", nil, ""},
	{"the path is below the prefix", "GET", "/api/lab/exact", nil, ""},
	{"a path's prefix", "GET", "/v2/organizations", nil, "path-prefix"},
	{"a path's prefix is bytes", "GET", "/%762/organizations", nil, ""},
	{"an escaped slash is no slash", "GET", "/files/a%2Fb", nil, "path-regex"},
	{"a slash is no escaped one", "GET", "/files/a/b", nil, ""},

	{"a method", "DELETE", "/", nil, "method-in"},
	{"a method that nobody knows", "PURGE", "/", nil, "method-in"},
	{"a header does not change the method", "POST", "/", headers{{"X-HTTP-Method-Override", "DELETE"}}, ""},

	{"a client in the range", "GET", "/", headers{{"X-Forwarded-For", "203.0.113.9"}}, "client-cidr"},
	{"a client beside the range", "GET", "/", headers{{"X-Forwarded-For", "203.0.114.9"}}, ""},
	{"the right-most untrusted address is the client", "GET", "/", headers{{"X-Forwarded-For", "203.0.113.9, 192.0.2.1"}}, ""},
	{"the right-most untrusted address, before trusted ones", "GET", "/", headers{{"X-Forwarded-For", "198.51.100.1, 203.0.113.9, 127.0.0.1"}}, "client-cidr"},
	{"an IPv6 client in the range", "GET", "/", headers{{"X-Forwarded-For", "2001:db8:7::1"}}, "client-cidr6"},
	{"an IPv4 client in IPv6 clothes", "GET", "/", headers{{"X-Forwarded-For", "::ffff:203.0.113.9"}}, "client-cidr"},
	{"a client by address", "GET", "/", headers{{"X-Forwarded-For", "198.51.100.7"}}, "client-in"},

	{"all matches of a rule", "POST", "/both", headers{{"X-Both", "1"}}, "all-of-them"},
	{"only the first match of a rule", "POST", "/", headers{{"X-Both", "1"}}, ""},
	{"only the second match of a rule", "POST", "/both", nil, ""},
	{"the first rule that holds", "GET", "/v2/x", headers{{"X-In", "a"}, {"Cookie", "canary=on"}}, "header-in"},
	{"nothing", "GET", "/", nil, ""},
}

// ruleMatches are the rules for ruleCalls, in order.
var ruleMatches = []struct {
	name    string
	matches []string
}{
	{"header-in", []string{`{"on":"header","name":"X-In","in":["a","b"]}`}},
	{"header-prefix", []string{`{"on":"header","name":"X-Prefix","prefix":"beta-"}`}},
	{"header-regex", []string{`{"on":"header","name":"X-Regex","regex":"u-[0-9]+|admin"}`}},
	{"header-present", []string{`{"on":"header","name":"X-Present","present":true}`}},
	{"header-absent", []string{`{"on":"header","name":"X-Absent","present":false}`, `{"on":"query","name":"absent","in":["yes"]}`}},
	{"cookie-in", []string{`{"on":"cookie","name":"canary","in":["on"]}`}},
	{"query-in", []string{`{"on":"query","name":"beta","in":["1"]}`}},
	{"query-regex", []string{`{"on":"query","name":"words","regex":"a b"}`}},
	{"path-in", []string{`{"on":"path","in":["/exact"]}`}},
	{"path-prefix", []string{`{"on":"path","prefix":"/v2/"}`}},
	{"path-regex", []string{`{"on":"path","regex":"/files/[^/]+%2Fb"}`}},
	{"method-in", []string{`{"on":"method","in":["DELETE","PURGE"]}`}},
	{"client-cidr", []string{`{"on":"client","cidr":"203.0.113.0/24"}`}},
	{"client-cidr6", []string{`{"on":"client","cidr":"2001:db8:7::/48"}`}},
	{"client-in", []string{`{"on":"client","in":["198.51.100.7"]}`}},
	{"all-of-them", []string{`{"on":"header","name":"X-Both","in":["1"]}`, `{"on":"path","in":["/both"]}`}},
}

func TestRulesTakeTheCallsThatTheyName(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{new: newUpstream(t, "new", echo), config: map[string]string{"trustedProxies": "[127.0.0.1/32]"}})
	// Each rule leads to a variant of its own, so that a rule which takes another's is
	// seen. Sixteen variants are the most: one is shared.
	variantFor := func(rule string) string { return strings.TrimSuffix("to-"+rule, "6") }
	variants, rules := []string{`{"name":"old","weight":1}`}, []string(nil)
	for _, rule := range ruleMatches {
		name := variantFor(rule.name)
		rules = append(rules, ruleTo(rule.name, name, rule.matches...))
		if rule.name == strings.TrimPrefix(name, "to-") {
			variants = append(variants, fmt.Sprintf(`{"name":%q,"weight":0,"endpoint":"%s/%s"}`, name, l.new.URL, name))
		}
	}
	l.set(t, recordOf(labService, variants, rulesOf(rules...)))
	for _, test := range ruleCalls {
		t.Run(test.name, func(t *testing.T) {
			got := call(t, test.method, l.base+test.target, nil, test.h)
			variant, reason, body := "old", "draw", "old"
			if test.rule != "" {
				variant, reason = variantFor(test.rule), "rule:"+test.rule
				body = "/" + variant + test.target
			}
			wantRouted(t, got, variant, reason)
			if string(got.body) != body {
				t.Errorf("answered by %.200q, want %q", got.body, body)
			}
		})
	}
}

func TestAHeaderThatRoutingReadsHasOneMeaningOrIsRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	l.set(t, l.record(1, 0,
		rulesOf(ruleTo("team", "new", `{"on":"header","name":"X-Team","in":["a"]}`)), `"sticky":{"by":"header","name":"tmx-user-id"}`))
	for name, lines := range map[string][]string{
		"two lines":                 {"X-Team: a", "X-Team: b"},
		"two equal lines":           {"X-Team: a", "X-Team: a"},
		"over 255 bytes":            {"X-Team: " + strings.Repeat("x", 256)},
		"not ASCII":                 {"X-Team: ü"},
		"a control byte":            {"X-Team: a\x7f"},
		"two lines of the key":      {"tmx-user-id: u-1", "tmx-user-id: u-2"},
		"a key of more than 255":    {"tmx-user-id: " + strings.Repeat("k", 256)},
		"a key of 600 bytes":        {"tmx-user-id: " + strings.Repeat("k", 600)},
		"a key that is not visible": {"tmx-user-id: \x01"},
	} {
		t.Run(name, func(t *testing.T) {
			l.old.reset()
			l.new.reset()
			wantProblem(t, rawGet(t, l.data, labPrefix+"/x", lines...), 400)
			l.old.wantNone(t)
			l.new.wantNone(t)
		})
	}
	for name, lines := range map[string][]string{
		"255 bytes":                          {"X-Team: " + strings.Repeat("x", 255)},
		"a header that nobody reads, twice":  {"X-Other: a", "X-Other: b"},
		"a long header that nobody reads":    {"X-Other: " + strings.Repeat("x", 2000)},
		"a header that nobody reads, in ä ö": {"X-Other: äö"},
	} {
		t.Run(name, func(t *testing.T) {
			wantRouted(t, rawGet(t, l.data, labPrefix+"/x", append(lines, "tmx-user-id: u-1")...), "old", "sticky")
		})
	}
}

func TestOnlyATrustedProxyMayNameTheClient(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	l.set(t, l.record(1, 0, rulesOf(
		ruleTo("office", "new", `{"on":"client","cidr":"203.0.113.0/24"}`),
		ruleTo("here", "old", `{"on":"client","cidr":"127.0.0.0/8"}`),
	)))
	for _, h := range []headers{
		nil,
		{{"X-Forwarded-For", "203.0.113.9"}}, {{"X-Real-IP", "203.0.113.9"}}, {{"Forwarded", "for=203.0.113.9"}},
		{{"X_Forwarded_For", "203.0.113.9"}},
	} {
		wantRouted(t, l.get(t, "/x", h...), "old", "rule:here")
	}
}

func TestARuleMayHaveWeightsOfItsOwn(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{new: newUpstream(t, "new", echo)})
	rule := `"rules":[{"name":"beta","match":[{"on":"query","name":"beta","present":true}],"weights":{"old":1,"v1":3}}]`
	l.set(t, l.spread([]string{rule}, 0, 0, 1))
	wantShares(t, tally(t, l.base+"/x", 100), map[string]int64{"v2": 1})
	wantShares(t, tally(t, l.base+"/x?beta=1", 800), map[string]int64{"old": 1, "v1": 3})
	if r := routeOf(l.get(t, "/x?beta=1")); r.reason != "rule:beta" {
		t.Errorf("the reason is %q, want rule:beta", r.reason)
	}

	// With a key the rule's weights stick by it too.
	l.set(t, l.spread([]string{rule, `"sticky":{"by":"query","name":"u"}`}, 0, 0, 1))
	counted := map[string]int{}
	for _, variant := range each(t, 300, func(i int) (string, error) {
		url := fmt.Sprintf("%s/x?beta=1&u=user-%d", l.base, i)
		first, err := variantOf(url)
		if err != nil {
			return "", err
		}
		again, err := variantOf(url)
		if err == nil && first != again {
			err = fmt.Errorf("%s: first %s, then %s", url, first, again)
		}
		return first, err
	}) {
		counted[variant]++
	}
	wantShares(t, counted, map[string]int64{"old": 1, "v1": 3})
}

func TestAVariantOfWeight0IsReachedByARuleAndNeverByTheDraw(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	testers := rulesOf(ruleTo("testers", "new", `{"on":"header","name":"tmx-user-id","in":["u-17"]}`))
	for _, sticky := range []string{"", `,"sticky":{"by":"query","name":"u"}`} {
		l.set(t, l.record(7, 0, testers+sticky))
		wantRouted(t, l.get(t, "/x", [2]string{"tmx-user-id", "u-17"}), "new", "rule:testers")
		l.new.reset()
		if counted := tally(t, l.base+"/x", 500); counted["old"] != 500 {
			t.Errorf("by the draw: %v", counted)
		}
		each(t, 500, func(i int) (string, error) { return variantOf(fmt.Sprintf("%s/x?u=%d", l.base, i)) })
		l.new.wantNone(t)
	}
}

func TestTestersAreForcedAndAllOthersFollowTheWeights(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	for _, sticky := range []string{"", `,"sticky":{"by":"query","name":"u"}`} {
		l.set(t, l.record(9, 1, rulesOf(ruleTo("testers", "new", `{"on":"header","name":"tmx-user-id","in":["u-17","u-42"]}`))+sticky))
		for _, tester := range []string{"u-17", "u-42"} {
			if counted := tally(t, l.base+"/x", 100, [2]string{"tmx-user-id", tester}); counted["new"] != 100 {
				t.Errorf("%s is in %v, want only new", tester, counted)
			}
		}
		wantShares(t, tally(t, l.base+"/x", 500, [2]string{"tmx-user-id", "u-1"}), map[string]int64{"old": 9, "new": 1})
	}
}
