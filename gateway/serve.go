package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"specialroutes.example/gateway/internal/accesslog"
	"specialroutes.example/gateway/internal/admin"
	"specialroutes.example/gateway/internal/balance"
	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/filter"
	"specialroutes.example/gateway/internal/forward"
	"specialroutes.example/gateway/internal/metrics"
	"specialroutes.example/gateway/internal/records"
	"specialroutes.example/gateway/internal/registry"
	"specialroutes.example/gateway/internal/table"
	"specialroutes.example/services/override"
	"specialroutes.example/services/registration"
	"specialroutes.example/services/reread"
	"specialroutes.example/services/service"
)

// openAnyway is how long the data port waits for the registry's first answer. The
// records' follower has a time of its own.
const openAnyway = 10 * time.Second

// engine is the parts that a request meets, and what follows for them.
type engine struct {
	store    *records.Store
	follower *records.Follower
	registry registry.Registry
	follow   []background // keeps the registry's instances right
	balancer *balance.Balancer
	requests *metrics.Requests
	metrics  *prometheus.Registry
	access   *accesslog.Writer
	gateway  *forward.Gateway
}

// newEngine puts the parts together. Nothing of it runs yet. log may be nil.
func newEngine(c *config.Config, stdout io.Writer, log *slog.Logger) (*engine, error) {
	version, revision := build()
	routes, err := table.New(c.Routes)
	if err != nil {
		return nil, err
	}
	e := &engine{
		store:   new(records.Store),
		access:  accesslog.NewWriter(stdout, log),
		metrics: metrics.NewRegistry(version, revision, runtime.Version()),
	}
	instances, err := newListing(c, e.store, func() { e.follower.InstancesChanged() }, log)
	if err != nil {
		return nil, err
	}
	e.registry, e.follow = instances.Registry, instances.follow
	e.follower, err = records.NewFollower(records.Options{
		URLs: c.Records.URLs, TokenFile: c.Records.TokenFile, CAFile: c.Records.CAFile, File: c.Records.File,
		GatewayID: c.ID, Version: version, AllowLinkLocal: c.Upstream.AllowLinkLocal,
		Instances: instances.keeper, Prepare: instances.prepare, Log: log,
	}, e.store)
	if err != nil {
		return nil, err
	}
	e.requests = metrics.NewRequests(e.metrics, servicesOf(c))
	metrics.CollectRecords(e.metrics, e.follower.Status, time.Now)
	e.requests.VariantsFrom(func(service string) []string { return variantsOf(e.store.Load(), service) })
	e.balancer = balance.New(balance.Options{
		Now: time.Now, Random: rand.Int64N, ConnectFailed: e.registry.ConnectFailed,
		ActiveLimit: int64(c.ActiveLimit), ZoneLabel: c.ZoneLabel,
		Panicked: tellPanics(metrics.NewPanics(e.metrics), time.Now, log),
	})
	metrics.CollectInstances(e.metrics, metrics.Instances{Registry: e.registry, Health: e.balancer.Health, Now: time.Now})
	metrics.CountDropped(e.metrics, e.access.Dropped)
	keys, err := overrideKeys(c, log)
	if err != nil {
		return nil, err
	}
	roots, err := upstreamRoots(c, log)
	if err != nil {
		return nil, err
	}
	chain := filter.Standard(filter.Settings{
		Table:     routes,
		Records:   func() filter.Records { return e.store.Load() },
		Instances: e.registry.Load,
		Balancer:  e.balancer,
		Draw:      func(sum int64) int64 { return 1 + rand.Int64N(sum) },
		NewID:     filter.RandomID,

		NewKey: filter.RandomKey, OverrideKeys: keys, Now: time.Now,

		TrustedProxies: c.TrustedProxies, Limits: c.Limits, ClientLabels: c.ClientLabels, ExposeRoute: c.ExposeRoute,
	})
	e.gateway = forward.New(forward.Options{
		Chain: chain, Limits: c.Limits, Upstream: c.Upstream, Observer: e.observers(c), Log: log, RootCAs: roots,
	})
	return e, nil
}

// observers are told of each request.
func (e *engine) observers(c *config.Config) forward.Observers {
	all := forward.Observers{e.requests}
	if c.Log.Access {
		all = append(all, e.access)
	}
	return all
}

