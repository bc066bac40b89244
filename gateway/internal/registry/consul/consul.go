// Package consul is the registry of a Consul cluster. One watcher for each service
// in use asks an agent for its passing instances, with blocking queries, and swaps
// the snapshot when something has changed. Neither an agent that is away nor one
// that came back empty takes an instance out of use by itself.
package consul

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/consul/api"

	"specialroutes.example/gateway/internal/registry"
)

// Options say which Consul is followed. Address is required; what else is left at
// zero has a default.
type Options struct {
	// Address is that of an agent: host:port, http://host:port or
	// https://host:port.
	Address string

	// TokenFile holds the ACL token, alone in the file. It is read again for each
	// question, so a token can be replaced while the gateway runs. "" sends none.
	TokenFile string

	// CAFile holds the certificates (PEM) that the agent's is checked against; ""
	// takes those of the system.
	CAFile string

	// Datacenter is the one whose instances are listed; "" is the agent's own.
	Datacenter string

	// Stale lets any server of the cluster answer, not only the leader, as long as
	// it has heard from the leader within MaxStale (10 s). An older answer is not
	// used; the leader is asked instead.
	Stale    bool
	MaxStale time.Duration

	// RequireServiceCheck leaves out instances that have no check of their own: they
	// may have been registered a moment before it.
	RequireServiceCheck bool

	// Table is the services that Ready waits for. They are followed from the start;
	// Follow adds others.
	Table []string

	// Times are the waits; see DefaultTimes for the values of those at zero.
	Times Times

	// MaxAnswer bounds an answer in bytes; a longer one is an error. 0 is 64 MiB.
	MaxAnswer int64

	Now    func() time.Time // nil is time.Now
	Random func() float64   // [0, 1), safe for concurrent use; nil draws
	Log    *slog.Logger     // nil discards

	// Changed is called when what State returns has changed. It must not block and
	// not call the Registry. Nil is fine.
	Changed func()
}

// Times are the waits of a Registry.
type Times struct {
	Wait        time.Duration // how long a question stays open without news
	Answer      time.Duration // how long an answer may take once it has begun, and may be late
	Connect     time.Duration // how long a connect may take
	Interval    time.Duration // a service is asked once in it, with a burst of two
	Least, Most time.Duration // bounds of the delay after an error
	Unconfirmed time.Duration // how long instances stay that were not listed again
}

// DefaultTimes returns the waits that fit most estates.
func DefaultTimes() Times {
	return Times{
		Wait: time.Minute, Answer: 10 * time.Second, Connect: 3 * time.Second, Interval: time.Second,
		Least: 500 * time.Millisecond, Most: 10 * time.Second, Unconfirmed: 30 * time.Second,
	}
}

// Registry follows Consul while Run runs. Its methods are safe for concurrent use.
type Registry struct {
	o      Options
	client *api.Client
	close  func() // its idle connections
	log    *slog.Logger

	snapshot atomic.Pointer[registry.Snapshot]
	ready    chan struct{}
	changed  chan struct{} // has room for one: the wanted services are others

	mu        sync.Mutex // of all below, and of who swaps the snapshot
	wanted    []string   // besides the table
	pools     map[string]*pool
	restored  map[string]registry.Known // what Restore was given and no pool has taken
	unready   map[string]bool           // services of the table that had no good answer yet
	errors    int64
	lastError string

	lastErrorAt time.Time
}

var _ registry.Registry = (*Registry)(nil)

// New returns a registry that knows nothing until Run runs. The error is that of
// an address or a CA file that cannot be used.
func New(o Options) (*Registry, error) {
	o = o.withDefaults()
	r := &Registry{
		o: o, log: o.Log, ready: make(chan struct{}), changed: make(chan struct{}, 1),
		pools: make(map[string]*pool), restored: make(map[string]registry.Known), unready: make(map[string]bool),
	}
	if err := r.connect(); err != nil {
		return nil, err
	}
	r.snapshot.Store(registry.NewSnapshot(nil))
	for _, service := range o.Table {
		r.unready[service] = true
	}
	if len(r.unready) == 0 {
		close(r.ready)
	}
	return r, nil
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxAnswer == 0 {
		o.MaxAnswer = 64 << 20
	}
	if o.MaxStale == 0 {
		o.MaxStale = 10 * time.Second
	}
	o.Times = o.Times.or(DefaultTimes())
	return o
}

