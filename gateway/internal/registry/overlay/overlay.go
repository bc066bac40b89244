// Package overlay puts what operators have changed of labels over the instances of a
// registry. A change ends by the gateway's own clock, also while specialroutes is
// away, and holds for an instance whenever it is listed.
package overlay

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"specialroutes.example/gateway/internal/records"
	"specialroutes.example/gateway/internal/registry"
)

// Registry is a registry with the changes over its instances. All else is as the
// registry below does it. It is safe for concurrent use.
type Registry struct {
	registry.Registry
	overlays func() *records.Overlays
	now      func() time.Time

	current  atomic.Pointer[state]
	building sync.Mutex
}

var _ registry.Registry = (*Registry)(nil)

// New returns a registry over below. overlays gives the changes of the moment; it is
// called for each request and must not block.
func New(below registry.Registry, overlays func() *records.Overlays, now func() time.Time) *Registry {
	return &Registry{Registry: below, overlays: overlays, now: now}
}

// state is a snapshot and what it was made of.
type state struct {
	below    *registry.Snapshot
	overlays *records.Overlays
	until    time.Time // the first change that holds ends then; zero: none does
	snapshot *registry.Snapshot
	services map[string]*relabelled
}

// relabelled is a service's instances and what they were made of.
type relabelled struct {
	below     []*registry.Instance
	changes   map[string]*records.InstanceLabels
	until     time.Time
	instances []*registry.Instance
}

// Load returns the snapshot in force. Without changes that is the registry's own, for
// the price of two loads of a pointer. Else it is made anew only when the registry's
// snapshot or the changes are others, or one has ended, and then only for the services
// that it is about.
func (r *Registry) Load() *registry.Snapshot {
	overlays, below := r.overlays(), r.Registry.Load()
	if overlays == nil {
		return below
	}
	now := r.now()
	if s := r.current.Load(); s.of(below, overlays, now) {
		return s.snapshot
	}
	r.building.Lock()
	defer r.building.Unlock()
	// What was loaded before may be old by now, and must not replace what is newer.
	overlays, below = r.overlays(), r.Registry.Load()
	if overlays == nil {
		return below
	}
	s := r.current.Load()
	if !s.of(below, overlays, now) {
		s = s.next(below, overlays, now)
		r.current.Store(s)
	}
	return s.snapshot
}

// of reports whether s is for these.
func (s *state) of(below *registry.Snapshot, overlays *records.Overlays, now time.Time) bool {
	return s != nil && s.below == below && s.overlays == overlays && (s.until.IsZero() || now.Before(s.until))
}

// next returns the state that follows s, which may be nil.
func (s *state) next(below *registry.Snapshot, overlays *records.Overlays, now time.Time) *state {
	next := &state{below: below, overlays: overlays, services: make(map[string]*relabelled)}
	changed := make(map[string][]*registry.Instance)
	for service, changes := range overlays.Services() {
		var before *relabelled
		if s != nil {
			before = s.services[service]
		}
		l := before.next(below.Instances(service), changes, now)
		next.services[service] = l
		changed[service] = l.instances
		next.until = earlier(next.until, l.until)
	}
	next.snapshot = below.Relabelled(changed)
	return next
}

// earlier returns the earlier of two times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// next returns the instances with the changes over them. Where nothing has changed it
// returns l, and otherwise it keeps each instance about which nothing has.
func (l *relabelled) next(below []*registry.Instance, changes map[string]*records.InstanceLabels, now time.Time) *relabelled {
	if l.of(below, changes, now) {
		return l
	}
	next := &relabelled{below: below, changes: changes, instances: below}
	for n, i := range below {
		c := changes[i.ID]
		if c == nil || !now.Before(c.Ends) {
			continue
		}
		if len(next.instances) > 0 && &next.instances[0] == &below[0] {
			next.instances = slices.Clone(below)
		}
		next.until = earlier(next.until, c.Ends)
		next.instances[n] = l.relabel(i, c)
	}
	if l != nil && slices.Equal(l.instances, next.instances) {
		next.instances = l.instances
	}
	return next
}

func (l *relabelled) of(below []*registry.Instance, changes map[string]*records.InstanceLabels, now time.Time) bool {
	return l != nil && slices.Equal(l.below, below) && same(l.changes, changes) && (l.until.IsZero() || now.Before(l.until))
}

// same reports whether two maps hold the same changes.
func same(a, b map[string]*records.InstanceLabels) bool {
	if len(a) != len(b) {
		return false
	}
	for id, c := range a {
		if b[id] != c {
			return false
		}
	}
	return true
}

// relabel returns an instance with a change over it: the one that l has of it, if that
// was made of the same.
func (l *relabelled) relabel(i *registry.Instance, c *records.InstanceLabels) *registry.Instance {
	if l != nil {
		if was := l.made(i, c); was != nil {
			return was
		}
	}
	changed := *i
	changed.Registered = i.Labels
	changed.Labels = c.Labels.Apply(i.Labels)
	changed.Operator = &registry.Operator{Labels: c.Labels, Ends: c.Ends, Revision: c.Revision}
	return &changed
}

// made returns the instance of l that was made of i and c, nil when there is none.
func (l *relabelled) made(i *registry.Instance, c *records.InstanceLabels) *registry.Instance {
	if l.changes[i.ID] != c {
		return nil
	}
	at, found := registry.Find(l.below, i.ID)
	if !found || l.below[at] != i || l.instances[at].Operator == nil {
		return nil
	}
	return l.instances[at]
}