// overrideKeys returns what gives the keys of the moment, nil when none are set. A
// file that cannot be used stops the start; later the last good keys stay in force.
func overrideKeys(c *config.Config, log *slog.Logger) (func() *override.Keys, error) {
	if c.OverrideKeys == "" {
		return nil, nil //nolint:nilnil // nil is what filter.Settings takes for none
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	keys, err := reread.Open(log, time.Now, func(contents [][]byte) (*override.Keys, error) {
		return override.ParseKeys(contents[0])
	}, c.OverrideKeys)
	if err != nil {
		return nil, fmt.Errorf("override keys: %w", err)
	}
	return keys.Current, nil
}

// servicesOf returns the services of the table.
func servicesOf(c *config.Config) []string {
	var names []string
	for _, r := range c.Routes {
		names = append(names, r.Service)
	}
	return names
}

// serve is the process: the engine behind the data port, which opens when there is
// something to route by, and the admin port beside it.
func (p program) serve(ctx context.Context, c *config.Config) error {
	log := service.NewLogger(p.stderr, c.Log.Level, "gateway").With("gateway", c.ID)
	e, err := newEngine(c, p.stdout, log)
	if err != nil {
		return err
	}
	defer e.gateway.Close()
	secured, err := dataTLS(c, log)
	if err != nil {
		return err
	}
	setGC(p.environ)
	greet(c, p.environ, log)

	draining := new(service.Draining)
	open, opened := make(chan struct{}), make(chan struct{})
	data := newDataPort(c, e, draining, log)
	port := admin.New(admin.Options{
		Config: c, Records: e.store, Status: e.follower.Status, Registry: e.registry, Balancer: e.balancer,
		Metrics: e.metrics, Draining: draining, Opened: opened,
	})
	o := service.Options{
		Name: "gateway", Log: log, Draining: draining, Force: p.force,
		Drain: service.DrainTimes{Delay: c.Drain.Delay, Limit: c.Drain.Limit},
		Endpoints: []service.Endpoint{
			{Name: "data", Address: c.Listen, Server: data, TLS: secured, Open: open},
			{Name: "admin", Address: c.Admin, Server: adminServer(port, log), Late: true},
		},
		Background: append([]background{
			e.access.Run,
			e.follower.Run,
			sweep(e.balancer, e.registry),
			openWhen(open, openAnyway, e.follower.Ready(), e.registry.Ready()),
		}, e.follow...),
		OnListen: func(name string, addr net.Addr) {
			if name == "data" {
				close(opened)
			}
			if p.onListen != nil {
				p.onListen(name, addr)
			}
		},
	}
	if err := registration.Announce(&o, announced(c), "data", "admin"); err != nil {
		return err
	}
	return service.Run(ctx, o)
}

// adminServer is the server of the admin port.
func adminServer(h http.Handler, log *slog.Logger) *http.Server {
	s := service.HTTPServer(h)
	s.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	return s
}

// greet says what starts, and warns of what is allowed but seldom meant.
func greet(c *config.Config, environ []string, log *slog.Logger) {
	version, revision := build()
	log.Info("starting", "version", version, "revision", revision, "routes", len(c.Routes), "instancesOf", len(c.Instances),
		"consul", c.Registry.Consul.Address)
	if unknown := config.Unknown(environ); len(unknown) > 0 {
		log.Warn("environment variables that are no setting are ignored", "variables", unknown)
	}
	if info, err := os.Stat(c.OverrideKeys); err == nil && info.Mode().Perm()&0o004 != 0 {
		log.Warn("the file of override keys can be read by everybody on this machine", "file", c.OverrideKeys)
	}
	if k := c.Registry.Consul; k.TokenFile != "" && !strings.HasPrefix(k.Address, "https:") {
		log.Warn("the token is sent without TLS", "consul", k.Address)
	}
	for _, url := range c.Records.URLs {
		if c.Records.TokenFile != "" && !strings.HasPrefix(url, "https:") {
			log.Warn("the token is sent without TLS", "url", url)
		}
	}
}

// openWhen closes open when all of ready are closed, or when the limit is over.
func openWhen(open chan<- struct{}, limit time.Duration, ready ...<-chan struct{}) func(context.Context) error {
	return func(ctx context.Context) error {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		for _, r := range ready {
			select {
			case <-ctx.Done():
				return nil
			case <-timer.C:
				close(open)
				return nil
			case <-r:
			}
		}
		close(open)
		return nil
	}
}
