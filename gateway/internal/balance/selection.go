package balance

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"specialroutes.example/gateway/internal/registry"
	"specialroutes.example/services/routing"
)

// Want is what a request asks of the balancer.
type Want struct {
	Service   string         // the requested one
	Route     *routing.Route // its record; nil is none
	Variant   int            // of Route
	Instances *registry.Snapshot
	Header    http.Header // of the request, for label rules; read by Select only

	// Pinned keeps the request at its variant: an override asks for that one, and
	// an answer of another would be a lie.
	Pinned bool
}

// Reason says why a variant gave way.
type Reason string

// The reasons, as X-Route-Fallback names them.
const (
	NoInstances Reason = "no-instances" // none is registered, or none belongs to the variant
	Labels      Reason = "labels"       // label rules left none, or those of a rule's fallback
	Tripped     Reason = "tripped"      // circuits are open
	Limit       Reason = "limit"        // requests in flight are at their limit
	Connect     Reason = "connect"      // connects failed
	Zones       Reason = "zones"        // zones that may be used have none available; another zone answers
)

// Connects that may fail in the wanted variant, and in the default variant when
// some have failed before: the picked instance, one other of its variant, one of
// the default variant.
const (
	connectsWanted   = 2
	connectsFallback = 1
)

// stage is where the targets come from. Stages follow one another and never come
// back.
type stage uint8

const (
	wanted   stage = iota
	fallback       // the default variant
	anyway         // the wanted variant, whatever its circuits say
	exhausted
)

// Selection is the targets of one request, one after the other. It is used by one
// goroutine at a time.
type Selection struct {
	balancer *Balancer
	want     Want
	values   []string // asked of the label rules
	sets     [2]*set  // of the wanted and of the default variant, once they are known
	stage    stage
	tried    []*candidate
	room     [4]*candidate // tried, without an allocation
	first    Pick          // the memory for it; most requests need no other
	last     *Pick
	connects [exhausted]int // that failed, by stage
	why      Reason         // the wanted variant gave way
	spread   bool           // zones gave way
}

// Select begins the selection of a request's targets.
func (b *Balancer) Select(w Want) *Selection {
	s := &Selection{balancer: b, want: w, values: asked(w.Route.LabelRules(), w.Header)}
	s.want.Header = nil // it changes while the request goes on
	s.tried = s.room[:0]
	return s
}

// Next returns the first target, and after Pick.ConnectFailed the next one to
// try: one other of the wanted variant, then the default variant's if the record
// lets it, then the wanted variant's without regard to circuits. It returns nil
// when there is nothing left to try.
func (s *Selection) Next() *Pick {
	now := s.balancer.options.Now()
	for s.stage < exhausted {
		if s.mayConnect() {
			if p := s.pick(now); p != nil {
				return p
			}
		}
		s.advance(now)
	}
	return nil
}

// Again returns a target for a second attempt after one that was sent and not
// answered: another one of the same variant if there is one that is available,
// else the same.
func (s *Selection) Again() *Pick {
	now := s.balancer.options.Now()
	if p := s.pick(now); p != nil {
		return p
	}
	return s.newPick(s.last.candidate, 0)
}

// mayConnect reports whether this stage has connects left.
func (s *Selection) mayConnect() bool {
	switch s.stage {
	case fallback:
		w := &s.want
		if w.Pinned || w.Variant == w.Route.DefaultVariant() || w.Route.OnUnavailable() != routing.OnUnavailableDefault {
			return false
		}
		if s.connects[wanted] > 0 {
			return s.connects[fallback] < connectsFallback
		}
		return s.connects[fallback] < connectsWanted
	case anyway:
		return !s.want.Pinned && s.connects[wanted]+s.connects[anyway] < connectsWanted
	}
	return s.connects[wanted] < connectsWanted
}

// advance goes to the next stage, and remembers why the wanted variant gave way.
func (s *Selection) advance(now time.Time) {
	if s.stage == wanted {
		s.why = s.reason(now)
	}
	s.stage++
}

