package balance

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/registry"
	"specialroutes.example/services/routing"
)

// clock is a time that stands still until it is moved.
type clock struct{ at time.Time }

func newClock() *clock                    { return &clock{time.Unix(1_700_000_000, 0)} }
func (c *clock) Now() time.Time           { return c.at }
func (c *clock) advance(by time.Duration) { c.at = c.at.Add(by) }

// estate is a service with instances of two labels and an endpoint.
type estate struct {
	*testing.T
	clock     *clock
	balancer  *Balancer
	instances *registry.Snapshot
}

func newEstate(t *testing.T, services map[string][]registry.Instance) *estate {
	c := newClock()
	return &estate{t, c, New(Options{Now: c.Now}), registry.NewSnapshot(services)}
}

// instances names count instances a1, a2 and so on.
func instances(count int) []registry.Instance {
	var all []registry.Instance
	for i := range count {
		all = append(all, registry.Instance{ID: fmt.Sprintf("a%d", i+1), Address: fmt.Sprintf("10.0.0.%d:80", i+1)})
	}
	return all
}

func split(t *testing.T, onUnavailable string, alternate routing.Variant) *routing.Route {
	t.Helper()
	alternate.Name, alternate.Weight = "new", new(int64(5))
	rt, err := routing.Compile(&routing.Record{
		Service: "a", Active: new(true), Default: new("old"), OnUnavailable: &onUnavailable,
		Variants: []routing.Variant{{Name: "old", Weight: new(int64(5))}, alternate},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

func endpoint(url string) routing.Variant { return routing.Variant{Endpoint: &url} }

func (e *estate) selection(rt *routing.Route, variant int) *Selection {
	return e.balancer.Select(Want{Service: "a", Route: rt, Variant: variant, Instances: e.instances})
}

// one picks once for a request that is answered, and returns the target's name.
func (e *estate) one(rt *routing.Route, variant int) string {
	p := e.selection(rt, variant).Next()
	if p == nil {
		return ""
	}
	p.Answered()
	p.Release()
	return p.Name
}

// trip opens the circuits of the named instances.
func (e *estate) trip(ids ...string) {
	for _, id := range ids {
		for range tripAt {
			e.balancer.circuit(circuitKey{"a", id}).fail(e.clock.Now(), false)
		}
	}
}

// walk tries targets until none is left or one is not in dead, and returns the
// names in order.
func walk(s *Selection, dead ...string) (tried []string) {
	for {
		p := s.Next()
		if p == nil {
			return append(tried, "")
		}
		tried = append(tried, p.Name)
		if !slices.Contains(dead, p.Name) {
			p.Answered()
			p.Release()
			return tried
		}
		p.ConnectFailed()
		p.Release()
	}
}

func TestRoundRobinIsEven(t *testing.T) {
	t.Parallel()
	for _, count := range []int{1, 2, 3, 5} {
		e := newEstate(t, map[string][]registry.Instance{"a": instances(count)})
		seen := make(map[string]int)
		for range 10 * count {
			seen[e.one(nil, 0)]++
		}
		for id, n := range seen {
			if n != 10 {
				t.Errorf("%d instances: %s was picked %d times of %d, want 10", count, id, n, 10*count)
			}
		}
	}
}

func TestRoundRobinIsEvenOverWhatIsAvailable(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": instances(4)})
	e.trip("a2", "a4")
	seen := make(map[string]int)
	for range 20 {
		seen[e.one(nil, 0)]++
	}
	if seen["a1"] != 10 || seen["a3"] != 10 {
		t.Errorf("picks = %v, want 10 each of a1 and a3", seen)
	}
}

// Two services that alternate do not starve each other's instances, and a
// service's counter goes on when its instances change.
func TestEachServiceHasACounterOfItsOwn(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": instances(2), "b": instances(2)})
	seen := make(map[string]int)
	for range 10 {
		for _, service := range []string{"a", "b"} {
			p := e.balancer.Select(Want{Service: service, Instances: e.instances}).Next()
			seen[service+p.Name]++
			p.Release()
		}
	}
	for _, key := range []string{"aa1", "aa2", "ba1", "ba2"} {
		if seen[key] != 5 {
			t.Errorf("picks = %v, want 5 each", seen)
			break
		}
	}
}

func TestACounterOutlivesAChangeOfInstances(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": instances(2)})
	var got []string
	for range 4 {
		got = append(got, e.one(nil, 0))
		e.instances = registry.NewSnapshot(map[string][]registry.Instance{"a": instances(2)})
	}
	if want := []string{"a1", "a2", "a1", "a2"}; !slices.Equal(got, want) {
		t.Errorf("picks = %v, want %v", got, want)
	}
}

// Of two instances one is dead: until its circuit opens only every other request
// begins there.
func TestADeadInstanceIsNotPickedFirstEachTime(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": instances(2)})
	first := make(map[string]int)
	for range 4 {
		first[walk(e.selection(nil, 0), "a1")[0]]++
	}
	if first["a1"] != 2 {
		t.Errorf("the dead instance came first %d times of 4, want 2", first["a1"])
	}
}

func TestSelectorsDivideTheInstances(t *testing.T) {
	t.Parallel()
	all := instances(4)
	all[1].Labels = map[string]string{"track": "new"}
	all[3].Labels = map[string]string{"track": "new"}
	e := newEstate(t, map[string][]registry.Instance{"a": all})
	rt := split(t, "default", routing.Variant{Selector: map[string]string{"track": "new"}})
	for variant, want := range [][]string{{"a1", "a3"}, {"a2", "a4"}} {
		got := []string{e.one(rt, variant), e.one(rt, variant)}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("variant %d goes to %v, want %v", variant, got, want)
		}
	}
}

func TestAnEndpointIsOneTarget(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": instances(1)})
	p := e.selection(split(t, "default", endpoint("https://New.example:8443/base")), 1).Next()
	want := Target{Name: p.Name, Scheme: "https", Address: p.Address, Authority: p.Authority, Base: "/base"}
	if p.Target != want || p.Variant.Name != "new" {
		t.Errorf("target = %+v of %q, want %+v of new", p.Target, p.Variant.Name, want)
	}
}

func TestConnectsThatFail(t *testing.T) {
	t.Parallel()
	const elsewhere = "new.example:8087"
	tests := []struct {
		name          string
		onUnavailable string
		variant       int
		count         int
		dead          []string
		want          []string
		why           Reason
	}{
		{"one other instance of the default", "default", 0, 3, []string{"a1"}, []string{"a1", "a3"}, ""},
		{"no third instance of the default", "default", 0, 3, []string{"a1", "a3"}, []string{"a1", "a3", ""}, Connect},
		{"the only instance is not tried twice", "default", 0, 1, []string{"a1"}, []string{"a1", ""}, Connect},
		{"an endpoint gives way to the default", "default", 1, 3, []string{elsewhere}, []string{elsewhere, "a1"}, Connect},
		{"one connect to the default", "default", 1, 3, []string{elsewhere, "a1"}, []string{elsewhere, "a1", ""}, Connect},
		{"an endpoint may not give way", "fail", 1, 3, []string{elsewhere}, []string{elsewhere, ""}, Connect},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := newEstate(t, map[string][]registry.Instance{"a": instances(tt.count)})
			rt := split(t, tt.onUnavailable, endpoint("http://"+elsewhere))
			s := e.selection(rt, tt.variant)
			if got := walk(s, tt.dead...); !slices.Equal(got, tt.want) {
				t.Errorf("tried %q, want %q", got, tt.want)
			}
			if s.why != tt.why || !s.ConnectFailed() {
				t.Errorf("gave way for %q, connect failed %v; want %q, true", s.why, s.ConnectFailed(), tt.why)
			}
		})
	}
}

