package routing_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"specialroutes.example/services/routing"
	"specialroutes.example/services/routing/routingtest"
)

// holds says whether a rule with these matches takes the request.
func holds(t testing.TB, q *routing.Request, matches ...routing.Match) bool {
	t.Helper()
	r := routingtest.Weighted("s", 1, 0)
	r.Rules = []routing.Rule{{Name: "r", Variant: new("v1"), Match: matches}}
	return routingtest.Compile(t, r).Decide(q, routingtest.Always(1)).Kind == routing.KindRule
}

func on(kind, name string) routing.Match {
	m := routing.Match{On: kind}
	if name != "" {
		m.Name = &name
	}
	return m
}

func in(m routing.Match, values ...string) routing.Match { m.In = values; return m }
func prefix(m routing.Match, s string) routing.Match     { m.Prefix = &s; return m }
func regex(m routing.Match, s string) routing.Match      { m.Regex = &s; return m }
func cidr(m routing.Match, s string) routing.Match       { m.CIDR = &s; return m }
func present(m routing.Match, there bool) routing.Match  { m.Present = &there; return m }
func headers(name string, lines ...string) *routing.Request {
	return &routing.Request{Header: http.Header{name: lines}}
}
func cookies(lines ...string) *routing.Request { return headers("Cookie", lines...) }
func query(raw string) *routing.Request        { return &routing.Request{RawQuery: raw} }
func path(raw string) *routing.Request         { return &routing.Request{Path: raw} }
func from(addr string) *routing.Request {
	return &routing.Request{Client: netip.MustParseAddr(addr)}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	nine := make([]string, 9)
	for i := range nine {
		nine[i] = fmt.Sprint(i)
	}
	header, cookie, param := on("header", "x-team"), on("cookie", "canary"), on("query", "user")
	tests := []struct {
		name    string
		match   routing.Match
		request *routing.Request
		want    bool
	}{
		{"header equal", in(header, "a", "b"), headers("X-Team", "b"), true},
		{"header in another case", in(header, "a"), headers("X-Team", "A"), false},
		{"header a part only", in(header, "a"), headers("X-Team", "ab"), false},
		{"header absent", in(header, "a"), &routing.Request{}, false},
		{"header any line", in(header, "b"), headers("X-Team", "a", "b"), true},
		{"header lines are not lists", in(header, "b"), headers("X-Team", "a, b"), false},
		{"header of many values", in(header, nine...), headers("X-Team", "8"), true},
		{"header of none of many values", in(header, nine...), headers("X-Team", "88"), false},
		{"header prefix", prefix(header, "a"), headers("X-Team", "ab"), true},
		{"header prefix of no line", prefix(header, "a"), headers("X-Team", "ba"), false},
		{"header present", present(header, true), headers("X-Team", "a"), true},
		{"header blank is absent", present(header, true), headers("X-Team", " "), false},
		{"header blank is not present", present(header, false), headers("X-Team", "", "\t"), true},
		{"header not present", present(header, false), headers("X-Team", "", "a"), false},
		{"header blank matches no regex", regex(header, "[ a]*"), headers("X-Team", " "), false},
		{"regex over the whole value", regex(header, "a|b"), headers("X-Team", "b"), true},
		{"regex not over a part", regex(header, "a|b"), headers("X-Team", "bx"), false},
		{"regex not after a start", regex(header, "a|b"), headers("X-Team", "xb"), false},
		{"regex with anchors of its own", regex(header, "^ab$"), headers("X-Team", "ab"), true},
		{"regex with flags", regex(header, "(?i)ab"), headers("X-Team", "AB"), true},
		{"regex lazy", regex(header, "a+?"), headers("X-Team", "aaa"), true},
		{"regex with an open quote", regex(header, `\Qa.b`), headers("X-Team", "a.b"), true},
		{"regex with an open quote, as text", regex(header, `\Qa.b`), headers("X-Team", `a.b)\z`), false},
		{"regex with (?m)", regex(header, "(?m)a$"), headers("X-Team", "a"), true},
		{"cookie", in(cookie, "1"), cookies("a=2; canary=1"), true},
		{"cookie of a longer name", in(cookie, "1"), cookies("xcanary=1"), false},
		{"cookie in a value", in(cookie, "1"), cookies("x=canary=1"), false},
		{"cookie in quotes", in(cookie, "1"), cookies(`canary="1"`), true},
		{"cookie within quotes of another", in(cookie, "1"), cookies(`x="; canary=1"`), false},
		{"cookie first of the name", in(cookie, "2"), cookies("canary=1; canary=2"), false},
		{"cookie on another line", in(cookie, "1"), cookies("a=b", "canary=1"), true},
		{"cookie name in another case", in(cookie, "1"), cookies("Canary=1"), false},
		{"cookie without spaces", in(cookie, "1"), cookies("a=2;canary=1"), true},
		{"cookie empty", in(cookie, ""), cookies("canary="), true},
		{"cookie present when empty", present(cookie, true), cookies("canary="), true},
		{"cookie absent", present(cookie, false), cookies("canar=1"), true},
		{"cookie with a backslash is none", present(cookie, true), cookies(`canary=a\b`), false},
		{"query", in(param, "u-17"), query("a=1&user=u-17"), true},
		{"query first of the name", in(param, "2"), query("user=1&user=2"), false},
		{"query decoded", in(param, "a b&c"), query("user=a+b%26c"), true},
		{"query name decoded", in(param, "1"), query("us%65r=1"), true},
		{"query undecodable is left out", in(param, "2"), query("user=%zz&user=2"), true},
		{"query semicolon separates nothing", in(param, "1;user=2"), query("user=1;user=2"), true},
		{"query of a longer name", present(param, true), query("xuser=1&users=2"), false},
		{"query without a value", in(param, ""), query("user"), true},
		{"query in a value", present(param, true), query("x=user=1"), false},
		{"path", in(on("path", ""), "/v1"), path("/v1"), true},
		{"path prefix", prefix(on("path", ""), "/v1/"), path("/v1/x"), true},
		{"path is not decoded", prefix(on("path", ""), "/a/b"), path("/a%2Fb"), false},
		{"path raw", in(on("path", ""), "/a%2Fb"), path("/a%2Fb"), true},
		{"path present", present(on("path", ""), true), path("/"), true},
		{"method", in(on("method", ""), "GET", "HEAD"), &routing.Request{Method: "HEAD"}, true},
		{"method in another case", in(on("method", ""), "GET"), &routing.Request{Method: "get"}, false},
		{"client in range", cidr(on("client", ""), "10.0.0.0/8"), from("10.255.0.1"), true},
		{"client out of range", cidr(on("client", ""), "10.0.0.0/8"), from("11.0.0.1"), false},
		{"client IPv4 in IPv6", cidr(on("client", ""), "10.0.0.0/8"), from("::ffff:10.0.0.1"), true},
		{"range IPv4 in IPv6", cidr(on("client", ""), "::ffff:10.0.0.0/104"), from("10.0.0.1"), true},
		{"range with host bits", cidr(on("client", ""), "10.9.9.9/8"), from("10.0.0.1"), true},
		{"client with a zone", cidr(on("client", ""), "fe80::/10"), from("fe80::1%eth0"), true},
		{"range of all IPv6 holds no IPv4", cidr(on("client", ""), "::/0"), from("10.0.0.1"), false},
		{"client equal", in(on("client", ""), "192.0.2.7"), from("::ffff:192.0.2.7"), true},
		{"client equal, spelt otherwise", in(on("client", ""), "2001:DB8:0::1"), from("2001:db8::1"), true},
		{"client of another address", in(on("client", ""), "192.0.2.7"), from("192.0.2.8"), false},
		{"client not known", cidr(on("client", ""), "0.0.0.0/0"), &routing.Request{}, false},
		{"client present", present(on("client", ""), true), from("10.0.0.1"), true},
		{"client not present", present(on("client", ""), false), &routing.Request{}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := holds(t, tt.request, tt.match); got != tt.want {
				t.Errorf("holds = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestMatch_AllMustHold(t *testing.T) {
	t.Parallel()
	a, b := in(on("header", "x-a"), "1"), in(on("cookie", "b"), "2")
	for _, tt := range []struct {
		a, b string
		want bool
	}{{"1", "2", true}, {"1", "3", false}, {"3", "2", false}, {"3", "3", false}} {
		q := &routing.Request{Header: http.Header{"X-A": {tt.a}, "Cookie": {"b=" + tt.b}}}
		if got := holds(t, q, a, b); got != tt.want {
			t.Errorf("a=%s b=%s: %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}

// More names than a decision keeps on its stack work all the same.
func TestMatch_ManyNames(t *testing.T) {
	t.Parallel()
	r := routingtest.Weighted("s", 1, 0)
	q := &routing.Request{Header: http.Header{}}
	for i := range routing.MaxRules {
		r.Rules = append(r.Rules, routing.Rule{Name: fmt.Sprintf("r%d", i), Variant: new("v1"), Match: []routing.Match{
			in(on("header", fmt.Sprintf("X-%d", i)), "1"), in(on("cookie", fmt.Sprintf("c%d", i)), "1"), in(on("query", fmt.Sprintf("q%d", i)), "1")}})
		q.Header.Set(fmt.Sprintf("X-%d", i), "1")
		q.Header.Add("Cookie", fmt.Sprintf("c%d=1", i))
		q.RawQuery += fmt.Sprintf("&q%d=%d", i, i/60)
	}
	rt := routingtest.Compile(t, r)
	if d := rt.Decide(q, routingtest.NoDraw(t)); d.Reason() != "rule:r60" {
		t.Errorf("Decide = %s, want rule:r60", d.Reason())
	}
	if got := len(rt.Vary()); got != routing.MaxRules+1 {
		t.Errorf("Vary names %d headers, want %d", got, routing.MaxRules+1)
	}
}

// FuzzMatch_Cookie compares the scanner of Cookie lines with net/http's.
func FuzzMatch_Cookie(f *testing.F) {
	for _, seed := range []string{"canary=1", `a="; canary=1`, `canary="x y"`, "canary", " canary = 1 ;canary=2", "canary=\x01;canary=2", `canary=""`, "canary=a,b"} {
		f.Add(seed, "a=b")
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		if strings.ContainsAny(one+two, "\r\n\x00\v\f") || strings.Count(one+two, ";") > 100 {
			return // no header line holds these; and net/http counts cookies
		}
		q := cookies(one, two)
		c, err := (&http.Request{Header: q.Header}).Cookie("canary")
		if got := holds(t, q, present(on("cookie", "canary"), true)); got != (err == nil) {
			t.Fatalf("%q: present = %v, net/http says %v", q.Header, got, err)
		}
		if err == nil && len(c.Value) <= 1024 && !holds(t, q, in(on("cookie", "canary"), c.Value)) {
			t.Fatalf("%q: not the value %q of net/http", q.Header, c.Value)
		}
	})
}

// FuzzMatch_Query compares the scanner of queries with net/url's, but for the
// semicolon, which that refuses and which separates nothing here.
func FuzzMatch_Query(f *testing.F) {
	for _, seed := range []string{"user=1", "user=%zz&user=2", "us%65r=a+b", "user", "&&user=&", "user==&user"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if strings.Contains(raw, ";") {
			return
		}
		values, _ := url.ParseQuery(raw)
		q := query(raw)
		if got := holds(t, q, present(on("query", "user"), true)); got != values.Has("user") {
			t.Fatalf("%q: present = %v, net/url says %v", raw, got, values.Has("user"))
		}
		if v := values.Get("user"); values.Has("user") && len(v) <= 1024 && !holds(t, q, in(on("query", "user"), v)) {
			t.Fatalf("%q: not the value %q of net/url", raw, v)
		}
	})
}
