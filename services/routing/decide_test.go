package routing_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"specialroutes.example/services/routing"
	"specialroutes.example/services/routing/routingtest"
)

// The record's place in the decision order is shown by records that are the same
// but for the earlier step: the later one would choose differently.
func TestDecide_Order(t *testing.T) {
	t.Parallel()
	key := keyOf(t, "v1", 5, 5)
	record := func(change func(*routing.Record)) *routing.Record {
		r := routingtest.Weighted("s", 5, 5, 0, 0)
		r.Rules = []routing.Rule{
			{Name: "first", Variant: new("v2"), Match: []routing.Match{{On: "header", Name: new("X-Rule"), In: []string{"1", "both"}}}},
			{Name: "second", Variant: new("v3"), Match: []routing.Match{{On: "header", Name: new("X-Rule"), In: []string{"2", "both"}}}},
		}
		r.Sticky = &routing.Sticky{By: "header", Name: new("X-Key")}
		if change != nil {
			change(r)
		}
		return r
	}
	inactive := func(r *routing.Record) { r.Active = new(false) }
	header := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	tests := []struct {
		name    string
		record  *routing.Record
		request routing.Request
		draws   bool
		variant string
		reason  string
	}{
		{"no record", nil, routing.Request{Override: "v2", Header: header("X-Rule", "1")}, false, "default", "no-record"},
		{"inactive before override", record(inactive), routing.Request{Override: "v2"}, false, "v0", "inactive"},
		{"inactive before rules", record(inactive), routing.Request{Header: header("X-Rule", "1")}, false, "v0", "inactive"},
		{"inactive before sticky", record(inactive), routing.Request{Header: header("X-Key", key)}, false, "v0", "inactive"},
		{"inactive before draw", record(inactive), routing.Request{}, false, "v0", "inactive"},
		{"override before rules", record(nil), routing.Request{Override: "v3", Header: header("X-Rule", "1")}, false, "v3", "override"},
		{"override before sticky", record(nil), routing.Request{Override: "v0", Header: header("X-Key", key)}, false, "v0", "override"},
		{"override of no variant is none", record(nil), routing.Request{Override: "v9", Header: header("X-Rule", "1")}, false, "v2", "rule:first"},
		{"rules in order", record(nil), routing.Request{Header: header("X-Rule", "both")}, false, "v2", "rule:first"},
		{"second rule when the first does not hold", record(nil), routing.Request{Header: header("X-Rule", "2")}, false, "v3", "rule:second"},
		{"rules before sticky", record(nil), routing.Request{Header: header("X-Rule", "1", "X-Key", key)}, false, "v2", "rule:first"},
		{"sticky before draw", record(nil), routing.Request{Header: header("X-Key", key)}, false, "v1", "sticky"},
		{"draw without a key", record(nil), routing.Request{}, true, "v0", "draw"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rt, err := routing.Compile(tt.record, nil)
			if err != nil {
				t.Fatal(err)
			}
			draw := routingtest.NoDraw(t)
			if tt.draws {
				draw = routingtest.Always(1)
			}
			d := rt.Decide(&tt.request, draw)
			if got := rt.Variant(d.Variant).Name; got != tt.variant || d.Reason() != tt.reason {
				t.Errorf("Decide = %s, %s; want %s, %s", got, d.Reason(), tt.variant, tt.reason)
			}
		})
	}
}

// keyOf finds a key that the weights give to that variant of Weighted("s", …).
func keyOf(t *testing.T, variant string, weights ...int64) string {
	t.Helper()
	rt := routingtest.Compile(t, routingtest.Weighted("s", weights...))
	for i := range 1000 {
		if key := fmt.Sprintf("u-%d", i); rt.Variant(rt.ByKey(key)).Name == variant {
			return key
		}
	}
	t.Fatalf("no key leads to %s", variant)
	return ""
}