func TestTheOtherOfItsVariantThenTheDefault(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{
		"a": instances(3),
		"b": {{ID: "b1", Address: "h:1"}, {ID: "b2", Address: "h:2"}, {ID: "b3", Address: "h:3"}},
	})
	rt := split(t, "default", routing.Variant{Service: new("b")})
	s := e.selection(rt, 1)
	if got, want := walk(s, "b1", "b2", "b3"), []string{"b1", "b3", "a1"}; !slices.Equal(got, want) {
		t.Errorf("tried %q, want %q", got, want)
	}
	if variant, why := s.GaveWay(); variant != "new" || why != Connect {
		t.Errorf("GaveWay = %q, %q; want new, connect", variant, why)
	}
}

func TestNothingGaveWay(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": instances(2)})
	s := e.selection(nil, 0)
	if got := walk(s, "a1"); !slices.Equal(got, []string{"a1", "a2"}) {
		t.Fatalf("tried %q", got)
	}
	if variant, why := s.GaveWay(); variant != "" || why != "" {
		t.Errorf("GaveWay = %q, %q after another instance of the same variant, want nothing", variant, why)
	}
}

func TestNoInstance(t *testing.T) {
	t.Parallel()
	e := newEstate(t, nil)
	s := e.selection(nil, 0)
	if p := s.Next(); p != nil || s.ConnectFailed() {
		t.Fatalf("Next = %v, connect failed %v; want nothing", p, s.ConnectFailed())
	}
	want := []Step{{"default", "instances", 0}, {"default", "selector", 0}, {"default", "availability", 0}}
	if got := s.Steps(); !slices.Equal(got, want) {
		t.Errorf("Steps = %v, want %v", got, want)
	}
}

