package routing_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"specialroutes.example/services/routing"
	"specialroutes.example/services/routing/routingtest"
)

// vectors is docs/sticky-vectors.json, which was computed with decimal arithmetic
// by another program.
type vectors struct {
	Vectors []struct {
		Service, Salt, Key, Variant string
		Variants                    []struct {
			Name   string
			Weight int64
			Hash   string
			Score  float64
		}
	}
}

func readVectors(t *testing.T) vectors {
	t.Helper()
	data, err := os.ReadFile("../../docs/sticky-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Vectors) < 20 {
		t.Fatalf("%d vectors, want at least 20", len(v.Vectors))
	}
	return v
}

func TestSticky_Vectors(t *testing.T) {
	t.Parallel()
	for i, v := range readVectors(t).Vectors {
		r := &routing.Record{Service: v.Service, Active: new(true), Default: new(v.Variants[0].Name)}
		r.Sticky = &routing.Sticky{By: "query", Name: new("k"), Salt: new(v.Salt)}
		var scores []float64
		for _, variant := range v.Variants {
			r.Variants = append(r.Variants, routing.Variant{Name: variant.Name, Weight: new(variant.Weight)})
			if variant.Weight == 0 {
				continue
			}
			scores = append(scores, variant.Score)
			sum := sha256.Sum256([]byte(v.Service + "\x00" + v.Salt + "\x00" + v.Key + "\x00" + variant.Name))
			if got := hex.EncodeToString(sum[:])[:13]; got != variant.Hash {
				t.Errorf("vector %d, %s: hash %s, want %s", i, variant.Name, got, variant.Hash)
			}
			if got := routing.Score([]byte(v.Service+"\x00"+v.Salt+"\x00"+v.Key+"\x00"+variant.Name), variant.Weight); math.Abs(got/variant.Score-1) > 1e-12 {
				t.Errorf("vector %d, %s: score %v, want %v", i, variant.Name, got, variant.Score)
			}
		}
		slices.Sort(scores)
		if len(scores) > 1 && scores[1]-scores[0] <= 1e-9 {
			t.Errorf("vector %d: the two smallest scores are only %g apart", i, scores[1]-scores[0])
		}
		rt := routingtest.Compile(t, r)
		d := rt.Decide(&routing.Request{RawQuery: "k=" + strings.ReplaceAll(v.Key, "+", "%2B")}, routingtest.NoDraw(t))
		if got := rt.Variant(d.Variant).Name; got != v.Variant {
			t.Errorf("vector %d: %s, want %s", i, got, v.Variant)
		}
		if got := rt.Variant(rt.ByKey(v.Key)).Name; got != v.Variant {
			t.Errorf("vector %d: ByKey = %s, want %s", i, got, v.Variant)
		}
	}
}

// The limits of the formula cannot be reached by looking for keys.
func TestSticky_FormulaAtItsLimits(t *testing.T) {
	t.Parallel()
	if got, want := routing.ScoreOf(0, 1), 53*math.Ln2; math.Abs(got/want-1) > 1e-15 {
		t.Errorf("score of the smallest hash = %v, want %v", got, want)
	}
	if got, want := routing.ScoreOf(1<<52-1, 1), 1.0/(1<<53); math.Abs(got/want-1) > 1e-15 {
		t.Errorf("score of the largest hash = %v, want %v", got, want)
	}
	if got := routing.ScoreOf(1<<52-1, math.MaxInt32); got <= 0 {
		t.Errorf("score of the largest hash and weight = %v, want above 0", got)
	}
	// Ties go to the earlier variant of the record, wherever the default is.
	if got := routing.OrderOfScores([]int64{1, 0, 2, 3}, 3); !slices.Equal(got, []int{0, 2, 3}) {
		t.Errorf("the variants are scored in the order %v, want that of the record", got)
	}
}

