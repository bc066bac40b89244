package routing_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"testing"

	"specialroutes.example/services/routing"
	"specialroutes.example/services/routing/routingtest"
)

// twentyRules is a record of twenty rules on headers, cookies, path and client, of
// which the request of benchRequest meets none, so that all are tried.
func twentyRules() *routing.Record {
	r := routingtest.Weighted("organizationservice", 5, 5)
	for i := range 5 {
		r.Rules = append(r.Rules,
			routing.Rule{Name: fmt.Sprintf("header-%d", i), Variant: new("v1"), Match: []routing.Match{
				{On: "header", Name: new(fmt.Sprintf("X-Header-%d", i)), In: []string{"one", "two", "three"}}}},
			routing.Rule{Name: fmt.Sprintf("cookie-%d", i), Variant: new("v1"), Match: []routing.Match{
				{On: "cookie", Name: new(fmt.Sprintf("cookie-%d", i)), Prefix: new("canary")}}},
			routing.Rule{Name: fmt.Sprintf("path-%d", i), Variant: new("v1"), Match: []routing.Match{
				{On: "path", Prefix: new(fmt.Sprintf("/v%d/", 5+i))}}},
			routing.Rule{Name: fmt.Sprintf("client-%d", i), Variant: new("v1"), Match: []routing.Match{
				{On: "client", CIDR: new(fmt.Sprintf("10.%d.0.0/16", i))}}})
	}
	return r
}

// benchRequest carries every header and cookie that twentyRules asks for, among
// others.
func benchRequest() *routing.Request {
	q := &routing.Request{
		Method: "GET", Path: "/v1/organizations/e254f8c-c442-4ebe-a82a-e2fc1d1ff78a",
		RawQuery: "a=1&b=2&user=u-17", Client: netip.MustParseAddr("192.0.2.7"), Header: http.Header{},
	}
	cookies := ""
	for i := range 10 {
		q.Header.Set(fmt.Sprintf("X-Header-%d", i), "some other value")
		cookies += fmt.Sprintf("cookie-%d=a-session-value; ", i)
	}
	q.Header.Set("Tmx-User-Id", "u-1234567")
	q.Header.Set("Cookie", cookies+"last=1")
	return q
}

func benchmarkDecide(b *testing.B, r *routing.Record, q *routing.Request, want routing.Kind) {
	b.Helper()
	rt := routingtest.Compile(b, r)
	draw := routingtest.Always(7)
	if got := rt.Decide(q, draw).Kind; got != want {
		b.Fatalf("Decide = %v, want %v", got, want)
	}
	b.ReportAllocs()
	for b.Loop() {
		rt.Decide(q, draw)
	}
}

func BenchmarkDecide_NoRules(b *testing.B) {
	benchmarkDecide(b, routingtest.Weighted("organizationservice", 5, 5), benchRequest(), routing.KindDraw)
}

func BenchmarkDecide_TwentyRules(b *testing.B) {
	benchmarkDecide(b, twentyRules(), benchRequest(), routing.KindDraw)
}

func BenchmarkDecide_TwentyRulesAndSticky(b *testing.B) {
	r := twentyRules()
	r.Sticky = &routing.Sticky{By: "header", Name: new("tmx-user-id")}
	benchmarkDecide(b, r, benchRequest(), routing.KindSticky)
}

func BenchmarkDecide_Sticky(b *testing.B) {
	for _, n := range []int{2, 4, 8, 16} {
		b.Run(fmt.Sprintf("variants=%d", n), func(b *testing.B) {
			weights := make([]int64, n)
			for i := range weights {
				weights[i] = 5
			}
			r := routingtest.Weighted("organizationservice", weights...)
			r.Sticky = &routing.Sticky{By: "header", Name: new("tmx-user-id")}
			benchmarkDecide(b, r, benchRequest(), routing.KindSticky)
		})
	}
}

func BenchmarkDecide_Regex(b *testing.B) {
	r := routingtest.Weighted("organizationservice", 5, 5)
	r.Rules = []routing.Rule{{Name: "regex", Variant: new("v1"), Match: []routing.Match{
		{On: "header", Name: new("tmx-user-id"), Regex: new("u-(17|42)[0-9]*x")}}}}
	benchmarkDecide(b, r, benchRequest(), routing.KindDraw)
}

func BenchmarkCompile_TwentyRules(b *testing.B) {
	r := twentyRules()
	for b.Loop() {
		if _, err := routing.Compile(r, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCompile_Regexes shows that a regex is compiled once, though it is judged
// too.
func BenchmarkCompile_Regexes(b *testing.B) {
	r := routingtest.Weighted("organizationservice", 5, 5)
	for n := range 20 {
		r.Rules = append(r.Rules, routing.Rule{Name: fmt.Sprint("r", n), Variant: new("v1"), Match: []routing.Match{
			{On: "header", Name: new("tmx-user-id"), Regex: new(fmt.Sprintf("u-%d(17|42)[0-9]*x{1,9}", n))}}})
	}
	for b.Loop() {
		if _, err := routing.Compile(r, nil); err != nil {
			b.Fatal(err)
		}
	}
}
