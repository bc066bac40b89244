// Package routingtest makes records, requests and draws for tests.
package routingtest

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"testing"

	"specialroutes.example/services/routing"
)

// Rand returns a source of random numbers that is the same in every run.
func Rand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x5eed)) }

// Draws returns a draw for Route.Decide from rnd.
func Draws(rnd *rand.Rand) func(sum int64) int64 {
	return func(sum int64) int64 { return 1 + rnd.Int64N(sum) }
}

// Always returns a draw that gives v, whatever the sum.
func Always(v int64) func(sum int64) int64 {
	return func(int64) int64 { return v }
}

// NoDraw returns a draw that fails the test when something asks for it.
func NoDraw(t testing.TB) func(sum int64) int64 {
	return func(sum int64) int64 {
		t.Helper()
		t.Errorf("the decision drew from 1 to %d, want no draw", sum)
		return 1
	}
}

// Book returns the record of the book: old and new, new at endpoint, and weight
// of ten tenths staying on old.
func Book(service string, weight int64, endpoint string) *routing.Record {
	return &routing.Record{
		Service: service,
		Active:  new(true),
		Variants: []routing.Variant{
			{Name: "old", Weight: new(weight)},
			{Name: "new", Weight: new(10 - weight), Endpoint: new(endpoint)},
		},
		Default: new("old"),
	}
}

// Weighted returns a record of variants v0, v1 and so on with these weights and
// no place of their own; v0 is the default.
func Weighted(service string, weights ...int64) *routing.Record {
	r := &routing.Record{Service: service, Active: new(true), Default: new("v0")}
	for i, w := range weights {
		r.Variants = append(r.Variants, routing.Variant{Name: fmt.Sprintf("v%d", i), Weight: new(w)})
	}
	return r
}

// Compile compiles a record that must be valid, without a wildcard record.
func Compile(t testing.TB, r *routing.Record) *routing.Route {
	t.Helper()
	rt, err := routing.Compile(r, nil)
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	return rt
}

