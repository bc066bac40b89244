package routing

import (
	"cmp"
	"fmt"
	"slices"
)

// Moves says what a change of a record does to the keys of a sample.
type Moves struct {
	Sample  int    `json:"sample"`  // keys looked at
	Moved   int    `json:"moved"`   // keys whose variant is another one after the change
	Between []Move `json:"between"` // the moves, by variant; never nil
}

// Move is how many keys go from one variant to another.
type Move struct {
	From string `json:"from"`
	To   string `json:"to"`
	Keys int    `json:"keys"`
}

// CountMoves gives every key of a sample to both routes, by their weights and
// salts as ByKey does, and counts those that move. Overrides and rules are not
// looked at, as they do not depend on keys. The sample is the same in every call.
// For records that are not sticky the counts tell how the shares shift. Either
// route may be nil.
func CountMoves(before, after *Route, sample int) Moves {
	counts := map[Move]int{}
	m := Moves{Sample: sample, Between: []Move{}}
	for i := range sample {
		key := fmt.Sprintf("sample-%d", i)
		from, to := before.Variant(before.ByKey(key)), after.Variant(after.ByKey(key))
		if from.Name == to.Name || (before.isBare() || after.isBare()) && from.isOwn() && to.isOwn() {
			continue
		}
		m.Moved++
		counts[Move{From: from.Name, To: to.Name}]++
	}
	for move, n := range counts {
		move.Keys = n
		m.Between = append(m.Between, move)
	}
	slices.SortFunc(m.Between, func(a, b Move) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return m
}

// isBare says whether the route has no record, so that its variant's name is not
// one that somebody gave.
func (rt *Route) isBare() bool { return rt == nil || !rt.hasRecord }

// isOwn says whether the variant is the service's own instances, unselected.
func (t *Target) isOwn() bool { return t.Endpoint == "" && t.Service == "" && t.Selector == nil }
