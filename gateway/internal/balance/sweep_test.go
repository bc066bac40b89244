package balance

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/registry"
)

// sizes are how much the balancer keeps.
type sizes struct{ pools, endpoints, circuits int }

func (b *Balancer) sizes() sizes {
	count := func(m *sync.Map) (n int) {
		m.Range(func(any, any) bool { n++; return true })
		return n
	}
	return sizes{count(&b.pools), count(&b.endpoints), count(&b.circuits)}
}

func TestWhatIsLongGoneIsForgotten(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": instances(3)})
	for _, url := range []string{"http://one:1", "http://two:2"} {
		e.one(split(t, "default", endpoint(url)), 1)
		e.one(split(t, "default", endpoint(url)), 0)
	}
	e.one(nil, 0)
	if got, want := e.balancer.sizes(), (sizes{1, 2, 5}); got != want {
		t.Fatalf("before: %+v, want %+v", got, want)
	}
	e.instances = e.instances.With("a", instances(1))
	for range 30 {
		e.one(split(t, "default", endpoint("http://two:2")), 1)
		e.clock.advance(time.Minute)
		e.balancer.Sweep(e.instances)
	}
	// The instance that is listed stays, and what is asked for: one endpoint.
	if got, want := e.balancer.sizes(), (sizes{0, 1, 2}); got != want {
		t.Errorf("half an hour later: %+v, want %+v", got, want)
	}
	for i := range 1000 {
		e.one(split(t, "default", endpoint(fmt.Sprintf("http://h%d:1", i))), 1)
		e.clock.advance(time.Minute)
		e.balancer.Sweep(e.instances)
	}
	if got := e.balancer.sizes(); got.endpoints > 12 || got.circuits > 24 {
		t.Errorf("after 1000 changes of the record: %+v", got)
	}
}

func TestHealthSurvivesAShortAbsence(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": instances(2)})
	e.one(nil, 0)
	e.trip("a2")
	both := e.instances
	gone := both.With("a", instances(1))
	for range 9 {
		e.balancer.Sweep(gone)
		e.clock.advance(time.Minute)
	}
	e.balancer.Sweep(both)
	if h := e.balancer.Health("a", "a2"); h.Failures != tripAt || h.Circuit != CircuitHalfOpen {
		t.Errorf("health of an instance that was away for 9 minutes = %+v", h)
	}
	for range 11 {
		e.balancer.Sweep(gone)
		e.clock.advance(time.Minute)
	}
	e.balancer.Sweep(gone)
	if h := e.balancer.Health("a", "a2"); h != (Health{Circuit: CircuitClosed}) {
		t.Errorf("health of an instance that was away for 11 minutes = %+v", h)
	}
}

func TestATargetWithARequestInFlightIsNotForgotten(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": instances(1)})
	p := e.selection(nil, 0).Next()
	none := registry.NewSnapshot(nil)
	for range 20 {
		e.clock.advance(time.Minute)
		e.balancer.Sweep(none)
	}
	if h := e.balancer.Health("a", "a1"); h.Active != 1 {
		t.Errorf("health = %+v, want one request in flight", h)
	}
	p.Release()
}

// A pick whose turn is one that is not available goes round among the others.
func TestWhatATrippedInstanceLetsPassIsSharedByAll(t *testing.T) {
	t.Parallel()
	for _, tripped := range [][]string{{"a1"}, {"a1", "a2"}, {"a2", "a5", "a6"}} {
		e := newEstate(t, map[string][]registry.Instance{"a": instances(7)})
		e.one(nil, 0)
		e.trip(tripped...)
		seen := make(map[string]int)
		well := 7 - len(tripped)
		for range 7 * well * 2 {
			seen[e.one(nil, 0)]++
		}
		for id, n := range seen {
			if n != 14 {
				t.Errorf("without %v: %s was picked %d times, want 14: %v", tripped, id, n, seen)
			}
		}
	}
}

func TestAChangeOfOneServiceRebuildsItsPoolsAlone(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": instances(3), "b": instances(2)})
	members := func(service string) *members {
		p := e.balancer.Select(Want{Service: service, Instances: e.instances}).Next()
		p.Release()
		found, _ := e.balancer.pools.Load(poolKey{service: service})
		return found.(*pool).members.Load()
	}
	a, b := members("a"), members("b")
	changed := instances(3)
	changed[1].Address = "10.0.0.9:80"
	e.instances = e.instances.With("a", changed)
	a2, b2 := members("a"), members("b")
	if b2 != b {
		t.Error("the other service's pool was built anew")
	}
	if a2 == a || a2.candidates[1].Address != "10.0.0.9:80" {
		t.Error("the service's pool was not built anew")
	}
	if a2.candidates[0] != a.candidates[0] || a2.candidates[2] != a.candidates[2] || a2.candidates[1].circuit != a.candidates[1].circuit {
		t.Error("what has not changed about an instance is another")
	}
}

// Requests go on while instances come and go and what is unused is forgotten.
func TestSweepingTakesNothingFromRequests(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": instances(2)})
	var now sync.Mutex
	e.balancer.options.Now = func() time.Time { now.Lock(); defer now.Unlock(); return e.clock.at }
	done := make(chan struct{})
	var asking sync.WaitGroup
	rt := split(t, "default", endpoint("http://one:1"))
	for variant := range 2 {
		asking.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				p := e.balancer.Select(Want{Service: "a", Route: rt, Variant: variant, Instances: e.instances}).Next()
				if p == nil {
					t.Error("no pick")
					return
				}
				p.Answered()
				p.Release()
			}
		})
	}
	for range 500 {
		now.Lock()
		e.clock.advance(forgetAfter)
		now.Unlock()
		e.balancer.Sweep(registry.NewSnapshot(nil))
	}
	close(done)
	asking.Wait()
}

func TestPanicIsTold(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": instances(2)})
	told := 0
	e.balancer.options.Panicked = func(service string) {
		if told++; service != "a" {
			t.Errorf("told of %q", service)
		}
	}
	e.one(nil, 0)
	e.trip("a1")
	e.one(nil, 0)
	if told != 0 {
		t.Errorf("told %d times while an instance is available", told)
	}
	e.clock.advance(time.Second)
	e.trip("a2")
	if got := e.one(nil, 0); got != "a1" || told != 1 {
		t.Errorf("picked %s and told %d times, want a1, whose time ends first, and once", got, told)
	}
	e.balancer.options.Panicked = nil
	if e.one(nil, 0) == "" {
		t.Error("no pick where nobody is told")
	}
}