// Key returns a random key in the form of the gateway's cookie.
func Key(rnd *rand.Rand) string {
	var b [16]byte
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// The words of which random records and requests are made: few, so that the two
// meet often.
var (
	headerNames = []string{"tmx-user-id", "X-Team", "Accept-Language"}
	fieldNames  = []string{"canary", "group", "u"}
	values      = []string{"", "a", "ab", "abc", "u-17", "u-42", "b"}
	methods     = []string{http.MethodGet, http.MethodPost, http.MethodPut}
	paths       = []string{"/", "/v1/organizations/1", "/v1/licenses", "/v2"}
	addresses   = []string{"10.1.2.3", "192.0.2.7", "2001:db8::1", "2001:db8:0:1::2", "::ffff:10.9.9.9"}
	ranges      = []string{"10.0.0.0/8", "192.0.2.0/24", "2001:db8::/64", "0.0.0.0/0", "::ffff:10.0.0.0/104"}
	regexes     = []string{"u-[0-9]+", "a", "(?i)AB|b", "/v1/.*", "[0-9]*"}
)

func pick(rnd *rand.Rand, words []string) string { return words[rnd.IntN(len(words))] }

// Record returns a random record that is valid: any number of variants in any
// place, rules of every kind, sticky in every way.
func Record(rnd *rand.Rand) *routing.Record {
	r := &routing.Record{Service: fmt.Sprintf("service-%d", rnd.IntN(5)), Active: new(rnd.IntN(10) > 0)}
	names := []string{routing.DefaultName}
	if rnd.IntN(10) > 0 {
		names = addVariants(rnd, r)
	}
	for i := range rnd.IntN(6) {
		r.Rules = append(r.Rules, rule(rnd, fmt.Sprintf("rule-%d", i), names))
	}
	if rnd.IntN(2) > 0 {
		r.Sticky = sticky(rnd)
	}
	if rnd.IntN(3) == 0 {
		r.OnUnavailable = new(pick(rnd, []string{routing.OnUnavailableDefault, routing.OnUnavailableFail}))
	}
	return r
}

// addVariants gives the record variants and a default, and returns their names.
func addVariants(rnd *rand.Rand, r *routing.Record) []string {
	n := 1 + rnd.IntN(routing.MaxVariants)
	names := make([]string, n)
	for i := range n {
		v := routing.Variant{Name: fmt.Sprintf("v%d", i), Weight: new(rnd.Int64N(4) * rnd.Int64N(1000))}
		switch rnd.IntN(4) {
		case 0:
			v.Endpoint = new(fmt.Sprintf("http://10.0.0.%d:8080/base", i+1))
		case 1:
			v.Service = new("other")
		case 2:
			v.Selector = map[string]string{"version": v.Name}
		}
		names[i] = v.Name
		r.Variants = append(r.Variants, v)
	}
	*r.Variants[rnd.IntN(n)].Weight += 1
	r.Default = new(pick(rnd, names))
	return names
}

func rule(rnd *rand.Rand, name string, variants []string) routing.Rule {
	u := routing.Rule{Name: name}
	for range 1 + rnd.IntN(2) {
		u.Match = append(u.Match, match(rnd))
	}
	if rnd.IntN(3) > 0 {
		u.Variant = new(pick(rnd, variants))
		return u
	}
	u.Weights = map[string]int64{pick(rnd, variants): 1 + rnd.Int64N(100)}
	for range rnd.IntN(3) {
		if other := pick(rnd, variants); u.Weights[other] == 0 {
			u.Weights[other] = rnd.Int64N(100)
		}
	}
	return u
}

func match(rnd *rand.Rand) routing.Match {
	m := routing.Match{On: pick(rnd, []string{
		routing.OnHeader, routing.OnCookie, routing.OnQuery, routing.OnPath, routing.OnMethod, routing.OnClient})}
	words := values
	switch m.On {
	case routing.OnHeader:
		m.Name = new(pick(rnd, headerNames))
	case routing.OnCookie, routing.OnQuery:
		m.Name = new(pick(rnd, fieldNames))
	case routing.OnPath:
		words = paths
	case routing.OnMethod:
		words = methods
	}
	if m.On == routing.OnClient {
		if rnd.IntN(2) == 0 {
			m.CIDR = new(pick(rnd, ranges))
		} else {
			m.In = []string{pick(rnd, addresses), pick(rnd, addresses)}
		}
		return m
	}
	switch rnd.IntN(4) {
	case 0:
		m.In = []string{words[1+rnd.IntN(len(words)-1)]}
		for range rnd.IntN(12) {
			m.In = append(m.In, words[1+rnd.IntN(len(words)-1)])
		}
	case 1:
		m.Prefix = new(words[1+rnd.IntN(len(words)-1)])
	case 2:
		m.Regex = new(pick(rnd, regexes))
	default: // a path and a method are always there
		m.Present = new(m.On == routing.OnPath || m.On == routing.OnMethod || rnd.IntN(2) == 0)
	}
	return m
}

func sticky(rnd *rand.Rand) *routing.Sticky {
	s := &routing.Sticky{By: pick(rnd, []string{
		routing.ByHeader, routing.ByCookie, routing.ByQuery, routing.ByClient, routing.ByGatewayCookie})}
	switch s.By {
	case routing.ByHeader:
		s.Name = new(pick(rnd, headerNames))
	case routing.ByCookie, routing.ByQuery:
		s.Name = new(pick(rnd, fieldNames))
	case routing.ByGatewayCookie:
		return s
	}
	if rnd.IntN(2) == 0 {
		s.Salt = new(pick(rnd, values))
	}
	if rnd.IntN(2) == 0 {
		s.Missing = new(pick(rnd, []string{routing.MissingDraw, routing.MissingDefault}))
	}
	return s
}

// Request returns a random request of the same few words as Record.
func Request(rnd *rand.Rand) *routing.Request {
	q := &routing.Request{Method: pick(rnd, methods), Path: pick(rnd, paths), Header: http.Header{}}
	for _, name := range headerNames {
		for range rnd.IntN(3) {
			q.Header.Add(name, pick(rnd, values))
		}
	}
	for range rnd.IntN(3) {
		q.Header.Add("Cookie", pick(rnd, fieldNames)+"="+pick(rnd, values)+"; x="+pick(rnd, values))
		q.RawQuery += pick(rnd, fieldNames) + "=" + pick(rnd, values) + "&"
	}
	if rnd.IntN(3) == 0 {
		q.Header.Add("Cookie", routing.KeyCookie+"="+Key(rnd))
	}
	if rnd.IntN(10) > 0 {
		q.Client = netip.MustParseAddr(pick(rnd, addresses))
	}
	if rnd.IntN(10) == 0 {
		q.Override = fmt.Sprintf("v%d", rnd.IntN(4))
	}
	if rnd.IntN(4) == 0 {
		q.FreshKey = Key(rnd)
	}
	return q
}
