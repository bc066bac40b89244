package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/filter"
	"specialroutes.example/gateway/internal/forward"
	"specialroutes.example/services/reread"
	"specialroutes.example/services/service"
)

// newDataPort returns the server of the data port. It tells what it serves to the
// same counters and the same end of the process, whichever way a request goes.
func newDataPort(c *config.Config, e *engine, draining *service.Draining, log *slog.Logger) *forward.Server {
	var h http.Handler = draining.Wrap(e.requests.InFlight(e.gateway))
	s := forward.NewServer(h, c.Timeouts, c.Limits, log)
	s.Observer, s.NewID = e.gateway.Observer(), filter.RandomID
	s.Draining, s.InFlight = draining.Started, e.requests.AddInFlight
	if c.Loop {
		s.Loop = e.gateway
	}
	if s.MaxConnections = c.MaxConnections; s.MaxConnections == 0 {
		s.MaxConnections = connectionsWithin(descriptorLimit())
	}
	return s
}

// Descriptors that are not for clients and their upstreams.
const (
	// ownDescriptors is how many are for all else: listeners, the log, the file of the
	// last good state, connections to Consul, to specialroutes and of the admin port.
	ownDescriptors = 64

	// fewestConnections is how many clients there may be however few descriptors there
	// are.
	fewestConnections = 16
)

// connectionsWithin is how many connections of clients fit into a limit of descriptors,
// each with one to an upstream; 0, which is without a limit, where that is 0.
func connectionsWithin(descriptors int) int {
	if descriptors == 0 {
		return 0
	}
	return max((descriptors-ownDescriptors)/2, fewestConnections)
}

// dataTLS returns the settings of TLS on the data port, nil when it is plain.
func dataTLS(c *config.Config, log *slog.Logger) (*tls.Config, error) {
	if !c.TLS.Enabled() {
		return nil, nil //nolint:nilnil // nil is what service.Endpoint takes for none
	}
	t, err := reread.Certificate(log, time.Now, c.TLS.CertFile, c.TLS.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("the data port's certificate: %w", err)
	}
	return t, nil
}

// gcPercent is how far the heap may grow before garbage is collected, in percent of
// what is alive. What is alive is a few MiB here, so that with Go's own 100 the
// collector would run for every few MiB of garbage, many times a second.
const gcPercent = 400

// setGC sets it, unless the environment says what it wants.
func setGC(environ []string) {
	said := slices.ContainsFunc(environ, func(v string) bool {
		name, value, _ := strings.Cut(v, "=")
		return value != "" && (name == "GOGC" || name == "GOMEMLIMIT")
	})
	if !said {
		debug.SetGCPercent(gcPercent)
	}
}
