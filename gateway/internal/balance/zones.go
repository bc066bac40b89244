package balance

import (
	"slices"
	"time"
)

// Zone avoidance's figures: a zone is down when this share of it is tripped; below
// this load (requests in flight for each instance) nothing is avoided; loads that
// differ by less are equal.
const (
	zoneDown    = 0.99999
	loadLow     = 0.2
	loadDiffers = 1e-6
)

// zoning is which zones the candidates of a set are in.
type zoning struct {
	names []string // sorted
	of    []int    // by candidate: an index of names; -1: in no zone
}

// newZoning reads the zones from a label; "" knows none.
func newZoning(label string, candidates []*candidate) zoning {
	if label == "" {
		return zoning{}
	}
	var z zoning
	for _, c := range candidates {
		if name := c.labels[label]; !blank(name) {
			z.names = append(z.names, name)
		}
	}
	slices.Sort(z.names)
	z.names = slices.Compact(z.names)
	for _, c := range candidates {
		at, found := slices.BinarySearch(z.names, c.labels[label])
		if !found {
			at = -1
		}
		z.of = append(z.of, at)
	}
	return z
}

// matter reports whether there is a choice between zones.
func (z *zoning) matter() bool { return len(z.names) > 1 }

// zone is the state of one zone.
type zone struct {
	instances int
	tripped   int     // of them
	load      float64 // requests in flight at the others ÷ the others
}

// keptZones says which zones may be used. random gives 0..n-1, each equally likely.
func keptZones(zones []zone, random func(n int64) int64) []bool {
	kept := make([]bool, len(zones))
	if len(zones) == 1 {
		kept[0] = true
		return kept
	}
	limited, worst := false, 0.0
	for i, z := range zones {
		kept[i] = z.instances > 0 && float64(z.tripped)/float64(z.instances) < zoneDown
		limited = limited || !kept[i]
		if kept[i] {
			worst = max(worst, z.load)
		}
	}
	if limited || worst >= loadLow {
		dropWorst(zones, kept, worst, random)
	}
	if !slices.Contains(kept, true) {
		for i, z := range zones {
			kept[i] = z.tripped < z.instances
		}
	}
	return kept
}

// dropWorst drops one of the zones with the largest load, drawn in proportion to
// their instances. It leaves the last zone alone.
func dropWorst(zones []zone, kept []bool, worst float64, random func(n int64) int64) {
	sum, left := int64(0), 0
	isWorst := func(i int) bool { return kept[i] && worst-zones[i].load < loadDiffers }
	for i := range zones {
		if kept[i] {
			left++
		}
		if isWorst(i) {
			sum += int64(zones[i].instances)
		}
	}
	if left < 2 {
		return
	}
	drawn := random(sum)
	for i := range zones {
		if !isWorst(i) {
			continue
		}
		if drawn -= int64(zones[i].instances); drawn < 0 {
			kept[i] = false
			return
		}
	}
}

// inZones returns those of the candidates left that are in a zone that may be
// used, counted over the whole set: what tripped is gone from left, and counts.
func (b *Balancer) inZones(now time.Time, s *set, left []*candidate) []*candidate {
	zones := make([]zone, len(s.zones.names))
	for i, c := range s.candidates {
		at := s.zones.of[i]
		if at < 0 {
			continue
		}
		z := &zones[at]
		z.instances++
		if c.circuit.state(now) == tripped {
			z.tripped++
			continue
		}
		z.load += float64(c.circuit.active.Load())
	}
	for i := range zones {
		if others := zones[i].instances - zones[i].tripped; others > 0 {
			zones[i].load /= float64(others)
		}
	}
	kept := keptZones(zones, b.options.Random)
	var in []*candidate
	next := 0
	for i, c := range s.candidates { // left is in the order of the set
		if next == len(left) || c != left[next] {
			continue
		}
		next++
		if at := s.zones.of[i]; at < 0 || kept[at] {
			in = append(in, c)
		}
	}
	return in
}
