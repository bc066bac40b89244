package main

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/records"
	"specialroutes.example/gateway/internal/registry"
	"specialroutes.example/gateway/internal/registry/consul"
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

// newRegistry returns the registry that the settings name, and what follows it:
// Consul for the services of the table and for those that the variants of their
// records name, or else the list of instances.
func newRegistry(c *config.Config, store *records.Store, log *slog.Logger) (registry.Registry, []background, error) {
	k := c.Registry.Consul
	if k.Address == "" {
		return static.New(c.Instances), nil, nil
	}
	table := servicesOf(c)
	r, err := consul.New(consul.Options{
		Address: k.Address, TokenFile: k.TokenFile, CAFile: k.CAFile, Datacenter: k.Datacenter,
		Stale: k.Stale, MaxStale: k.MaxStale, Table: table, Log: log,
	})
	if err != nil {
		return nil, nil, err
	}
	return r, []background{r.Run, followVariants(r, store, table)}, nil
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