// variant is the one whose targets the stage takes.
func (s *Selection) variant() *routing.Target {
	if s.stage == fallback {
		return s.want.Route.Variant(s.want.Route.DefaultVariant())
	}
	return s.want.Route.Variant(s.want.Variant)
}

// set returns the instances of the stage's variant, which has no endpoint.
func (s *Selection) set() *set {
	which := wanted
	if s.stage == fallback {
		which = fallback
	}
	if s.sets[which] == nil {
		s.sets[which] = s.balancer.set(&s.want, s.variant(), s.values)
	}
	return s.sets[which]
}

// pick takes a target of the stage's variant that has not been tried.
func (s *Selection) pick(now time.Time) *Pick {
	if t := s.variant(); t.URL != nil {
		return s.enter(now, s.balancer.endpoint(t))
	}
	set := s.set()
	if len(set.candidates) == 0 {
		return nil
	}
	turn := set.take(len(s.tried) > 0, s.balancer.options.Random)
	first := set.candidates[turn%len(set.candidates)]
	if len(s.tried) == 0 && s.stage != anyway && !set.zones.matter() {
		if p := s.enter(now, first); p != nil {
			return p
		}
		turn = set.skip(s.balancer.options.Random)
	}
	left := s.usable(now, set.candidates)
	if s.stage == anyway || !set.zones.matter() {
		return s.enterOne(now, left, turn)
	}
	if p := s.enterOne(now, s.balancer.inZones(now, set, left), turn); p != nil {
		return p
	}
	p := s.enterOne(now, left, turn)
	s.spread = p != nil && len(s.tried) == 1
	return p
}

// enterOne takes the first of the candidates that lets the request in, from the
// turn's on.
func (s *Selection) enterOne(now time.Time, left []*candidate, turn int) *Pick {
	for i := range left {
		if p := s.enter(now, left[(turn+i)%len(left)]); p != nil {
			return p
		}
	}
	return nil
}

// usable returns the candidates that this stage may still try: those that are
// available, or before giving up the one whose circuit closes first. Where it is the
// limit that gives way, that is the one with the fewest requests in flight, so that
// what is too much is shared.
func (s *Selection) usable(now time.Time, candidates []*candidate) []*candidate {
	var left []*candidate
	for _, c := range candidates {
		if !slices.Contains(s.tried, c) && (s.stage == anyway || s.balancer.available(now, c)) {
			left = append(left, c)
		}
	}
	if s.stage == anyway && len(left) > 1 {
		left = []*candidate{slices.MinFunc(left, func(a, b *candidate) int {
			return cmp.Or(a.circuit.opensAt().Compare(b.circuit.opensAt()), cmp.Compare(a.circuit.active.Load(), b.circuit.active.Load()))
		})}
	}
	return left
}

// enter takes a candidate, nil when its circuit does not let the request in.
func (s *Selection) enter(now time.Time, c *candidate) *Pick {
	if slices.Contains(s.tried, c) {
		return nil
	}
	if s.stage == anyway {
		return s.newPick(c, 0)
	}
	if s.balancer.full(c) {
		return nil
	}
	ok, probe := c.circuit.enter(now)
	if !ok {
		return nil
	}
	return s.newPick(c, probe)
}

func (s *Selection) newPick(c *candidate, probe int) *Pick {
	c.circuit.active.Add(1)
	if !slices.Contains(s.tried, c) {
		s.tried = append(s.tried, c)
	}
	if s.stage == anyway && s.balancer.options.Panicked != nil {
		s.balancer.options.Panicked(s.want.Service)
	}
	p := &s.first
	if s.last != nil {
		p = new(Pick)
	}
	*p = Pick{candidate: c, Variant: s.variant(), selection: s, stage: s.stage, probe: probe}
	s.last = p
	return p
}

func (b *Balancer) available(now time.Time, c *candidate) bool {
	return !b.full(c) && c.circuit.state(now) != tripped
}

func (b *Balancer) full(c *candidate) bool {
	return b.options.ActiveLimit > 0 && c.circuit.active.Load() >= b.options.ActiveLimit
}
