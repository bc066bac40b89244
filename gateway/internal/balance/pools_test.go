package balance

import (
	"fmt"
	"slices"
	"testing"

	"specialroutes.example/gateway/internal/registry"
)

// health is a state that an instance can be in.
type health string

const (
	well    health = "well"
	down    health = "down"    // its circuit is open
	probing health = "probing" // its circuit's time is over
	full    health = "full"    // at the limit of requests in flight
	probed  health = "probed"  // one request is finding out
)

// combinations are all states of a pool of n instances.
func combinations(n int) [][]health {
	all := [][]health{nil}
	for range n {
		var next [][]health
		for _, c := range all {
			for _, h := range []health{well, down, probing, full, probed} {
				next = append(next, append(slices.Clone(c), h))
			}
		}
		all = next
	}
	return all
}

// pool returns a balancer and its estate in which the instances are in such states.
// Labels put them into two zones, and give them a version.
func poolOf(t *testing.T, states []health, zoneLabel string) *estate {
	t.Helper()
	all := instances(len(states))
	for i := range all {
		all[i].Labels = map[string]string{"version": "1", "az": []string{"x", "y"}[i%2]}
	}
	e := newEstate(t, map[string][]registry.Instance{"a": all})
	e.balancer = New(Options{Now: e.clock.Now, ActiveLimit: 3, ZoneLabel: zoneLabel})
	for i, state := range states {
		if state == probing || state == probed {
			e.trip(all[i].ID)
		}
	}
	e.clock.advance(openTime)
	for i, state := range states {
		switch state {
		case down:
			e.trip(all[i].ID)
		case full:
			e.busy(all[i].ID, 3)
		case probed:
			e.balancer.circuit(circuitKey{"a", all[i].ID}).enter(e.clock.Now())
		}
	}
	return e
}

// However well the instances are, there is always a pick, one that is available if
// any is, and it is said when availability gave way.
func TestPoolsOfEveryHealth(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 5} {
		for _, zoneLabel := range []string{"", "az"} {
			t.Run(fmt.Sprintf("%d instances, zones %q", n, zoneLabel), func(t *testing.T) {
				t.Parallel()
				for _, states := range combinations(n) {
					checkPool(t, states, zoneLabel)
				}
			})
		}
	}
}

func checkPool(t *testing.T, states []health, zoneLabel string) {
	t.Helper()
	usable := slices.Contains(states, well) || slices.Contains(states, probing)
	open := slices.Contains(states, down) || slices.Contains(states, probed)
	e := poolOf(t, states, zoneLabel)
	panics := 0
	e.balancer.options.Panicked = func(string) { panics++ }
	s := e.asking(ruled(t, "a", lenient("version")), "Version", "1")
	p := s.Next()
	if p == nil {
		t.Fatalf("%v: no pick", states)
	}
	var at int
	if _, err := fmt.Sscanf(p.Name, "a%d", &at); err != nil {
		t.Fatal(err)
	}
	state := states[at-1]
	if usable && state != well && state != probing {
		t.Errorf("%v: picked a%d, which is %s", states, at, state)
	}
	if (panics == 1) == usable {
		t.Errorf("%v: told of panic %d times", states, panics)
	}
	if slices.Contains(states, full) && !usable && state != full {
		t.Errorf("%v: picked a%d, which is %s, though one is only full", states, at, state)
	}
	_, why := s.GaveWay()
	switch {
	case usable && why != "" && why != Zones:
		t.Errorf("%v: gave way for %q, though an instance is available", states, why)
	case !usable && open && why != Tripped:
		t.Errorf("%v: gave way for %q, want tripped", states, why)
	case !usable && !open && why != Limit:
		t.Errorf("%v: gave way for %q, want limit", states, why)
	}
	p.Release()
	exhaust(t, e, states, zoneLabel)
}

// exhaust tries all that a request may try, each attempt a failed connect.
func exhaust(t *testing.T, e *estate, states []health, zoneLabel string) {
	t.Helper()
	s := e.asking(nil)
	var tried []string
	for p := s.Next(); p != nil; p = s.Next() {
		if slices.Contains(tried, p.Name) {
			t.Errorf("%v, zones %q: %s is tried twice", states, zoneLabel, p.Name)
		}
		tried = append(tried, p.Name)
		p.ConnectFailed()
		p.Release()
	}
	if want := min(len(states), connectsWanted); len(tried) != want {
		t.Errorf("%v, zones %q: tried %v, want %d", states, zoneLabel, tried, want)
	}
}
