package main

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"specialroutes.example/services/registration"
	"specialroutes.example/services/reread"
	"specialroutes.example/services/service"
	"specialroutes.example/specialroutes/internal/api"
	"specialroutes.example/specialroutes/internal/census"
	"specialroutes.example/specialroutes/internal/config"
	"specialroutes.example/specialroutes/internal/endings"
	"specialroutes.example/specialroutes/internal/feed"
	"specialroutes.example/specialroutes/internal/gateways"
	"specialroutes.example/specialroutes/internal/opening"
	"specialroutes.example/specialroutes/internal/retention"
	"specialroutes.example/specialroutes/internal/tokens"
)

// writeTimeout bounds an answer from the head of the request on: the longest wait
// for changes, and time to read what has changed over a slow line.
const writeTimeout = 3 * time.Minute

// serve is the architecture, top to bottom: the store, the feed on it, the
// interface on both, and the port.
func (p *program) serve(ctx context.Context, c config.Config) (err error) {
	log := service.NewLogger(p.stderr, c.LogLevel, "specialroutes")
	valid, err := p.tokens(c, log)
	if err != nil {
		return err
	}
	certificate, err := certificate(c, log)
	if err != nil {
		return err
	}
	db, err := databaseOf(ctx, c, log)
	if err != nil {
		return err
	}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	store := opening.New(log, db.open)
	defer func() { err = errors.Join(err, store.Close()) }()
	draining := new(service.Draining)
	changes := feed.New(store, log)
	server := service.HTTPServer(api.New(api.Options{
		Store: store, Feed: changes, Gateways: gateways.New(store, log), Log: log, Metrics: metrics, Draining: draining,
		Tokens: valid, InsecureAdmin: c.InsecureAdmin, AllowLinkLocal: c.AllowLinkLocal, Hosts: c.Hosts,
	}))
	server.WriteTimeout = writeTimeout
	server.DisableGeneralOptionsHandler = true // OPTIONS * is answered like any other
	server.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)

	o := service.Options{
		Name: "specialroutes", Log: log, Draining: draining, Force: p.force, WasReady: store.WasOpened,
		Drain:     service.DrainTimes{Delay: c.DrainDelay, Limit: c.DrainLimit},
		Endpoints: []service.Endpoint{{Name: "REST", Address: c.Listen, Server: server, TLS: certificate}},
		Background: []func(context.Context) error{
			inTurn(store.Run, changes.Run), // nothing is asked that is not open yet
			census.New(store, log, metrics).Run,
			retaining(c.HistoryKeep, store, log),
			endings.New(endings.Options{Store: store, Log: log, Now: time.Now, Ended: changes.Wake}).Run,
			stopping(draining, changes),
		},
		OnListen: func(_ string, a net.Addr) {
			if p.onListen != nil {
				p.onListen(a.String())
			}
		},
	}
	if err := registration.Announce(&o, announced(c), "REST", "REST"); err != nil {
		return err
	}
	return service.Run(ctx, o)
}

// announced is what Consul is told of this process.
func announced(c config.Config) registration.Options {
	r := c.Registration
	r.CheckTLS = c.TLSCert != ""
	if r.ID == "" {
		host, _ := os.Hostname() // without one the name alone must do
		r.ID = strings.TrimSuffix(r.Service+"-"+host, "-")
	}
	return r
}

// inTurn runs background functions one after the other.
func inTurn(all ...func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, run := range all {
			if err := run(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// stopping answers the followers when the stop begins: each would hold it up for
// as long as it waits.
func stopping(draining *service.Draining, f *feed.Feed) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-draining.Begun():
			f.Stop()
		case <-ctx.Done():
		}
		return nil
	}
}

// retaining cuts history, once the database is open, when it is not kept for ever.
func retaining(keep time.Duration, s *opening.Store, log *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		if keep == 0 {
			return nil
		}
		select {
		case <-s.Opened():
		case <-ctx.Done():
			return nil
		}
		return retention.New(retention.Options{Store: s, Keep: keep, Log: log, Now: time.Now, Random: rand.Float64}).Run(ctx)
	}
}

// tokens returns what gives the valid tokens, nil when none are configured, and
// warns of what that means.
func (p *program) tokens(c config.Config, log *slog.Logger) (func() *tokens.Set, error) {
	if c.TokensFile == "" {
		if c.InsecureAdmin {
			log.Warn("--insecure-admin: everybody who reaches the port may change all records", "listen", c.Listen)
		} else {
			log.Warn("no tokens are configured: everybody who reaches the port may read all records, and nobody may change them")
		}
		return nil, nil //nolint:nilnil // nil is what api.Options takes for none
	}
	set, err := reread.Open(log, time.Now, func(contents [][]byte) (*tokens.Set, error) {
		return tokens.Parse(contents[0])
	}, c.TokensFile)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(c.TokensFile); err == nil && info.Mode().Perm()&0o004 != 0 {
		log.Warn("the token file can be read by everybody on this machine", "file", c.TokensFile)
	}
	return set.Current, nil
}

// certificate returns the TLS settings, nil for plain HTTP.
func certificate(c config.Config, log *slog.Logger) (*tls.Config, error) {
	if c.TLSCert == "" {
		return nil, nil //nolint:nilnil // nil is what service.Endpoint takes for none
	}
	return reread.Certificate(log, time.Now, c.TLSCert, c.TLSKey)
}
