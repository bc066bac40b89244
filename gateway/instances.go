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
	return listing{overlaid(r), []background{r.Run, followVariants(r, store, table)}, keeper{r, log}}, nil
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

// lookInterval is how often it is looked whether the records are others. A look is
// one load of a pointer.
const lookInterval = 100 * time.Millisecond

// followVariants keeps the registry told of the services that variants name.
func followVariants(r *consul.Registry, store *records.Store, table []string) background {
	return func(ctx context.Context) error {
		ticker := time.NewTicker(lookInterval)
		defer ticker.Stop()
		var seen *records.Snapshot
		var followed []string
		for {
			if s := store.Load(); s != seen {
				seen = s
				if wanted := variantServices(s, table); !slices.Equal(wanted, followed) {
					r.Follow(wanted)
					followed = wanted
				}
			}
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
		}
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
