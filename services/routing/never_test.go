package routing_test

import (
	"regexp"
	"strings"
	"testing"

	"specialroutes.example/services/routing"
	"specialroutes.example/services/routing/routingtest"
)

// refusals are the pointers at which a record with one match is refused.
func refusals(m routing.Match) string {
	r := routingtest.Weighted("s", 1, 0)
	r.Rules = []routing.Rule{{Name: "r", Variant: new("v1"), Match: []routing.Match{m}}}
	var pointers []string
	for _, e := range r.Validate() {
		pointers = append(pointers, strings.TrimPrefix(e.Pointer, "/rules/0/match/0"))
	}
	return strings.Join(pointers, " ")
}

// What no request can have is refused, as a value and as a prefix, and what one
// can have is not.
func TestValidate_MatchesThatNeverHold(t *testing.T) {
	t.Parallel()
	const value, start, both, none = "/in/0", "/prefix", "/in/0 /prefix", ""
	pathOn, method, header, cookie, param := on("path", ""), on("method", ""), on("header", "x"), on("cookie", "c"), on("query", "q")
	for _, tt := range []struct {
		match routing.Match
		text  string
		want  string // where it is refused
	}{
		{pathOn, "/", none}, {pathOn, "//", none}, {pathOn, "/a%2Fb%3B;..", none}, {pathOn, "/...", none}, {pathOn, "/.a", none},
		{pathOn, "/~!$&'()*+,=:@|\"", none}, {pathOn, "/%ff%20", none}, {pathOn, "/%252e%252e/x", none}, {pathOn, "/..%3b", none},
		{pathOn, "a", both}, {pathOn, "%2Fa", both}, {pathOn, "/a b", both}, {pathOn, "/\x7f", both}, {pathOn, "/ä", both}, {pathOn, "/a#", both},
		{pathOn, "/a?b", both}, {pathOn, `/a\`, both}, {pathOn, "/%5c", both}, {pathOn, "/%5C", both}, {pathOn, "/%00", both},
		{pathOn, "/%zz", both}, {pathOn, "/%2z", both}, {pathOn, "/%z", both},
		{pathOn, "/../a", both}, {pathOn, "/./", both}, {pathOn, "/%2e%2E/", both}, {pathOn, "/a/.%2f", both}, {pathOn, "/..;", both},
		{pathOn, "/.;a=", both}, {pathOn, "/..;%", both}, {pathOn, "/a%2f../", both},
		// The beginning of a path that there can be, but none itself.
		{pathOn, "/.", value}, {pathOn, "/..", value}, {pathOn, "/a/%2E", value}, {pathOn, "/a%2f.", value},
		{pathOn, "/%", value}, {pathOn, "/%2", value}, {pathOn, "/.%", value}, {pathOn, "/%0", value}, {pathOn, "/%5", value},

		{method, "GET", none}, {method, "get", none}, {method, "M-SEARCH", none}, {method, "G T", both}, {method, "GÉT", both}, {method, "GET/", both},

		{header, "a b", none}, {header, `"a";\`, none}, {header, strings.Repeat("x", 255), none},
		{header, strings.Repeat("x", 256), both}, {header, "a\tb", both}, {header, "ä", both}, {header, "a\x7f", both}, {header, " a", both}, {header, "\ta", both}, {header, " ", both},
		{header, "Bearer ", value}, {header, strings.Repeat("x", 253) + " ", value}, {header, strings.Repeat("x", 254) + " ", both},

		{cookie, " a, b ", none}, {cookie, "a=b", none}, {cookie, strings.Repeat("x", 1024), none},
		{cookie, "a;b", both}, {cookie, `"`, both}, {cookie, `"a"`, both}, {cookie, `\`, both}, {cookie, "ä", both}, {cookie, "\t", both},

		{param, "ä; \x00#", none}, {param, "\xff", none},
	} {
		got := strings.TrimSpace(refusals(in(tt.match, tt.text)) + " " + refusals(prefix(tt.match, tt.text)))
		if got != tt.want {
			t.Errorf("%s %.40q is refused at %q, want %q", tt.match.On, tt.text, got, tt.want)
		}
	}
	for _, empty := range []routing.Match{cookie, param} {
		if got := refusals(in(empty, "")); got != "" {
			t.Errorf("the empty value of a %s is refused at %q", empty.On, got)
		}
	}
	if got := refusals(in(method, "")) + refusals(in(pathOn, "")); got != "/in/0/in/0" {
		t.Errorf("an empty method and path are refused at %q", got)
	}
}

// Each value that a cookie is read as may be asked for, and each that may be asked
// for can be sent.
func TestValidate_CookieValuesAreThoseThatAreRead(t *testing.T) {
	t.Parallel()
	for b := range 128 {
		for _, text := range []string{string(rune(b)), "a" + string(rune(b)) + "b"} {
			refused := refusals(in(on("cookie", "c"), text)) != ""
			if sent := canBeSent(t, text); refused == sent {
				t.Errorf("%q: refused %v, read from a request %v", text, refused, sent)
			}
		}
	}
}

// canBeSent says whether a cookie can be sent, plain or in quotes, so that text is
// read of it. A regex asks, for that may hold any text.
func canBeSent(t *testing.T, text string) bool {
	t.Helper()
	m := regex(on("cookie", "c"), regexp.QuoteMeta(text))
	return holds(t, cookies("c="+text), m) || holds(t, cookies(`c="`+text+`"`), m)
}

// Names that only look like those that are refused may be read.
func TestValidate_NamesThatMayBeRead(t *testing.T) {
	t.Parallel()
	for _, m := range []routing.Match{
		on("header", "tmx-correlation"), on("header", "X-Routes"), on("header", "x_team"), on("header", "Authorization"),
		on("header", "version"), on("cookie", "Route-Override"), on("cookie", "SR-Key"), on("cookie", "x-route-override"),
		on("cookie", "tmx-correlation-id"), on("query", "sr-key"), on("query", "route-override"),
	} {
		if got := refusals(present(m, false)); got != "" {
			t.Errorf("%s %s is refused at %q", m.On, *m.Name, got)
		}
	}
}
