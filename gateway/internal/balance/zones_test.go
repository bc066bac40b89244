package balance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"specialroutes.example/gateway/internal/registry"
)

// The vectors of the original, and its fault: with one zone down and one healthy it
// kept nothing.
func TestKeptZones(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		zones []zone // a, b, c
		want  []bool
	}{
		{"no load", []zone{{2, 0, 0}, {2, 0, 0}}, []bool{true, true}},
		{"little load", []zone{{2, 0, .1}, {2, 0, .15}}, []bool{true, true}},
		{"one is busy", []zone{{2, 0, .5}, {2, 0, .1}}, []bool{false, true}},
		{"the load from which zones are avoided", []zone{{2, 0, .2}, {2, 0, .1}}, []bool{false, true}},
		{"one has no instances, so the worst of the others goes", []zone{{0, 0, 0}, {2, 0, .1}, {2, 0, .05}}, []bool{false, false, true}},
		{"half of one is tripped", []zone{{2, 1, .1}, {2, 0, .1}}, []bool{true, true}},
		{"one zone only, all of it tripped", []zone{{2, 2, 0}}, []bool{true}},
		{"one zone only, busy", []zone{{2, 0, 9}}, []bool{true}},
		{"one is down, the other healthy", []zone{{2, 2, 0}, {2, 0, .1}}, []bool{false, true}},
		{"one is down, the other busy", []zone{{2, 2, 0}, {2, 0, 9}}, []bool{false, true}},
		{"all are down", []zone{{2, 2, 0}, {1, 1, 0}}, []bool{false, false}},
		{"down but for one of very many", []zone{{200_000, 199_999, 0}, {1, 1, 0}}, []bool{true, false}},
		{"no zones", nil, []bool{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := keptZones(tt.zones, rand.New(rand.NewPCG(1, 1)).Int64N); !slices.Equal(got, tt.want) {
				t.Errorf("kept %v of %+v, want %v", got, tt.zones, tt.want)
			}
		})
	}
}

// Of zones with the same load one goes, in proportion to their instances: without a
// in a quarter, without b in three quarters.
func TestTheWorstOfEqualZonesIsDrawn(t *testing.T) {
	t.Parallel()
	const draws = 4000
	random := rand.New(rand.NewPCG(4, 2)).Int64N
	without := make(map[string]int)
	for range draws {
		kept := keptZones([]zone{{1, 0, .5}, {3, 0, .5 + loadDiffers/2}}, random)
		without[fmt.Sprint(kept)]++
	}
	// Binomial: 1,000 of 4,000 with a deviation of 27.
	if a := without["[false true]"]; a < 900 || a > 1100 || a+without["[true false]"] != draws {
		t.Errorf("kept %v, want [false true] in about a quarter and else [true false]", without)
	}
}

// Whatever the zones are, one that has a healthy instance is kept if there is any,
// and no more than one is dropped for its load.
func TestTheLastHealthyZoneIsKept(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var zones []zone
		for range rapid.IntRange(1, 5).Draw(t, "zones") {
			n := rapid.IntRange(0, 4).Draw(t, "instances")
			zones = append(zones, zone{n, rapid.IntRange(0, n).Draw(t, "tripped"), rapid.SampledFrom([]float64{0, .1, .2, .5, 1e9}).Draw(t, "load")})
		}
		kept := keptZones(zones, func(n int64) int64 { return rapid.Int64Range(0, n-1).Draw(t, "drawn") })
		healthy, used := 0, 0
		for i, z := range zones {
			if z.tripped == z.instances {
				if kept[i] && len(zones) > 1 {
					t.Fatalf("kept %v of %+v: zone %d is down", kept, zones, i)
				}
				continue
			}
			healthy++
			if kept[i] {
				used++
			}
		}
		if used < min(healthy, max(1, healthy-1)) {
			t.Fatalf("kept %v of %+v: %d of %d healthy zones", kept, zones, used, healthy)
		}
	})
}

// zoned gives each instance a zone, "" for none.
func zoned(zones ...string) []registry.Instance {
	all := instances(len(zones))
	for i, z := range zones {
		if z != "" {
			all[i].Labels = map[string]string{"az": z}
		}
	}
	return all
}