func TestDecide_BookTakesTheAlternateWhenWeightIsBelowTheDraw(t *testing.T) {
	t.Parallel()
	for weight := int64(0); weight <= 10; weight++ {
		rt := routingtest.Compile(t, routingtest.Book("organizationservice", weight, "http://orgservice-new:8087"))
		for v := int64(1); v <= 10; v++ {
			want := "old"
			if weight < v {
				want = "new"
			}
			d := rt.Decide(&routing.Request{}, func(sum int64) int64 {
				if sum != 10 {
					t.Errorf("the draw is from 1 to %d, want 10", sum)
				}
				return v
			})
			if got := rt.Variant(d.Variant).Name; got != want {
				t.Errorf("weight %d, draw %d: %s, want %s", weight, v, got, want)
			}
		}
	}
}

func TestDecide_DefaultOwnsTheFirstInterval(t *testing.T) {
	t.Parallel()
	r := routingtest.Weighted("s", 1, 2, 0, 3)
	r.Default = new("v3")
	rt := routingtest.Compile(t, r)
	for v, want := range []string{1: "v3", 2: "v3", 3: "v3", 4: "v0", 5: "v1", 6: "v1"} {
		if v == 0 {
			continue
		}
		d := rt.Decide(&routing.Request{}, routingtest.Always(int64(v)))
		if got := rt.Variant(d.Variant).Name; got != want {
			t.Errorf("draw %d: %s, want %s", v, got, want)
		}
	}
}

// Every number from 1 to the sum leads to one variant, and each variant to as
// many of them as its weight says.
func TestDecide_DrawCoversTheWeightsExactly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		weights := rapid.SliceOfN(rapid.Int64Range(0, 30), 1, 16).
			Filter(func(w []int64) bool { return sumOf(w) > 0 }).Draw(rt, "weights")
		r := routingtest.Weighted("s", weights...)
		r.Default = new(fmt.Sprintf("v%d", rapid.IntRange(0, len(weights)-1).Draw(rt, "default")))
		route, err := routing.Compile(r, nil)
		if err != nil {
			rt.Fatal(err)
		}
		got := make([]int64, len(weights))
		for v := int64(1); v <= sumOf(weights); v++ {
			got[route.Decide(&routing.Request{}, routingtest.Always(v)).Variant]++
		}
		for i, w := range weights {
			if got[i] != w {
				rt.Errorf("variant %d has %d numbers, want its weight %d", i, got[i], w)
			}
		}
	})
}

func sumOf(weights []int64) (sum int64) {
	for _, w := range weights {
		sum += w
	}
	return sum
}

// shares are the weights whose shares are measured, by the draw and by keys.
var shares = [][]int64{{1, 2, 3, 94}, {0, 1}, {5, 5}, {1, 1}}

func TestDecide_DrawnSharesFollowTheWeights(t *testing.T) {
	t.Parallel()
	for seed, weights := range shares {
		t.Run(fmt.Sprint(weights), func(t *testing.T) {
			t.Parallel()
			rt := routingtest.Compile(t, routingtest.Weighted("s", weights...))
			draw := routingtest.Draws(routingtest.Rand(uint64(seed)))
			checkShares(t, weights, 200_000, func(int) int { return rt.Decide(&routing.Request{}, draw).Variant })
		})
	}
}

// One run draws from a real source: five standard deviations are passed by chance
// once in some two million runs.
func TestDecide_SharesFromARealSource(t *testing.T) {
	t.Parallel()
	weights := []int64{1, 2, 3, 94}
	rt := routingtest.Compile(t, routingtest.Weighted("s", weights...))
	draw := func(sum int64) int64 { return 1 + rand.Int64N(sum) }
	checkShares(t, weights, 200_000, func(int) int { return rt.Decide(&routing.Request{}, draw).Variant })
}

