// Package balance goes from a variant to one target: the variant's instances,
// what is available of them, and the pick. It also decides what gives way when
// nothing is left, and keeps what it has learnt of each target's health.
package balance

import (
	"sync"
	"sync/atomic"
	"time"

	"specialroutes.example/gateway/internal/registry"
	"specialroutes.example/services/routing"
)

// Target is where one attempt goes. It is immutable.
type Target struct {
	Name      string // the instance's ID, or the endpoint's authority
	Scheme    string // http or https
	Address   string // host:port to dial
	Authority string // the Host field
	Base      string // put before the path; "" or "/base"
}

// Options are what a Balancer needs. The zero value is not usable.
type Options struct {
	Now func() time.Time

	// ActiveLimit is the number of requests in flight at which an instance is
	// skipped; 0 is none.
	ActiveLimit int64

	// ConnectFailed is told of each failed connect to an instance that the registry
	// has not confirmed. Nil is fine.
	ConnectFailed func(service, id string)
}

// Balancer chooses targets. It holds the round robin counters and the circuits,
// both of which outlive changes of records and instances. It is safe for
// concurrent use.
type Balancer struct {
	options   Options
	pools     sync.Map     // poolKey → *pool
	endpoints sync.Map     // an endpoint as written → *candidate
	circuits  sync.Map     // circuitKey → *circuit
	trips     atomic.Int64 // circuits that are not closed
}

// New returns a Balancer that knows nothing yet.
func New(o Options) *Balancer { return &Balancer{options: o} }

// candidate is a target with its health.
type candidate struct {
	Target
	circuit *circuit
	failed  func() // tells the registry of a failed connect; nil: it need not know
}

// circuitKey names what a circuit belongs to: an instance by service and ID, an
// endpoint by scheme and authority (with an empty service). So health survives a
// change of labels or of the record.
type circuitKey struct{ service, id string }

func (b *Balancer) circuit(key circuitKey) *circuit {
	if c, ok := b.circuits.Load(key); ok {
		return c.(*circuit)
	}
	c, _ := b.circuits.LoadOrStore(key, &circuit{trips: &b.trips})
	return c.(*circuit)
}

// endpoint returns the candidate of a variant that lives at an endpoint.
func (b *Balancer) endpoint(t *routing.Target) *candidate {
	if c, ok := b.endpoints.Load(t.Endpoint); ok {
		return c.(*candidate)
	}
	c := &candidate{
		Target: Target{
			Name:      t.URL.Authority,
			Scheme:    t.URL.Scheme,
			Address:   t.URL.Address,
			Authority: t.URL.Authority,
			Base:      t.URL.Path,
		},
		circuit: b.circuit(circuitKey{id: t.URL.Scheme + "://" + t.URL.Address}),
	}
	kept, _ := b.endpoints.LoadOrStore(t.Endpoint, c)
	return kept.(*candidate)
}

// poolKey names a filtered set of a service's instances.
type poolKey struct{ service, filter string }

// pool is such a set, and the round robin over it. The counter stays when the
// instances change.
type pool struct {
	turn    atomic.Uint64
	members atomic.Pointer[members]
}

// take returns the number of this pick. A further attempt of the same request
// does not move the counter: with a dead instance among two, every request would
// begin at that one.
func (p *pool) take(further bool) int {
	n := p.turn.Load()
	if !further {
		n = p.turn.Add(1) - 1
	}
	return int(n & (1<<62 - 1))
}

// members is the set in one snapshot of the registry.
type members struct {
	snapshot   *registry.Snapshot
	candidates []*candidate
}

// pool returns the instances of a variant that has no endpoint.
func (b *Balancer) pool(service string, t *routing.Target, s *registry.Snapshot) (*pool, []*candidate) {
	if t.Service != "" {
		service = t.Service
	}
	key := poolKey{service, filterKey(t)}
	found, ok := b.pools.Load(key)
	if !ok {
		found, _ = b.pools.LoadOrStore(key, new(pool))
	}
	p := found.(*pool)
	m := p.members.Load()
	if m == nil || m.snapshot != s {
		m = b.membersOf(service, t, s)
		p.members.Store(m)
	}
	return p, m.candidates
}

// membersOf builds the set anew; it happens once for each snapshot, not for each
// request.
func (b *Balancer) membersOf(service string, t *routing.Target, s *registry.Snapshot) *members {
	m := &members{snapshot: s}
	for _, i := range s.Instances(service) {
		if !belongs(t, i) {
			continue
		}
		c := &candidate{
			Target:  Target{Name: i.ID, Scheme: "http", Address: i.Address, Authority: i.Address},
			circuit: b.circuit(circuitKey{service, i.ID}),
		}
		if i.Unconfirmed && b.options.ConnectFailed != nil {
			c.failed = func() { b.options.ConnectFailed(service, i.ID) }
		}
		m.candidates = append(m.candidates, c)
	}
	return m
}
