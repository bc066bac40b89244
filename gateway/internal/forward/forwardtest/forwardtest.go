// Package forwardtest holds what every path through the gateway must do, as one
// suite over real sockets. It knows no path: it is handed a function that serves
// a Gateway in some way, and looks at the bytes on both sides. Tests that show a
// row of the list of inputs that break gateways name it in a comment.
package forwardtest

import (
	"crypto/x509"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/balance"
	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/filter"
	"specialroutes.example/gateway/internal/forward"
	"specialroutes.example/gateway/internal/registry"
	"specialroutes.example/gateway/internal/registry/static"
	"specialroutes.example/gateway/internal/table"
	"specialroutes.example/services/override"
	"specialroutes.example/services/routing"
)

// Start serves g on a port of its own until the test ends and returns the
// address.
type Start func(t *testing.T, g *forward.Gateway, c *config.Config) (address string)

// suite is one run over one path.
type suite struct {
	start Start
	kept  bool // every connection of a client has had a request before the test's
}

// Exercise runs the suite. Its tests run in parallel.
func Exercise(t *testing.T, start Start) { exercise(t, &suite{start: start}, nil) }

// ExerciseKept runs the suite over connections that have had a request before: what
// that leaves behind must not show. HTTP/2 is left out: it begins at a connection's
// start.
func ExerciseKept(t *testing.T, start Start) {
	exercise(t, &suite{start: start, kept: true}, []string{"streams that are reset"})
}

// ExerciseTLS runs the suite over a path that speaks TLS, and that start puts
// something before which takes TLS off: but for the groups that look at the client's
// scheme, at a socket that the client does not read, or speak HTTP/2, which has to be
// agreed on under TLS.
func ExerciseTLS(t *testing.T, start Start) {
	exercise(t, &suite{start: start}, []string{"forwarded", "sticky", "time limits", "streams that are reset"})
}

func exercise(t *testing.T, s *suite, without []string) {
	for _, group := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"path", s.testPath},
		{"host", s.testHost},
		{"request headers", s.testRequestHeaders},
		{"answer headers", s.testAnswerHeaders},
		{"forwarded", s.testForwarded},
		{"hop-by-hop", s.testHopByHop},
		{"request framing", s.testRequestFraming},
		{"raw heads", s.testRawHeads},
		{"connections", s.testConnections},
		{"wholeness", s.testWholeness},
		{"request bodies", s.testRequestBodies},
		{"trailers", s.testTrailers},
		{"answers", s.testAnswers},
		{"broken answers", s.testBrokenAnswers},
		{"odd answers", s.testOddAnswers},
		{"answers of two framings", s.testAnswerTwoFramings},
		{"not modified", s.testNotModified},
		{"informational", s.testInformational},
		{"split", s.testSplit},
		{"records that change", s.testSnapshots},
		{"sticky", s.testSticky},
		{"overrides", s.testOverrides},
		{"vary", s.testVary},
		{"giving way", s.testGivingWay},
		{"labels", s.testLabels},
		{"retries", s.testRetries},
		{"time limits", s.testTimeLimits},
		{"limits", s.testLimits},
		{"leaving clients", s.testLeavingClients},
		{"streams that are reset", s.testRapidReset},
		{"streams", s.testStreams},
		{"tunnels", s.testTunnels},
		{"observation", s.testObservation},
	} {
		if slices.Contains(without, group.name) {
			continue
		}
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			group.run(t)
		})
	}
}

// The route that setups have when they say nothing else.
const (
	prefix  = "/api/organization"
	service = "organizationservice"
)

// setup is what a test changes of the usual gateway.
type setup struct {
	instances []string              // of service, addresses
	records   []*routing.Record     // in force
	current   func() filter.Records // instead of records that never change
	draw      func(int64) int64     // nil draws 1: the default variant
	config    func(*config.Config)  // changes the configuration
	filters   []filter.Filter       // instead of the standard ones
	roots     *x509.CertPool
	keys      *override.Keys // of overrides
	most      int64          // requests in flight at an instance; 0 is no limit
}

// gateway is a running one.
type gateway struct {
	address string
	entries *entries
	kept    bool
}