// checkShares calls choose n times and wants each variant's count within five
// standard deviations of its share, exactly 0 or n where there is no choice.
func checkShares(t *testing.T, weights []int64, n int, choose func(i int) int) {
	t.Helper()
	counts := make([]int, len(weights))
	for i := range n {
		counts[choose(i)]++
	}
	for i, w := range weights {
		p := float64(w) / float64(sumOf(weights))
		mean, deviation := float64(n)*p, math.Sqrt(float64(n)*p*(1-p))
		if math.Abs(float64(counts[i])-mean) > 5*deviation {
			t.Errorf("variant %d of weight %d: %d of %d, want %.0f ± %.0f", i, w, counts[i], n, mean, 5*deviation)
		}
	}
}

func TestDecide_RuleWithWeights(t *testing.T) {
	t.Parallel()
	r := routingtest.Weighted("s", 100, 0, 0)
	r.Rules = []routing.Rule{{Name: "half", Weights: map[string]int64{"v1": 1, "v2": 1},
		Match: []routing.Match{{On: "path", Prefix: new("/")}}}}
	t.Run("draws in record order when the default has no part", func(t *testing.T) {
		rt := routingtest.Compile(t, r)
		for v, want := range map[int64]int{1: 1, 2: 2} {
			if d := rt.Decide(&routing.Request{Path: "/"}, routingtest.Always(v)); d.Variant != want || d.Reason() != "rule:half" {
				t.Errorf("draw %d = %+v, want variant %d by the rule", v, d, want)
			}
		}
	})
	t.Run("sticks by the record's key and salt", func(t *testing.T) {
		sticky := r.Clone()
		sticky.Sticky = &routing.Sticky{By: "header", Name: new("X-Key"), Salt: new("pepper"), Missing: new("default")}
		rt := routingtest.Compile(t, sticky)
		same := routingtest.Weighted("s", 0, 1, 1)
		same.Sticky = sticky.Sticky
		want := routingtest.Compile(t, same)
		checkShares(t, []int64{0, 1, 1}, 2000, func(i int) int {
			q := &routing.Request{Path: "/", Header: http.Header{"X-Key": {fmt.Sprint(i)}}}
			d := rt.Decide(q, routingtest.NoDraw(t))
			if other := want.Decide(q, routingtest.NoDraw(t)); d.Variant != other.Variant {
				t.Fatalf("key %d: variant %d, but %d with the same weights in the record", i, d.Variant, other.Variant)
			}
			return d.Variant
		})
		d := rt.Decide(&routing.Request{Path: "/"}, routingtest.NoDraw(t))
		if d.Variant != 0 || d.Reason() != "rule:half" {
			t.Errorf("without a key = %+v, want the default variant by the rule", d)
		}
	})
}

// What the client sends and the record does not name changes nothing.
func TestDecide_NothingElseMatters(t *testing.T) {
	t.Parallel()
	rt := routingtest.Compile(t, routingtest.Weighted("s", 5, 5))
	q := &routing.Request{Method: "POST", Path: "/x", RawQuery: "variant=v1", FreshKey: "k", Client: netip.MustParseAddr("10.0.0.1"),
		Header: http.Header{"X-Route-Variant": {"v1"}, "Version": {"v1"}, "Cookie": {"sr-key=AAECAwQFBgcICQoLDA0ODw; route-override=v1"}}}
	if d := rt.Decide(q, routingtest.Always(1)); d.Variant != 0 || d.Kind != routing.KindDraw {
		t.Errorf("Decide = %+v, want variant 0 by the draw", d)
	}
}

func TestDecide_AllocatesNothing(t *testing.T) {
	many := twentyRules()
	many.Sticky = &routing.Sticky{By: "client", Missing: new("default")}
	withCookie := routingtest.Weighted("s", 5, 5)
	withCookie.Sticky = &routing.Sticky{By: "gateway-cookie"}
	for name, r := range map[string]*routing.Record{
		"no record": nil, "no rules": routingtest.Weighted("s", 5, 5),
		"twenty rules": twentyRules(), "twenty rules and sticky": many, "gateway cookie": withCookie,
	} {
		rt, err := routing.Compile(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		q, draw := benchRequest(), routingtest.Always(1)
		if n := testing.AllocsPerRun(100, func() { rt.Decide(q, draw) }); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}