func TestSticky_SharesFollowTheWeights(t *testing.T) {
	t.Parallel()
	for _, weights := range shares {
		t.Run(fmt.Sprint(weights), func(t *testing.T) {
			t.Parallel()
			rt := routingtest.Compile(t, routingtest.Weighted("s", weights...))
			checkShares(t, weights, 200_000, func(i int) int { return rt.ByKey(fmt.Sprintf("user-%d", i)) })
		})
	}
}

// byKeys returns the variant of each of n keys.
func byKeys(t *testing.T, n int, service, salt string, weights ...int64) []int {
	t.Helper()
	r := routingtest.Weighted(service, weights...)
	r.Sticky = &routing.Sticky{By: "client", Salt: new(salt)}
	rt := routingtest.Compile(t, r)
	variants := make([]int, n)
	for i := range variants {
		variants[i] = rt.ByKey(fmt.Sprintf("user-%d", i))
	}
	return variants
}

// Raising a share keeps everybody who is already in.
func TestSticky_RampIsMonotone(t *testing.T) {
	t.Parallel()
	before := byKeys(t, 100_000, "s", "", 100, 0)
	for p := int64(10); p <= 100; p += 10 {
		after := byKeys(t, 100_000, "s", "", 100-p, p)
		for key := range after {
			if before[key] == 1 && after[key] != 1 {
				t.Fatalf("key %d leaves the variant when its share rises to %d %%", key, p)
			}
		}
		before = after
	}
}

// When one weight changes, keys move only to or from that variant.
func TestSticky_OneWeightMovesOnlyItsOwnKeys(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		weights := rapid.SliceOfN(rapid.Int64Range(1, 50), 2, 6).Draw(rt, "weights")
		i := rapid.IntRange(0, len(weights)-1).Draw(rt, "changed")
		w := rapid.Int64Range(0, 60).Draw(rt, "weight")
		after := slices.Clone(weights)
		after[i] = w
		a := byKeys(t, 300, "s", "", weights...)
		b := byKeys(t, 300, "s", "", after...)
		for key := range a {
			switch {
			case a[key] == b[key]:
			case w > weights[i] && b[key] == i:
			case w < weights[i] && a[key] == i:
			default:
				rt.Fatalf("key %d moves from %d to %d when only %d changes from %d to %d",
					key, a[key], b[key], i, weights[i], w)
			}
		}
	})
}

// And no more of them move than the shares differ by, within five standard
// deviations of a count.
func TestSticky_MovesAreMinimal(t *testing.T) {
	t.Parallel()
	const n = 100_000
	for _, tt := range []struct{ before, after []int64 }{
		{[]int64{95, 5}, []int64{90, 10}},
		{[]int64{9, 1}, []int64{1, 9}},
		{[]int64{1, 1}, []int64{1, 0}},
		{[]int64{5, 3, 2}, []int64{5, 3, 12}},
		{[]int64{10, 20, 30, 40}, []int64{10, 20, 30, 0}},
	} {
		var must float64 // half of the sum of differences of shares
		for i := range tt.before {
			must += math.Abs(float64(tt.before[i])/float64(sumOf(tt.before)) - float64(tt.after[i])/float64(sumOf(tt.after)))
		}
		must /= 2
		a, b := byKeys(t, n, "s", "", tt.before...), byKeys(t, n, "s", "", tt.after...)
		moved := 0
		for key := range a {
			if a[key] != b[key] {
				moved++
			}
		}
		if d := math.Abs(float64(moved) - n*must); d > 5*math.Sqrt(n*must*(1-must)) {
			t.Errorf("%v to %v: %d of %d keys move, want %.0f", tt.before, tt.after, moved, n, n*must)
		}
	}
}

// Twenty services at ten percent hit users independently: how often each user is
// hit is binomial.
func TestSticky_ServicesAreIndependent(t *testing.T) {
	t.Parallel()
	const users, services = 20_000, 20
	hits := make([]int, users)
	for s := range services {
		for user, variant := range byKeys(t, users, fmt.Sprintf("service-%d", s), "", 90, 10) {
			hits[user] += variant
		}
	}
	checkBinomial(t, hits, services, 0.1)
}