// or returns t with the values of d where t has none.
func (t Times) or(d Times) Times {
	for _, f := range []struct{ to, from *time.Duration }{
		{&t.Wait, &d.Wait}, {&t.Answer, &d.Answer}, {&t.Connect, &d.Connect}, {&t.Interval, &d.Interval},
		{&t.Least, &d.Least}, {&t.Most, &d.Most}, {&t.Unconfirmed, &d.Unconfirmed},
	} {
		if *f.to == 0 {
			*f.to = *f.from
		}
	}
	return t
}

// Load returns the snapshot in force.
func (r *Registry) Load() *registry.Snapshot { return r.snapshot.Load() }

// Ready is closed when every service of the table has had one good answer.
func (r *Registry) Ready() <-chan struct{} { return r.ready }

// Status is Live once there was a good answer and nothing is from the file any more,
// and dates from the service whose last good answer is the oldest. In quiet times
// that is up to a minute ago.
func (r *Registry) Status() registry.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := registry.Status{Source: registry.None, Errors: r.errors, LastError: r.lastError, LastErrorAt: r.lastErrorAt}
	for _, p := range r.pools {
		if !p.failing.IsZero() && (s.FailingSince.IsZero() || p.failing.Before(s.FailingSince)) {
			s.FailingSince = p.failing
		}
		if p.asOf.IsZero() {
			continue
		}
		if s.Source != registry.File {
			s.Source = registry.Live
		}
		if p.fromFile {
			s.Source = registry.File
		}
		if s.Since.IsZero() || p.asOf.Before(s.Since) {
			s.Since = p.asOf
		}
	}
	return s
}

// Follow replaces the services that are followed besides those of the table. It
// returns at once; instances of services that are no longer followed go, those of
// new ones come with Consul's answer.
func (r *Registry) Follow(services []string) {
	r.mu.Lock()
	r.wanted = slices.Clone(services)
	maps.DeleteFunc(r.restored, func(service string, _ registry.Known) bool { return !slices.Contains(services, service) })
	r.mu.Unlock()
	select {
	case r.changed <- struct{}{}:
	default: // Run knows already that there is a change
	}
}

// Answered reports whether a service is followed and there was a good answer for it, be
// it that it has no instances, or that of the file.
func (r *Registry) Answered(service string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pools[service]
	return p != nil && !p.asOf.IsZero()
}

// Run follows until ctx ends, then returns nil. It is called once.
func (r *Registry) Run(ctx context.Context) error {
	defer r.close()
	var group sync.WaitGroup
	defer group.Wait()
	running := make(map[string]func())
	for {
		wanted := r.services()
		for service, stop := range running {
			if !slices.Contains(wanted, service) {
				stop()
				delete(running, service)
			}
		}
		for _, service := range wanted {
			if running[service] == nil {
				running[service] = r.follow(ctx, &group, service)
			}
		}
		select {
		case <-ctx.Done():
			for _, stop := range running {
				stop()
			}
			return nil
		case <-r.changed:
		}
	}
}

// services returns the services to follow.
func (r *Registry) services() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Concat(r.o.Table, r.wanted)
	slices.Sort(all)
	return slices.Compact(all)
}

// follow starts the watcher of a service, and returns what stops it and forgets
// the service's instances.
func (r *Registry) follow(ctx context.Context, group *sync.WaitGroup, service string) func() {
	ctx, cancel := context.WithCancel(ctx)
	p := r.open(service)
	group.Go(func() { newWatcher(r, p).run(ctx) })
	return func() {
		last := ctx.Err() != nil // the gateway ends: its last requests still need instances
		cancel()
		r.forget(p, last)
	}
}

// errDenied is an answer that Consul has emptied because the token may not read.
var errDenied = errors.New("the token may not read the service's instances")

// failed notes a question that failed, and why.
func (r *Registry) failed(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors++
	r.lastError, r.lastErrorAt = reason, r.o.Now()
}