// routes are records in force.
type routes map[string]*routing.Route

func (r routes) Route(service string) *routing.Route { return r[service] }

func (r routes) RoutingHeaders() []string {
	var names []string
	for _, rt := range r {
		for _, rule := range rt.LabelRules() {
			names = append(names, rule.Header)
		}
	}
	return names
}

// gateway starts a gateway that routes prefix to service.
func (s *suite) gateway(t *testing.T, o setup) *gateway {
	t.Helper()
	c := config.Default()
	c.Routes = []config.Route{{Prefix: prefix, Service: service}}
	if o.config != nil {
		o.config(&c)
	}
	if s.kept {
		addKept(t, &c)
	}
	for i := range c.Routes {
		if r := &c.Routes[i]; r.Timeouts == (config.Timeouts{}) {
			r.Timeouts = c.Timeouts
			r.SensitiveHeaders = c.SensitiveHeaders
		}
	}
	seen := newEntries()
	g := forward.New(forward.Options{
		Chain:    chain(t, &c, o),
		Limits:   c.Limits,
		Upstream: c.Upstream,
		Observer: seen,
		Log:      slog.New(slog.DiscardHandler),
		RootCAs:  func() *x509.CertPool { return o.roots },
	})
	t.Cleanup(g.Close)
	return &gateway{address: s.start(t, g, &c), entries: seen, kept: s.kept}
}

func chain(t *testing.T, c *config.Config, o setup) *filter.Chain {
	t.Helper()
	if o.filters != nil {
		return filter.NewChain(o.filters...)
	}
	tab, err := table.New(c.Routes)
	if err != nil {
		t.Fatal(err)
	}
	if c.Instances == nil {
		c.Instances = make(map[string][]config.Instance)
	}
	for i, address := range o.instances {
		c.Instances[service] = append(c.Instances[service], config.Instance{ID: "i" + strconv.Itoa(i+1), Address: address})
	}
	var instances registry.Registry = static.New(c.Instances)
	records := compile(t, o.records)
	if o.current == nil {
		o.current = func() filter.Records { return records }
	}
	if o.draw == nil {
		o.draw = func(int64) int64 { return 1 }
	}
	var ids atomic.Int64
	return filter.Standard(filter.Settings{
		Table:          tab,
		Records:        o.current,
		Instances:      instances.Load,
		Balancer:       balance.New(balance.Options{Now: time.Now, ActiveLimit: o.most, ZoneLabel: c.ZoneLabel}),
		Draw:           o.draw,
		NewKey:         newKeys(),
		OverrideKeys:   func() *override.Keys { return o.keys },
		NewID:          func() string { return "made-" + strconv.FormatInt(ids.Add(1), 10) },
		TrustedProxies: c.TrustedProxies,
		Limits:         c.Limits,
		ClientLabels:   c.ClientLabels,
		ExposeRoute:    c.ExposeRoute,
	})
}

// newKeys counts keys of the right form.
func newKeys() func() string {
	var n atomic.Int64
	return func() string { return fmt.Sprintf("key-%018d", n.Add(1)) }
}

func compile(t *testing.T, records []*routing.Record) routes {
	t.Helper()
	all := make(routes)
	for _, r := range records {
		rt, err := routing.Compile(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		all[r.Service] = rt
	}
	return all
}

// bookRecord is the book's record: an alternate at an endpoint, weight tenths on
// the default.
func bookRecord(endpoint string, weight int64) *routing.Record {
	return &routing.Record{
		Service: service, Active: new(true), Default: new("old"),
		Variants: []routing.Variant{
			{Name: "old", Weight: new(weight)},
			{Name: "new", Weight: new(10 - weight), Endpoint: &endpoint},
		},
	}
}

// seeded draws from a fixed seed.
func seeded(seed uint64) func(int64) int64 {
	r := rand.New(rand.NewPCG(seed, 0))
	return func(sum int64) int64 { return 1 + r.Int64N(sum) }
}

// always draws one number: 1 is the default variant, the highest the alternate.
func always(v int64) func(int64) int64 { return func(int64) int64 { return v } }

// soon bounds a wait for what should happen at once.
const soon = 10 * time.Second