// So are the deals of twenty salts of one service.
func TestSticky_SaltDealsAnew(t *testing.T) {
	t.Parallel()
	const users, salts = 20_000, 20
	hits := make([]int, users)
	for s := range salts {
		for user, variant := range byKeys(t, users, "s", fmt.Sprint(s), 90, 10) {
			hits[user] += variant
		}
	}
	checkBinomial(t, hits, salts, 0.1)
}

// checkBinomial compares the counts with the binomial distribution by χ². Counts
// that are expected fewer than five times are put together.
func checkBinomial(t *testing.T, counts []int, n int, p float64) {
	t.Helper()
	seen := make([]float64, n+1)
	for _, c := range counts {
		seen[c]++
	}
	var chi2, restSeen, restWant float64
	cells := 0
	for k := range seen {
		choose := math.Exp(lgamma(n+1) - lgamma(k+1) - lgamma(n-k+1))
		want := float64(len(counts)) * choose * math.Pow(p, float64(k)) * math.Pow(1-p, float64(n-k))
		if want < 5 {
			restSeen, restWant = restSeen+seen[k], restWant+want
			continue
		}
		chi2 += (seen[k] - want) * (seen[k] - want) / want
		cells++
	}
	chi2 += (restSeen - restWant) * (restSeen - restWant) / max(restWant, 1)
	// The mean of χ² is its degrees of freedom, its variance twice that.
	if limit := float64(cells) + 5*math.Sqrt(2*float64(cells)); chi2 > limit {
		t.Errorf("χ² = %.1f over %d cells, want below %.1f", chi2, cells, limit)
	}
}

func lgamma(n int) float64 {
	v, _ := math.Lgamma(float64(n))
	return v
}

