package main

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"specialroutes.example/gateway/internal/balance"
	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/records"
	"specialroutes.example/gateway/internal/registry"
	"specialroutes.example/gateway/internal/registry/consul"
	"specialroutes.example/gateway/internal/registry/overlay"
	"specialroutes.example/gateway/internal/registry/static"
	"specialroutes.example/services/registration"
)

// announced is what Consul is told of this gateway. It is for others: the gateway
// itself looks for nobody by that name.
func announced(c *config.Config) registration.Options {
	r := c.Registration
	labels, err := registration.ParseLabels(strings.Join(r.Labels, ","))
	if err != nil { // Load has refused it
		panic(err)
	}
	return registration.Options{
		Agent: r.Agent, Service: r.Service, ID: cmp.Or(r.ID, r.Service+"-"+c.ID), Address: r.Address, Labels: labels,
	}
}

// background is a part that runs as long as the process.
type background = func(context.Context) error

// listing is the registry, what follows it, and what keeps its instances over a
// restart.
type listing struct {
	registry.Registry
	follow []background
	keeper records.InstanceKeeper // nil: there is nothing to keep

	// prepare has the instances at hand that records are about to need. Nil: they are.
	prepare func(ctx context.Context, next *records.Snapshot)
}

// newListing returns the registry that the settings name, with what operators have
// changed of labels over it: Consul for the services of the table and for those that
// the variants of their records name, or else the list of instances. changed is
// called when the keeper has something else to save.
func newListing(c *config.Config, store *records.Store, changed func(), log *slog.Logger) (listing, error) {
	overlaid := func(r registry.Registry) registry.Registry {
		return overlay.New(r, func() *records.Overlays { return store.Load().Overlays() }, time.Now)
	}
	k := c.Registry.Consul
	if k.Address == "" {
		return listing{Registry: overlaid(static.New(c.Instances))}, nil
	}
	table := servicesOf(c)
	r, err := consul.New(consul.Options{
		Address: k.Address, TokenFile: k.TokenFile, CAFile: k.CAFile, Datacenter: k.Datacenter,
		Stale: k.Stale, MaxStale: k.MaxStale, RequireServiceCheck: k.RequireServiceCheck,
		Table: table, Log: log, Changed: changed,
	})
	if err != nil {
		return listing{}, err
	}
	v := &variants{registry: r, store: store, table: table}
	return listing{
		Registry: overlaid(r), follow: []background{r.Run, v.run}, keeper: keeper{r, log}, prepare: v.prepare,
	}, nil
}

// keeper keeps the instances that Consul has listed in the file of records.
type keeper struct {
	registry *consul.Registry
	log      *slog.Logger // nil discards
}

// Save implements records.InstanceKeeper.
func (k keeper) Save() ([]byte, error) {
	known := k.registry.State()
	if len(known) == 0 {
		return nil, nil
	}
	return registry.MarshalKnown(known)
}

// Restore implements records.InstanceKeeper.
func (k keeper) Restore(text []byte) error {
	known, err := registry.UnmarshalKnown(text)
	if err != nil {
		return err
	}
	k.registry.Restore(known)
	if k.log != nil {
		k.log.Info("instances are those of the file until Consul answers", "services", len(known),
			"usable", k.registry.Load().Len())
	}
	return nil
}

const (
	// lookInterval is how often it is looked whether the records are others. A look is
	// one load of a pointer.
	lookInterval = 100 * time.Millisecond

	// prepareLimit bounds how long records wait for Consul to tell of services that they
	// name for the first time: a record that is in force before fails every call.
	prepareLimit = time.Second

	// prepareInterval is how often it is looked whether Consul has told.
	prepareInterval = 5 * time.Millisecond
)

// variants keeps the registry told of the services that the variants of the table's
// records name.
type variants struct {
	registry *consul.Registry
	store    *records.Store
	table    []string

	mu       sync.Mutex
	seen     *records.Snapshot // those in force when it was last looked
	next     *records.Snapshot // those that are about to be; nil: none are
	followed []string          // in order
}

// run follows what the records in force name, until ctx ends.
func (v *variants) run(ctx context.Context) error {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		v.look()
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// prepare follows what the next records name, beside what those in force do, and
// waits for the first answers about what they name for the first time. A service that
// Consul does not tell of delays the record that names it, and no change after that.
func (v *variants) prepare(ctx context.Context, next *records.Snapshot) {
	known := variantServices(v.store.Load(), v.table)
	wanted := slices.DeleteFunc(variantServices(next, v.table), func(service string) bool {
		return slices.Contains(known, service)
	})
	missing := func() bool {
		return slices.ContainsFunc(wanted, func(service string) bool { return !v.registry.Answered(service) })
	}
	v.mu.Lock()
	v.next = nil // the records that were prepared before are in force by now
	if !missing() {
		v.mu.Unlock()
		return
	}
	v.seen, v.next = nil, next
	v.mu.Unlock()
	v.look()
	ctx, cancel := context.WithTimeout(ctx, prepareLimit)
	defer cancel()
	ticker := time.NewTicker(prepareInterval)
	defer ticker.Stop()
	for missing() {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look tells the registry of the services unless it knows.
func (v *variants) look() {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.store.Load()
	if s == v.seen {
		return
	}
	v.seen = s
	wanted := variantServices(s, v.table)
	if s == v.next {
		v.next = nil
	}
	if v.next != nil {
		wanted = append(wanted, variantServices(v.next, v.table)...)
		slices.Sort(wanted)
		wanted = slices.Compact(wanted)
	}
	if v.followed == nil || !slices.Equal(wanted, v.followed) { // told once, be it of none
		v.registry.Follow(wanted)
		v.followed = append([]string{}, wanted...)
	}
}

// sweepInterval is how often it is looked for what the balancer may forget.
const sweepInterval = time.Minute

// sweep has the balancer forget what is long gone.
func sweep(b *balance.Balancer, r registry.Registry) background {
	return func(ctx context.Context) error {
		ticker := time.NewTicker(sweepInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
				b.Sweep(r.Load())
			}
		}
	}
}

// panicLogInterval is how often the log tells that a service has nothing available.
const panicLogInterval = time.Minute

// tellPanics returns what counts the calls to targets that are not available, and has
// the log say it, for each service once in a while. log may be nil.
func tellPanics(count func(service string), now func() time.Time, log *slog.Logger) func(service string) {
	var mu sync.Mutex
	told := make(map[string]time.Time) // services of the table only
	return func(service string) {
		count(service)
		mu.Lock()
		defer mu.Unlock()
		if at := now(); log != nil && at.Sub(told[service]) >= panicLogInterval {
			told[service] = at
			log.Warn("nothing that could answer is available; calls go to a target that is not", "of", service)
		}
	}
}

// variantsOf returns the names of the variants of a service's record.
func variantsOf(s *records.Snapshot, service string) []string {
	route := s.Route(service)
	var names []string
	for n := range route.Variants() {
		names = append(names, route.Variant(n).Name)
	}
	return names
}

// variantServices returns the services that the records of the given ones name in
// their variants, each once, in order.
func variantServices(s *records.Snapshot, table []string) []string {
	var names []string
	for _, service := range table {
		route := s.Route(service)
		for n := range route.Variants() {
			if name := route.Variant(n).Service; name != "" {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
