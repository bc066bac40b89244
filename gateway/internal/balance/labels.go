package balance

import (
	"encoding/binary"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"specialroutes.example/services/routing"
)

// setsMost bounds the filtered sets that are kept of one variant. Clients choose
// the labels that they ask for, so there must be a bound; no estate is near it.
const setsMost = 256

// set is the instances of a variant that the label rules leave to a request, and
// the round robin over them. But for the counter it is immutable.
type set struct {
	candidates []*candidate
	turn       *atomic.Uint64 // nil: the set is not kept, each request begins anywhere
	left       []int          // instances left after each label rule
	relaxed    bool           // a rule's fallback let instances in
	zones      zoning

	// spare is the round robin of the picks whose turn was one that is not available.
	// Those after it in the order would otherwise get them all.
	spare atomic.Uint64
}

// take returns the number of this pick. A further attempt of the same request
// does not move the counter: with a dead instance among two, every request would
// begin at that one.
func (s *set) take(further bool, random func(int64) int64) int {
	if s.turn == nil {
		return int(random(int64(len(s.candidates))))
	}
	n := s.turn.Load()
	if !further {
		n = s.turn.Add(1) - 1
	}
	return int(n & (1<<62 - 1))
}

// skip returns the number of a pick whose turn was one that is not available.
func (s *set) skip(random func(int64) int64) int {
	if s.turn == nil {
		return int(random(int64(len(s.candidates))))
	}
	return int((s.spare.Add(1) - 1) & (1<<62 - 1))
}

// asked are the values that a request's headers give to the label rules, one for
// each rule. They are read once: later steps remove headers.
func asked(rules []routing.LabelFilter, h http.Header) []string {
	if len(rules) == 0 {
		return nil
	}
	values := make([]string, len(rules))
	for i := range rules {
		if lines := h[rules[i].Header]; len(lines) > 0 {
			values[i] = lines[0]
		}
	}
	return values
}

// labelled is the filtered sets of one pool, for one snapshot of the registry and
// one compiled list of label rules.
type labelled struct {
	members *members
	rules   []routing.LabelFilter
	carried []map[string]bool // by rule: the values that instances carry
	zone    string            // the label of zones

	sets   atomic.Pointer[map[string]*set] // by setKey; replaced, never changed
	adding sync.Mutex
	before map[string]*set // of the state before: their counters go on
}

// of reports whether l is for these members and rules.
func (l *labelled) of(m *members, rules []routing.LabelFilter) bool {
	return l != nil && l.members == m && len(l.rules) == len(rules) && &l.rules[0] == &rules[0]
}

func newLabelled(m *members, rules []routing.LabelFilter, zone string, before *labelled) *labelled {
	l := &labelled{members: m, rules: rules, zone: zone}
	for i := range rules {
		values := make(map[string]bool)
		for _, c := range m.candidates {
			if v := c.labels[rules[i].Label]; !blank(v) {
				values[v] = true
			}
		}
		l.carried = append(l.carried, values)
	}
	if before != nil {
		l.before = *before.sets.Load()
	}
	l.sets.Store(new(map[string]*set))
	return l
}

func blank(value string) bool { return strings.Trim(value, " \t") == "" }

// appendKey appends what tells the filtered sets apart: for each rule the value
// asked for, where all values that no instance carries are one, since they leave
// the same. So a client cannot make sets without end by making up values.
func (l *labelled) appendKey(key []byte, values []string) []byte {
	const absent, unknown, known = 0, 1, 2
	for i, v := range values {
		switch {
		case l.carried[i][v]:
			key = append(binary.AppendUvarint(key, known+uint64(len(v))), v...)
		case blank(v):
			key = append(key, absent)
		default:
			key = append(key, unknown)
		}
	}
	return key
}

// set returns the filtered set for the values that a request asks for.
func (l *labelled) set(values []string) *set {
	var room [256]byte
	key := l.appendKey(room[:0], values)
	if s := (*l.sets.Load())[string(key)]; s != nil {
		return s
	}
	return l.add(string(key), values)
}

// add makes a set, and keeps it while there are few.
func (l *labelled) add(key string, values []string) *set {
	l.adding.Lock()
	defer l.adding.Unlock()
	sets := *l.sets.Load()
	if s := sets[key]; s != nil {
		return s
	}
	s := l.filter(values)
	if len(sets) >= setsMost {
		return s
	}
	s.turn = l.counter(key, s, sets)
	next := maps.Clone(sets)
	if next == nil {
		next = make(map[string]*set)
	}
	next[key] = s
	l.sets.Store(&next)
	return s
}

// counter returns the round robin of a new set: that of an equal set, else one
// that goes on where the one of the same labels stood before the instances or the
// rules changed.
func (l *labelled) counter(key string, s *set, sets map[string]*set) *atomic.Uint64 {
	for _, other := range sets {
		if slices.Equal(other.candidates, s.candidates) {
			return other.turn
		}
	}
	turn := new(atomic.Uint64)
	if before := l.before[key]; before != nil {
		turn.Store(before.turn.Load())
	}
	return turn
}

// filter applies the label rules, one after the other.
func (l *labelled) filter(values []string) *set {
	s := &set{candidates: l.members.candidates}
	for i := range l.rules {
		next := passing(&l.rules[i], values[i], s.candidates)
		if len(next) == 0 {
			next = fallenBack(&l.rules[i], values[i], s.candidates)
			s.relaxed = s.relaxed || len(next) > 0
		}
		s.candidates = next
		s.left = append(s.left, len(next))
	}
	s.zones = newZoning(l.zone, s.candidates)
	return s
}

// passing returns the candidates that a rule lets through.
func passing(rule *routing.LabelFilter, value string, given []*candidate) []*candidate {
	return keep(given, func(c *candidate) bool {
		return rule.Passes(value, c.labels[rule.Label]) && rule.Admits(value, c.addr)
	})
}

// fallenBack returns what a rule that let nothing through takes instead of the set
// that it was given. The guard does not fall back: what it keeps apart is not
// meant for such a request at all.
func fallenBack(rule *routing.LabelFilter, value string, given []*candidate) []*candidate {
	return keep(given, func(c *candidate) bool {
		switch rule.Fallback {
		case routing.LabelAny:
			return rule.Admits(value, c.addr)
		case routing.LabelUnlabelled:
			return blank(c.labels[rule.Label]) && rule.Admits(value, c.addr)
		}
		return false
	})
}

func keep(given []*candidate, keeps func(*candidate) bool) []*candidate {
	var kept []*candidate
	for _, c := range given {
		if keeps(c) {
			kept = append(kept, c)
		}
	}
	return kept
}