func TestAVariantWithoutInstancesGivesWay(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": instances(3)})
	rt := split(t, "default", routing.Variant{Service: new("nobody")})
	s := e.selection(rt, 1)
	if got, want := walk(s, "a1"), []string{"a1", "a3"}; !slices.Equal(got, want) {
		t.Errorf("tried %q, want %q", got, want)
	}
	if variant, why := s.GaveWay(); variant != "new" || why != NoInstances {
		t.Errorf("GaveWay = %q, %q; want new, no-instances", variant, why)
	}
}

func TestATrippedVariantGivesWay(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": instances(1)})
	rt := split(t, "default", endpoint("http://new:1"))
	for range tripAt {
		walk(e.selection(rt, 1), "new:1")
	}
	s := e.selection(rt, 1)
	if got, want := walk(s), []string{"a1"}; !slices.Equal(got, want) {
		t.Errorf("tried %q, want %q", got, want)
	}
	if variant, why := s.GaveWay(); variant != "new" || why != Tripped {
		t.Errorf("GaveWay = %q, %q; want new, tripped", variant, why)
	}
}

// When the default has nothing either, availability gives way in the wanted
// variant: the target whose time ends first.
func TestAvailabilityGivesWayLast(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": instances(3)})
	e.trip("a2")
	e.clock.advance(time.Second)
	e.trip("a1", "a3")
	s := e.selection(nil, 0)
	if got, want := walk(s), []string{"a2"}; !slices.Equal(got, want) {
		t.Errorf("tried %q, want %q", got, want)
	}
	if variant, why := s.GaveWay(); variant != "default" || why != Tripped {
		t.Errorf("GaveWay = %q, %q; want default, tripped", variant, why)
	}
}

func TestAPinnedVariantNeverGivesWay(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": instances(1)})
	rt := split(t, "default", endpoint("http://new:1"))
	s := e.balancer.Select(Want{Service: "a", Route: rt, Variant: 1, Instances: e.instances, Pinned: true})
	if got, want := walk(s, "new:1"), []string{"new:1", ""}; !slices.Equal(got, want) {
		t.Errorf("tried %q, want %q", got, want)
	}
}

