// Package balance goes from a variant to one target: the variant's instances,
// what the label rules leave of them, what is available of those, zones, and the
// pick. It also decides what gives way when nothing is left, and keeps what it has
// learnt of each target's health.
package balance

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"specialroutes.example/gateway/internal/registry"
	"specialroutes.example/services/routing"
)

// Target is where one attempt goes. It is immutable.
type Target struct {
	Name      string // the instance's ID, or the endpoint's authority
	Scheme    string // http, https, h2c or h2
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

	// ZoneLabel is the label that names an instance's availability zone; "" is none,
	// and no zone is avoided.
	ZoneLabel string

	// Random gives a number of 0..n-1, each equally likely. It draws among zones of
	// equal load, and the first instance where no counter is kept. Nil always gives 0.
	Random func(n int64) int64

	// ConnectFailed is told of each failed connect to an instance that the registry
	// has not confirmed. Nil is fine.
	ConnectFailed func(service, id string)

	// Panicked is told of each request that goes to an instance or endpoint although
	// its availability forbids it, because nothing else is left; service is the
	// requested one. It must not block. Nil is fine.
	Panicked func(service string)
}

// Balancer chooses targets. It holds the round robin counters and the circuits,
// both of which outlive changes of records and instances. It is safe for
// concurrent use.
type Balancer struct {
	options   Options
	pools     sync.Map   // poolKey → *pool
	endpoints sync.Map   // an endpoint as written → *candidate
	circuits  sync.Map   // circuitKey → *circuit
	sweeping  sync.Mutex // of Sweep, and of what only it touches
}

// New returns a Balancer that knows nothing yet.
func New(o Options) *Balancer {
	if o.Random == nil {
		o.Random = func(int64) int64 { return 0 }
	}
	return &Balancer{options: o}
}

// candidate is a target with its health.
type candidate struct {
	Target
	circuit *circuit
	failed  func()            // tells the registry of a failed connect; nil: it need not know
	labels  map[string]string // of the instance
	addr    netip.Addr        // of the instance; zero: it is registered by name

	instance *registry.Instance // nil: it is an endpoint
	usage                       // of an endpoint
}

// circuitKey names what a circuit belongs to: an instance by service and ID, an
// endpoint by scheme and authority (with an empty service). So health survives a
// change of labels or of the record.
type circuitKey struct{ service, id string }

func (b *Balancer) circuit(key circuitKey) *circuit {
	if c, ok := b.circuits.Load(key); ok {
		return c.(*circuit)
	}
	c, _ := b.circuits.LoadOrStore(key, new(circuit))
	return c.(*circuit)
}

// endpoint returns the candidate of a variant that lives at an endpoint.
func (b *Balancer) endpoint(t *routing.Target) *candidate {
	if found, ok := b.endpoints.Load(t.Endpoint); ok {
		c := found.(*candidate)
		c.use()
		return c
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
	c.use()
	kept, _ := b.endpoints.LoadOrStore(t.Endpoint, c)
	return kept.(*candidate)
}

// poolKey names a variant's instances. Where label rules filter them further, the
// owner is the service whose record has the rules, so that no two services share
// what follows from them.
type poolKey struct{ owner, service, filter string }

// pool is a variant's instances, and the round robin over them. The counters stay
// when the instances change.
type pool struct {
	usage
	turn     atomic.Uint64
	members  atomic.Pointer[members]
	labelled atomic.Pointer[labelled] // nil until label rules are asked about
}

// members is a pool over one list of the service's instances.
type members struct {
	snapshot  atomic.Pointer[registry.Snapshot] // the last one that was seen to have the list
	instances []*registry.Instance
	set       // without label rules
}

// of reports whether the members are those of a snapshot. A snapshot in which only
// other services have changed has the same list.
func (m *members) of(s *registry.Snapshot, service string) bool {
	if m.snapshot.Load() == s {
		return true
	}
	now := s.Instances(service)
	if len(now) != len(m.instances) || len(now) > 0 && &now[0] != &m.instances[0] {
		return false
	}
	m.snapshot.Store(s)
	return true
}

// set returns the instances of a variant that has no endpoint, as far as the label
// rules of the record leave them to a request that asks for these values.
func (b *Balancer) set(w *Want, t *routing.Target, values []string) *set {
	p, m := b.pool(w, t)
	rules := w.Route.LabelRules()
	if len(rules) == 0 {
		return &m.set
	}
	l := p.labelled.Load()
	if !l.of(m, rules) {
		l = newLabelled(m, rules, b.options.ZoneLabel, l)
		p.labelled.Store(l)
	}
	return l.set(values)
}

// registered is the name under which the registry has a variant's instances.
func registered(w *Want, t *routing.Target) string {
	if t.Service != "" {
		return t.Service
	}
	return w.Service
}

func (b *Balancer) pool(w *Want, t *routing.Target) (*pool, *members) {
	key := poolKey{service: registered(w, t), filter: filterKey(t)}
	if len(w.Route.LabelRules()) > 0 {
		key.owner = w.Service
	}
	found, ok := b.pools.Load(key)
	if !ok {
		found, _ = b.pools.LoadOrStore(key, new(pool))
	}
	p := found.(*pool)
	p.use()
	m := p.members.Load()
	if m == nil || !m.of(w.Instances, key.service) {
		m = b.membersOf(p, key.service, t, w.Instances, m)
		p.members.Store(m)
	}
	return p, m
}

// membersOf builds the pool's members anew; it happens once for each change of the
// service's instances, not for each request. Instances about which nothing has changed
// keep their candidates.
func (b *Balancer) membersOf(p *pool, service string, t *routing.Target, s *registry.Snapshot, before *members) *members {
	m := &members{instances: s.Instances(service), set: set{turn: &p.turn}}
	m.snapshot.Store(s)
	var known []*candidate // those of before from here on, in order of their IDs
	if before != nil {
		known = before.candidates
	}
	m.candidates = make([]*candidate, 0, len(m.instances))
	for _, i := range m.instances {
		if !belongs(t, i) {
			continue
		}
		for len(known) > 0 && known[0].instance.ID < i.ID {
			known = known[1:]
		}
		if len(known) > 0 && known[0].instance == i {
			m.candidates = append(m.candidates, known[0])
		} else {
			m.candidates = append(m.candidates, b.instance(service, i))
		}
	}
	m.zones = newZoning(b.options.ZoneLabel, m.candidates)
	return m
}

// instance returns the candidate of an instance.
func (b *Balancer) instance(service string, i *registry.Instance) *candidate {
	c := &candidate{
		Target:  Target{Name: i.ID, Scheme: instanceScheme(i), Address: i.Address, Authority: i.Address},
		circuit: b.circuit(circuitKey{service, i.ID}),
		labels:  i.Labels, instance: i,
	}
	if host, _, err := net.SplitHostPort(i.Address); err == nil && !i.ByName {
		c.addr, _ = netip.ParseAddr(host) // else it stays zero, which no network holds
	}
	if i.Unconfirmed && b.options.ConnectFailed != nil {
		c.failed = func() { b.options.ConnectFailed(service, i.ID) }
	}
	return c
}

// protocolLabel is the label by which an instance says that it speaks HTTP/2
// without TLS: protocol=h2c. Any other value is HTTP/1.1, as none is.
const protocolLabel = "protocol"

func instanceScheme(i *registry.Instance) string {
	if i.Labels[protocolLabel] == "h2c" {
		return "h2c"
	}
	return "http"
}
