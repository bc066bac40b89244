package balance

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"specialroutes.example/gateway/internal/registry"
	"specialroutes.example/services/routing"
)

func lenient(name string) routing.LabelRule {
	return routing.LabelRule{Header: name, Label: name, Mode: "lenient"}
}

func exact(name string) routing.LabelRule {
	return routing.LabelRule{Header: name, Label: name, Mode: "exact"}
}

// lane is the rule of the lanes, with the network that calls without a label stay in.
func lane(guard ...string) routing.LabelRule {
	return routing.LabelRule{Header: "zone", Label: "zone", Mode: "symmetric", Guard: guard}
}

func withFallback(r routing.LabelRule, fallback routing.LabelFallback) routing.LabelRule {
	r.Fallback = new(string(fallback))
	return r
}

// ruled is the route of a record that has label rules alone.
func ruled(t interface {
	Helper()
	Fatal(...any)
}, service string, rules ...routing.LabelRule) *routing.Route {
	t.Helper()
	rt, err := routing.Compile(&routing.Record{Service: service, Active: new(true), LabelRules: rules}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// header makes a header of names and values in turn.
func header(pairs ...string) http.Header {
	h := make(http.Header)
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// labels makes labels of text such as "app=clientA version=1".
func labels(text string) map[string]string {
	all := make(map[string]string)
	for _, pair := range strings.Fields(text) {
		key, value, _ := strings.Cut(pair, "=")
		all[key] = value
	}
	return all
}

// carrying are instances a1, a2 and so on with these labels.
func carrying(texts ...string) []registry.Instance {
	all := instances(len(texts))
	for i, text := range texts {
		all[i].Labels = labels(text)
	}
	return all
}

func (e *estate) asking(rt *routing.Route, pairs ...string) *Selection {
	return e.balancer.Select(Want{Service: "a", Route: rt, Instances: e.instances, Header: header(pairs...)})
}

// reached are the instances that requests with these headers come to, sorted.
func (e *estate) reached(rt *routing.Route, pairs ...string) string {
	var all []string
	for range 12 {
		if p := e.asking(rt, pairs...).Next(); p != nil {
			all = append(all, p.Name)
			p.Answered()
			p.Release()
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

// Grey release: app and version must both be equal.
func TestGreyRelease(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": carrying(
		"app=clientA version=beta-one zone=a", "app=clientA version=beta-two zone=b", "")})
	rt := ruled(t, "a", exact("app"), exact("version"))
	tests := []struct {
		name   string
		header []string
		want   string
	}{
		{"the first version", []string{"App", "clientA", "Version", "beta-one"}, "a1"},
		{"the second version", []string{"App", "clientA", "Version", "beta-two"}, "a2"},
		{"another app", []string{"App", "clientB", "Version", "beta-one"}, ""},
		{"another version", []string{"App", "clientA", "Version", "beta-three"}, ""},
		{"case matters", []string{"App", "clienta", "Version", "beta-one"}, ""},
		{"one header is missing", []string{"App", "clientA"}, ""},
		{"one header is blank", []string{"App", "clientA", "Version", " "}, ""},
		{"no header", nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := e.reached(rt, tt.header...); got != tt.want {
				t.Errorf("reached %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLanes(t *testing.T) {
	t.Parallel()
	rt := ruled(t, "a", lane())
	tests := []struct {
		instance, request string
		passes            bool
	}{
		{"", "", true}, {"", "x", false}, {"x", "", false}, {"x", "x", true}, {"x", "y", false}, {"x", "  ", false}, {"", "  ", true},
	}
	for _, tt := range tests {
		e := newEstate(t, map[string][]registry.Instance{"a": carrying("zone=" + tt.instance)})
		if got := e.reached(rt, "Zone", tt.request) != ""; got != tt.passes {
			t.Errorf("instance %q, request %q: passes %v, want %v", tt.instance, tt.request, got, tt.passes)
		}
	}
}

// A laptop that is registered in the shared environment gets only calls that carry
// its label, even if it says that it has none.
func TestTheGuard(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": {
		{ID: "inside", Address: "10.0.3.4:80"},
		{ID: "laptop", Address: "192.168.1.5:80"},
		{ID: "named", Address: "laptop.example:80"},
		{ID: "six", Address: "[fd00::5]:80"},
		{ID: "mapped", Address: "[::ffff:10.0.0.9]:80"},
		{ID: "alice", Address: "192.168.1.6:80", Labels: labels("zone=alice")},
	}})
	rt := ruled(t, "a", lane("10.0.0.0/16", "fd00::/8"))
	if got, want := e.reached(rt), "inside mapped six"; got != want {
		t.Errorf("a request without the label reached %q, want %q", got, want)
	}
	if got, want := e.reached(rt, "Zone", "alice"), "alice"; got != want {
		t.Errorf("a request of the lane reached %q, want %q", got, want)
	}
	loose := withFallback(lane("172.16.0.0/12"), routing.LabelAny)
	if got := e.reached(ruled(t, "a", loose)); got != "" {
		t.Errorf("the fallback went around the guard to %q", got)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": carrying("version=1.0.0", "version=2.0.0", "")})
	rt := ruled(t, "a", lenient("version"))
	for _, tt := range []struct{ version, want string }{
		{"", "a1 a2 a3"}, {" ", "a1 a2 a3"}, {"1.0.0", "a1 a3"}, {"2.0.0", "a2 a3"}, {"3.0.0", "a3"},
	} {
		if got := e.reached(rt, "Version", tt.version); got != tt.want {
			t.Errorf("version %q reached %q, want %q", tt.version, got, tt.want)
		}
	}
}

func TestFallbacksOfLabelRules(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": carrying(
		"app=x version=1", "app=x", "app=y version=2", "app=x version=3", "")})
	tests := []struct {
		name  string
		rules []routing.LabelRule
		want  string
		why   Reason
	}{
		{"none", []routing.LabelRule{exact("app"), exact("version")}, "", ""},
		{"unlabelled, of what the rule before left", []routing.LabelRule{exact("app"), withFallback(exact("version"), routing.LabelUnlabelled)}, "a2", Labels},
		{"any, of what the rule before left", []routing.LabelRule{exact("app"), withFallback(exact("version"), routing.LabelAny)}, "a1 a2 a4", Labels},
		{"the rule after a fallback filters on", []routing.LabelRule{withFallback(exact("version"), routing.LabelUnlabelled), exact("app")}, "a2", Labels},
		{"a fallback that is not needed", []routing.LabelRule{withFallback(exact("app"), routing.LabelAny)}, "a1 a2 a4", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rt := ruled(t, "a", tt.rules...)
			ask := []string{"App", "x", "Version", "9"}
			if got := e.reached(rt, ask...); got != tt.want {
				t.Errorf("reached %q, want %q", got, tt.want)
			}
			s := e.asking(rt, ask...)
			s.Next()
			if _, why := s.GaveWay(); why != tt.why {
				t.Errorf("gave way for %q, want %q", why, tt.why)
			}
		})
	}
}

// Labels never give way but by their own fallback: a version that is tripped is
// asked rather than another one.
func TestLabelsOutlastAvailability(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": carrying("version=1", "version=2")})
	e.trip("a2")
	s := e.asking(ruled(t, "a", lenient("version")), "Version", "2")
	if got := walk(s); !slices.Equal(got, []string{"a2"}) {
		t.Errorf("tried %q, want a2", got)
	}
	if variant, why := s.GaveWay(); variant != "default" || why != Tripped {
		t.Errorf("GaveWay = %q, %q; want default, tripped", variant, why)
	}
}

// A variant whose labels leave nothing is unavailable; the default variant answers
// for it, by the same rules.
func TestAVariantWithoutTheLabelsGivesWay(t *testing.T) {
	t.Parallel()
	r := &routing.Record{
		Service: "a", Active: new(true), Default: new("old"),
		Variants:   []routing.Variant{{Name: "old", Weight: new(int64(5))}, {Name: "new", Weight: new(int64(5)), Service: new("b")}},
		LabelRules: []routing.LabelRule{exact("version")},
	}
	rt, err := routing.Compile(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := newEstate(t, map[string][]registry.Instance{
		"a": carrying("version=1", "version=2"),
		"b": {{ID: "b1", Address: "h:1", Labels: labels("version=1")}},
	})
	ask := func(version string) *Selection {
		return e.balancer.Select(Want{Service: "a", Route: rt, Variant: 1, Instances: e.instances, Header: header("Version", version)})
	}
	if got := walk(ask("1")); !slices.Equal(got, []string{"b1"}) {
		t.Errorf("version 1 tried %q, want the variant's own b1", got)
	}
	s := ask("2")
	if got := walk(s); !slices.Equal(got, []string{"a2"}) {
		t.Errorf("version 2 tried %q, want a2 of the default", got)
	}
	if variant, why := s.GaveWay(); variant != "new" || why != Labels {
		t.Errorf("GaveWay = %q, %q; want new, labels", variant, why)
	}
	s = ask("3")
	if p := s.Next(); p != nil {
		t.Errorf("version 3 came to %s", p.Name)
	}
	want := []Step{
		{"new", "instances", 1}, {"new", "selector", 1}, {"new", "label version", 0}, {"new", "availability", 0},
		{"old", "instances", 2}, {"old", "selector", 2}, {"old", "label version", 0}, {"old", "availability", 0},
	}
	if got := s.Steps(); !slices.Equal(got, want) {
		t.Errorf("Steps = %v, want %v", got, want)
	}
}

// What the request carried when it was chosen for counts, though later steps remove
// headers from it.
func TestHeadersAreReadOnce(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": carrying("version=1", "version=2")})
	h := header("Version", "2")
	s := e.balancer.Select(Want{Service: "a", Route: ruled(t, "a", lenient("version")), Instances: e.instances, Header: h})
	h.Del("Version")
	if got := walk(s); !slices.Equal(got, []string{"a2"}) {
		t.Errorf("tried %q, want a2", got)
	}
}

// An endpoint is one target, whatever labels are asked for.
func TestEndpointsHaveNoLabels(t *testing.T) {
	t.Parallel()
	elsewhere := "http://new:1"
	rt, err := routing.Compile(&routing.Record{
		Service: "a", Active: new(true), Default: new("old"),
		Variants:   []routing.Variant{{Name: "old", Weight: new(int64(5))}, {Name: "new", Weight: new(int64(5)), Endpoint: &elsewhere}},
		LabelRules: []routing.LabelRule{exact("version")},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := newEstate(t, nil)
	s := e.balancer.Select(Want{Service: "a", Route: rt, Variant: 1, Instances: e.instances, Header: header("Version", "9")})
	if got := walk(s); !slices.Equal(got, []string{"new:1"}) {
		t.Errorf("tried %q, want the endpoint", got)
	}
	if _, why := s.GaveWay(); why != "" {
		t.Errorf("gave way for %q, want nothing", why)
	}
}

// The rules of the record "*" hold for services without a record, each with sets
// and counters of its own.
func TestRulesOfTheWildcardRecord(t *testing.T) {
	t.Parallel()
	others, err := routing.Compile(nil, &routing.Record{Service: "*", Active: new(true), LabelRules: []routing.LabelRule{exact("version")}})
	if err != nil {
		t.Fatal(err)
	}
	e := newEstate(t, map[string][]registry.Instance{"a": carrying("version=1", "version=2"), "b": carrying("version=2", "version=1")})
	for service, want := range map[string]string{"a": "a1", "b": "a2"} {
		p := e.balancer.Select(Want{Service: service, Route: others, Instances: e.instances, Header: header("Version", "1")}).Next()
		if p == nil || p.Name != want {
			t.Errorf("%s: picked %v, want %s", service, p, want)
		}
	}
}

// Two versions that alternate do not starve instances, and the counters go on when
// instances or records change.
func TestEachFilteredSetHasACounterOfItsOwn(t *testing.T) {
	t.Parallel()
	all := carrying("version=1", "version=1", "version=2", "version=2")
	e := newEstate(t, map[string][]registry.Instance{"a": all})
	seen := make(map[string]int)
	for range 10 {
		rt := ruled(t, "a", lenient("version"))
		for _, version := range []string{"1", "2"} {
			p := e.asking(rt, "Version", version).Next()
			seen[p.Name]++
			p.Release()
		}
		e.instances = registry.NewSnapshot(map[string][]registry.Instance{"a": all})
	}
	for _, i := range all {
		if seen[i.ID] != 5 {
			t.Errorf("%s was picked %d times of 10, want 5", i.ID, seen[i.ID])
		}
	}
}

// Values that nobody carries make no sets: they leave the same instances, by one
// counter.
func TestMadeUpLabelsTakeNoMemory(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": carrying("version=1", "", "")})
	rt := ruled(t, "a", withFallback(lenient("version"), routing.LabelAny))
	seen := make(map[string]int)
	for i := range 1000 {
		p := e.asking(rt, "Version", "made-up-"+strconv.Itoa(i)).Next()
		seen[p.Name]++
		p.Release()
	}
	if seen["a2"] != 500 || seen["a3"] != 500 {
		t.Errorf("picked %v, want a2 and a3 alike", seen)
	}
	if n := len(e.kept(rt)); n != 1 {
		t.Errorf("%d sets are kept, want 1", n)
	}
}

// kept are the filtered sets that the balancer keeps for service a.
func (e *estate) kept(rt *routing.Route) map[string]*set {
	p, _ := e.balancer.pool(&Want{Service: "a", Route: rt, Instances: e.instances}, rt.Variant(0))
	return *p.labelled.Load().sets.Load()
}

// Also combinations of values that are there have a bound. Beyond it picks are right
// still, and spread by chance.
func TestFilteredSetsAreBounded(t *testing.T) {
	t.Parallel()
	const values = 20
	var texts []string
	for i := range values {
		texts = append(texts, fmt.Sprintf("x=%d y=%d", i, i))
	}
	e := newEstate(t, map[string][]registry.Instance{"a": carrying(texts...)})
	random := int64(0)
	e.balancer = New(Options{Now: e.clock.Now, Random: func(n int64) int64 { random++; return random % n }})
	rt := ruled(t, "a", withFallback(exact("x"), routing.LabelAny), withFallback(exact("y"), routing.LabelAny))
	for x := range values {
		for y := range values {
			p := e.asking(rt, "X", strconv.Itoa(x), "Y", strconv.Itoa(y)).Next()
			if want := "a" + strconv.Itoa(x+1); p.Name != want { // y falls back to what x left
				t.Fatalf("x=%d y=%d came to %s, want %s", x, y, p.Name, want)
			}
			p.Release()
		}
	}
	if n := len(e.kept(rt)); n != setsMost {
		t.Errorf("%d sets are kept, want %d", n, setsMost)
	}
	if want := int64(values*values - setsMost); random != want {
		t.Errorf("%d picks began anywhere, want %d", random, want)
	}
}

// Whatever the pool, the rules and the request: the pick satisfies each rule, unless
// that rule's fallback says otherwise. The model judges instances one by one.
func TestThePickSatisfiesTheRules(t *testing.T) {
	t.Parallel()
	modes := []string{"exact", "symmetric", "lenient"}
	fallbacks := []string{"none", "unlabelled", "any"}
	value := rapid.SampledFrom([]string{"", " ", "x", "y", "z"})
	rapid.Check(t, func(t *rapid.T) {
		var rules []routing.LabelRule
		h := make(http.Header)
		for i := range rapid.IntRange(1, 3).Draw(t, "rules") {
			name := fmt.Sprintf("l%d", i)
			r := routing.LabelRule{Header: name, Label: name, Mode: rapid.SampledFrom(modes).Draw(t, "mode"),
				Fallback: new(rapid.SampledFrom(fallbacks).Draw(t, "fallback"))}
			if rapid.Bool().Draw(t, "guarded") {
				r.Guard = []string{"10.0.0.0/31"}
			}
			rules = append(rules, r)
			h.Set(name, value.Draw(t, "asked"))
		}
		all := instances(rapid.IntRange(0, 5).Draw(t, "instances"))
		for i := range all {
			all[i].Labels = make(map[string]string)
			for j := range rules {
				all[i].Labels[rules[j].Label] = value.Draw(t, "carried")
			}
		}
		rt := ruled(t, "a", rules...)
		c := newClock()
		b := New(Options{Now: c.Now})
		want := modelled(rt, h, registry.NewSnapshot(map[string][]registry.Instance{"a": all}).Instances("a"))
		snapshot := registry.NewSnapshot(map[string][]registry.Instance{"a": all})
		for i := range all {
			if rapid.Bool().Draw(t, "tripped") {
				for range tripAt {
					b.circuit(circuitKey{"a", all[i].ID}).fail(c.Now(), false)
				}
			}
		}
		p := b.Select(Want{Service: "a", Route: rt, Instances: snapshot, Header: h}).Next()
		if (p != nil) != (len(want) > 0) || p != nil && !slices.Contains(want, p.Name) {
			t.Fatalf("picked %v, want one of %v", p, want)
		}
	})
}

// modelled are the instances that the rules leave, computed in the plainest way.
func modelled(rt *routing.Route, h http.Header, given []*registry.Instance) []string {
	for _, rule := range rt.LabelRules() {
		asked := strings.TrimSpace(h.Get(rule.Header))
		inside := func(i *registry.Instance) bool {
			return len(rule.Guard) == 0 || asked != "" || i.ID == "a1" // 10.0.0.1
		}
		var passed, unlabelled, all []*registry.Instance
		for _, i := range given {
			carried := strings.TrimSpace(i.Labels[rule.Label])
			equal := asked == carried && (rule.Mode != routing.LabelExact || asked != "")
			either := rule.Mode == routing.LabelLenient && (asked == "" || carried == "")
			if !inside(i) {
				continue
			}
			all = append(all, i)
			if carried == "" {
				unlabelled = append(unlabelled, i)
			}
			if equal || either {
				passed = append(passed, i)
			}
		}
		given = passed
		if len(passed) == 0 {
			given = map[routing.LabelFallback][]*registry.Instance{routing.LabelUnlabelled: unlabelled, routing.LabelAny: all}[rule.Fallback]
		}
	}
	var ids []string
	for _, i := range given {
		ids = append(ids, i.ID)
	}
	return ids
}

// Two services with rules of their own, under load, while instances and records
// change: no call comes to the other's instances, or to another version.
func TestServicesNeverSeeEachOthersCalls(t *testing.T) {
	t.Parallel()
	services := make(map[string][]registry.Instance)
	for _, name := range []string{"a", "b"} {
		for i := range 4 {
			version := strconv.Itoa(i % 2)
			services[name] = append(services[name], registry.Instance{
				ID: fmt.Sprintf("%s-%s-%d", name, version, i), Address: fmt.Sprintf("h:%d", i+1),
				Labels: map[string]string{"version": version, "lane": version},
			})
		}
	}
	b := New(Options{Now: time.Now})
	rules := map[string]routing.LabelRule{
		"a": exact("version"), "b": {Header: "lane", Label: "lane", Mode: "symmetric"},
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			service := []string{"a", "b"}[g%2]
			var w Want
			for i := range 1000 {
				if i%50 == 0 {
					w = Want{Service: service, Route: ruled(t, service, rules[service]), Instances: registry.NewSnapshot(services)}
				}
				own, other := strconv.Itoa(i%2), strconv.Itoa((i+1)%2)
				w.Header = header("Version", own, "Lane", other) // b's label must not matter to a, nor a's to b
				if service == "b" {
					w.Header = header("Version", other, "Lane", own)
				}
				p := b.Select(w).Next()
				if p == nil || !strings.HasPrefix(p.Name, service+"-"+own+"-") {
					t.Errorf("%s, label %s: picked %v", service, own, p)
					return
				}
				p.Answered()
				p.Release()
			}
		})
	}
	wg.Wait()
}

func BenchmarkNextWithRules(b *testing.B) {
	bal := New(Options{Now: time.Now})
	s := registry.NewSnapshot(map[string][]registry.Instance{"a": carrying("version=1 app=x", "version=2 app=x")})
	rt := ruled(b, "a", lenient("version"), exact("app"))
	h := header("Version", "2", "App", "x")
	b.ReportAllocs()
	for b.Loop() {
		p := bal.Select(Want{Service: "a", Route: rt, Instances: s, Header: h}).Next()
		p.Answered()
		p.Release()
	}
}

// Without label rules a request costs its Selection and its Pick, with rules also
// the values that it asks for.
func TestPicksAllocateLittle(t *testing.T) {
	b := New(Options{Now: time.Now})
	s := registry.NewSnapshot(map[string][]registry.Instance{"a": carrying("version=1", "version=2")})
	for _, tt := range []struct {
		route *routing.Route
		most  float64
	}{{nil, 2}, {ruled(t, "a"), 2}, {ruled(t, "a", lenient("version"), lenient("app")), 3}} {
		w := Want{Service: "a", Route: tt.route, Instances: s, Header: header("Version", "2", "App", "made-up")}
		if got := testing.AllocsPerRun(100, func() {
			p := b.Select(w).Next()
			p.Answered()
			p.Release()
		}); got > tt.most {
			t.Errorf("%d rules: %v allocations, want at most %v", len(tt.route.LabelRules()), got, tt.most)
		}
	}
}