func newZonedEstate(t *testing.T, zones ...string) *estate {
	t.Helper()
	e := newEstate(t, map[string][]registry.Instance{"a": zoned(zones...)})
	e.balancer = New(Options{Now: e.clock.Now, ZoneLabel: "az", Random: rand.New(rand.NewPCG(7, 7)).Int64N})
	return e
}

// busy has n requests in flight at an instance until the test ends.
func (e *estate) busy(id string, n int64) {
	e.balancer.circuit(circuitKey{"a", id}).active.Add(n)
}

// picked are the instances of n requests.
func (e *estate) picked(n int) map[string]int {
	seen := make(map[string]int)
	for range n {
		seen[e.one(nil, 0)]++
	}
	return seen
}

func TestABusyZoneIsAvoided(t *testing.T) {
	t.Parallel()
	e := newZonedEstate(t, "x", "x", "y", "")
	e.busy("a1", 4)
	if seen := e.picked(20); seen["a3"] != 10 || seen["a4"] != 10 {
		t.Errorf("picked %v, want the other zone's a3 and a4, which is in none", seen)
	}
}

func TestAZoneThatIsDownIsAvoided(t *testing.T) {
	t.Parallel()
	e := newZonedEstate(t, "x", "x", "y", "y")
	e.trip("a1", "a2")
	s := e.selection(nil, 0)
	walk(s)
	if _, why := s.GaveWay(); why != "" {
		t.Errorf("gave way for %q, though a zone is healthy", why)
	}
	if seen := e.picked(20); seen["a3"] != 10 || seen["a4"] != 10 {
		t.Errorf("picked %v, want a3 and a4", seen)
	}
}

// Without the setting a label of that name is a label like any other.
func TestZonesAreOffByDefault(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": zoned("x", "y")})
	e.busy("a1", 100)
	if seen := e.picked(20); seen["a1"] != 10 {
		t.Errorf("picked %v, want both alike", seen)
	}
}

// The zone that is left may have nothing that is available: it is at its limit, and
// the busy one is not. Then zones give way first.
func TestZonesGiveWayBeforeAvailability(t *testing.T) {
	t.Parallel()
	e := newZonedEstate(t, "x", "x", "y")
	e.balancer = New(Options{Now: e.clock.Now, ZoneLabel: "az", ActiveLimit: 3})
	e.busy("a1", 13) // x is the worse zone, and a2 in it is below the limit
	e.busy("a3", 3)
	s := e.selection(nil, 0)
	if got := walk(s); !slices.Equal(got, []string{"a2"}) {
		t.Errorf("tried %q, want a2, the only one below its limit", got)
	}
	if variant, why := s.GaveWay(); variant != "default" || why != Zones {
		t.Errorf("GaveWay = %q, %q; want default, zones", variant, why)
	}
}

// A second attempt may leave the zone, and that is no giving way.
func TestARetryLeavesTheZone(t *testing.T) {
	t.Parallel()
	e := newZonedEstate(t, "x", "y")
	e.busy("a1", 4)
	s := e.selection(nil, 0)
	if got, want := walk(s, "a2"), []string{"a2", "a1"}; !slices.Equal(got, want) {
		t.Errorf("tried %q, want %q", got, want)
	}
	if _, why := s.GaveWay(); why != "" {
		t.Errorf("gave way for %q, want nothing", why)
	}
}

// A version that lives in a busy zone only is found there: zones are counted over
// what the labels leave.
func TestLabelsComeBeforeZones(t *testing.T) {
	t.Parallel()
	all := zoned("x", "y", "y")
	all[0].Labels["version"] = "2"
	all[1].Labels["version"] = "1"
	all[2].Labels["version"] = "1"
	e := newEstate(t, map[string][]registry.Instance{"a": all})
	e.balancer = New(Options{Now: e.clock.Now, ZoneLabel: "az"})
	e.busy("a1", 50)
	rt := ruled(t, "a", lenient("version"))
	for range 4 {
		s := e.asking(rt, "Version", "2")
		if got := walk(s); !slices.Equal(got, []string{"a1"}) {
			t.Errorf("tried %q, want a1", got)
		}
		if _, why := s.GaveWay(); why != "" {
			t.Errorf("gave way for %q, want nothing", why)
		}
	}
}