func TestSticky_WhereTheKeyComesFrom(t *testing.T) {
	t.Parallel()
	const good, other = "AAECAwQFBgcICQoLDA0ODw", "abcdefghijklmnopqrstu_"
	long := strings.Repeat("k", 512)
	tests := []struct {
		name    string
		sticky  routing.Sticky
		request routing.Request
		key     string // "": none
	}{
		{"header", routing.Sticky{By: "header", Name: new("x-key")}, routing.Request{Header: http.Header{"X-Key": {"u"}}}, "u"},
		{"header absent", routing.Sticky{By: "header", Name: new("x-key")}, routing.Request{}, ""},
		{"header blank", routing.Sticky{By: "header", Name: new("x-key")}, routing.Request{Header: http.Header{"X-Key": {" "}}}, ""},
		{"header of 512 bytes", routing.Sticky{By: "header", Name: new("x-key")}, routing.Request{Header: http.Header{"X-Key": {long}}}, long},
		{"header of 513 bytes", routing.Sticky{By: "header", Name: new("x-key")}, routing.Request{Header: http.Header{"X-Key": {long + "k"}}}, ""},
		{"cookie", routing.Sticky{By: "cookie", Name: new("id")}, routing.Request{Header: http.Header{"Cookie": {"xid=a; id=u; id=b"}}}, "u"},
		{"cookie empty", routing.Sticky{By: "cookie", Name: new("id")}, routing.Request{Header: http.Header{"Cookie": {"id="}}}, ""},
		{"query", routing.Sticky{By: "query", Name: new("id")}, routing.Request{RawQuery: "x=1&id=a%2Fb;c&id=2"}, "a/b;c"},
		{"query empty", routing.Sticky{By: "query", Name: new("id")}, routing.Request{RawQuery: "id=&id=2"}, ""},
		{"IPv4", routing.Sticky{By: "client"}, routing.Request{Client: netip.MustParseAddr("192.0.2.7")}, "192.0.2.7"},
		{"IPv4 in IPv6", routing.Sticky{By: "client"}, routing.Request{Client: netip.MustParseAddr("::ffff:192.0.2.7")}, "192.0.2.7"},
		{"IPv6", routing.Sticky{By: "client"}, routing.Request{Client: netip.MustParseAddr("2001:db8:0:1:2:3:4:5")}, "2001:db8:0:1::/64"},
		{"IPv6 with a zone", routing.Sticky{By: "client"}, routing.Request{Client: netip.MustParseAddr("fe80::1%eth0")}, "fe80::/64"},
		{"no client", routing.Sticky{By: "client"}, routing.Request{}, ""},
		{"gateway cookie", routing.Sticky{By: "gateway-cookie"}, routing.Request{Header: http.Header{"Cookie": {"a=b", "sr-key=" + good}}}, good},
		{"gateway cookie before a fresh key", routing.Sticky{By: "gateway-cookie"}, routing.Request{FreshKey: other, Header: http.Header{"Cookie": {"sr-key=" + good}}}, good},
		{"fresh key", routing.Sticky{By: "gateway-cookie"}, routing.Request{FreshKey: good}, good},
		{"fresh key for a cookie of another form", routing.Sticky{By: "gateway-cookie"}, routing.Request{FreshKey: good, Header: http.Header{"Cookie": {"sr-key=v1"}}}, good},
		{"gateway cookie of 21 characters", routing.Sticky{By: "gateway-cookie"}, routing.Request{Header: http.Header{"Cookie": {"sr-key=" + good[1:]}}}, ""},
		{"gateway cookie with a dot", routing.Sticky{By: "gateway-cookie"}, routing.Request{Header: http.Header{"Cookie": {"sr-key=" + good[1:] + "."}}}, ""},
		{"gateway cookie of 4 KiB", routing.Sticky{By: "gateway-cookie"}, routing.Request{Header: http.Header{"Cookie": {"sr-key=" + strings.Repeat("\xffA", 2048)}}}, ""},
		{"no gateway cookie", routing.Sticky{By: "gateway-cookie"}, routing.Request{}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := routingtest.Weighted("s", 1, 1, 1, 1, 1, 1, 1, 1, 0)
			r.Default = new("v8") // which no key leads to
			r.Sticky = &tt.sticky
			rt := routingtest.Compile(t, r)
			if tt.key != "" {
				want := rt.ByKey(tt.key)
				if d := rt.Decide(&tt.request, routingtest.NoDraw(t)); d.Variant != want || d.Kind != routing.KindSticky || d.NeedsKey {
					t.Errorf("Decide = %+v, want variant %d of key %.30q", d, want, tt.key)
				}
				return
			}
			needs := tt.sticky.By == "gateway-cookie"
			if d := rt.Decide(&tt.request, routingtest.Always(3)); d.Variant != 2 || d.Kind != routing.KindDraw || d.NeedsKey != needs {
				t.Errorf("Decide without a key = %+v, want the draw", d)
			}
			if needs {
				return
			}
			r.Sticky.Missing = new("default")
			rt = routingtest.Compile(t, r)
			if d := rt.Decide(&tt.request, routingtest.NoDraw(t)); d.Variant != 8 || d.Kind != routing.KindSticky {
				t.Errorf("Decide without a key, missing default = %+v, want the default variant", d)
			}
		})
	}
}

func TestSticky_KeyMaxAge(t *testing.T) {
	t.Parallel()
	r := routingtest.Weighted("s", 1, 1)
	for _, tt := range []struct {
		sticky *routing.Sticky
		want   int64
	}{
		{nil, 0},
		{&routing.Sticky{By: "client"}, 0},
		{&routing.Sticky{By: "gateway-cookie"}, routing.DefaultKeyMaxAge},
		{&routing.Sticky{By: "gateway-cookie", MaxAge: new(int64(60))}, 60},
	} {
		r.Sticky = tt.sticky
		if got := routingtest.Compile(t, r).KeyMaxAge(); got != tt.want {
			t.Errorf("KeyMaxAge of %+v = %d, want %d", tt.sticky, got, tt.want)
		}
	}
}