func TestAgainPrefersAnotherInstance(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": instances(2)})
	s := e.selection(nil, 0)
	first, second, third := s.Next(), s.Again(), s.Again()
	if first.Name != "a1" || second.Name != "a2" || third.Name != "a2" {
		t.Errorf("targets = %s, %s, %s; want a1, a2, a2", first.Name, second.Name, third.Name)
	}
}

func TestTheActiveLimit(t *testing.T) {
	t.Parallel()
	c := newClock()
	b := New(Options{Now: c.Now, ActiveLimit: 1})
	s := registry.NewSnapshot(map[string][]registry.Instance{"a": instances(2)})
	want := Want{Service: "a", Instances: s}
	first, second := b.Select(want).Next(), b.Select(want).Next()
	if first.Name == second.Name {
		t.Fatalf("two requests at %s, whose limit is 1", first.Name)
	}
	third := b.Select(want)
	p := third.Next()
	if p == nil {
		t.Fatal("the limit does not give way")
	}
	p.Release()
	if _, why := third.GaveWay(); why != Limit {
		t.Errorf("gave way for %q, want %q", why, Limit)
	}
	first.Release()
	first.Release()
	fourth := b.Select(want)
	if p := fourth.Next(); p == nil || p.Name != first.Name {
		t.Errorf("the released instance is not picked: %v", p)
	}
	if _, why := fourth.GaveWay(); why != "" {
		t.Errorf("gave way for %q, though an instance was released", why)
	}
}

// What is over the limits of all is shared among them, also where one has had an
// open circuit before.
func TestAllInstancesShareWhatIsOverTheLimit(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": instances(3)})
	e.balancer = New(Options{Now: e.clock.Now, ActiveLimit: 1})
	e.trip("a1")
	e.balancer.circuit(circuitKey{"a", "a1"}).succeed()
	seen := make(map[string]int)
	for range 30 { // none of them ends
		seen[e.selection(nil, 0).Next().Name]++
	}
	for id, n := range seen {
		if n != 10 {
			t.Errorf("%s has %d requests in flight of 30, want 10", id, n)
		}
	}
}

func TestChangedInstancesAreSeen(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": instances(1)})
	if got := e.one(nil, 0); got != "a1" {
		t.Fatalf("picked %q", got)
	}
	e.instances = registry.NewSnapshot(map[string][]registry.Instance{"a": {{ID: "b1", Address: "h:1"}}})
	if got := e.one(nil, 0); got != "b1" {
		t.Errorf("picked %q after a1 was replaced by b1", got)
	}
	e.instances = registry.NewSnapshot(nil)
	if got := e.one(nil, 0); got != "" {
		t.Errorf("picked %q of no instances", got)
	}
}

// A probe whose client leaves finds out nothing, and another one may.
func TestAProbeWithoutAVerdictIsRepeated(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": instances(1)})
	e.trip("a1")
	e.clock.advance(openTime)
	for range 2 {
		s := e.selection(nil, 0)
		s.Next().Release()
		if _, why := s.GaveWay(); why != "" {
			t.Errorf("gave way for %q, want a probe", why)
		}
	}
}

func TestPicksAreRaceFree(t *testing.T) {
	t.Parallel()
	b := New(Options{Now: time.Now})
	rt := split(t, "default", endpoint("http://new:1"))
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 500 {
				s := registry.NewSnapshot(map[string][]registry.Instance{"a": instances(1 + i%3)})
				sel := b.Select(Want{Service: "a", Route: rt, Variant: (g + i) % 2, Instances: s})
				for p := sel.Next(); p != nil; p = sel.Next() {
					if i%7 != 0 {
						p.Answered()
						p.Release()
						break
					}
					p.ConnectFailed()
					p.Release()
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkNext(b *testing.B) {
	for _, n := range []int{2, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			bal := New(Options{Now: time.Now})
			s := registry.NewSnapshot(map[string][]registry.Instance{"a": instances(2), "b": instances(n)})
			b.ReportAllocs()
			for b.Loop() {
				p := bal.Select(Want{Service: "b", Instances: s}).Next()
				p.Answered()
				p.Release()
			}
		})
	}
}
