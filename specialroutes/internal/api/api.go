// Package api is the REST interface of specialroutes, the contract of openapi.yaml
// put into handlers, and the only package that knows gin. A handler reads a
// request, asks the store, and returns an error by its meaning; what that means in
// HTTP is said in one table (meanings), and what is logged about a request in one
// line (edge).
package api

import (
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"specialroutes.example/services/routing"
	"specialroutes.example/services/service"
	"specialroutes.example/specialroutes/internal/feed"
	"specialroutes.example/specialroutes/internal/gateways"
	"specialroutes.example/specialroutes/internal/store"
	"specialroutes.example/specialroutes/internal/tokens"
)

// Options is what the interface stands on. All but AllowLinkLocal, Hosts, Tokens, Draw,
// Now and BodyTimeout are needed.
type Options struct {
	Store store.Store
	Feed  *feed.Feed
	Log   *slog.Logger

	// Metrics is what /metrics shows; the interface adds its own to it.
	Metrics *prometheus.Registry

	// Tokens returns the tokens that are valid now. Nil is none: everybody reads,
	// and nobody writes but with InsecureAdmin.
	Tokens func() *tokens.Set

	// InsecureAdmin lets everybody write who comes without a token, while there are
	// none.
	InsecureAdmin bool

	// AllowLinkLocal lets records have endpoints with link-local and metadata
	// addresses, as in config.Config.
	AllowLinkLocal bool

	// Hosts are the names that are answered, as in config.Config.
	Hosts []string

	// Gateways knows how far each gateway has got.
	Gateways *gateways.Tracker

	// Draw gives a random number from 1 to sum, for explanations; nil is the system's.
	Draw func(sum int64) int64

	// Now gives the time; nil is time.Now.
	Now func() time.Time

	// BodyTimeout is what a client has to send a body; 0 is 30 s.
	BodyTimeout time.Duration

	// Draining says that the process is stopping.
	Draining *service.Draining
}

// api is the handlers' common ground. It is immutable.
type api struct {
	Options
	hosts   hostPolicy
	origins *http.CrossOriginProtection
	metrics *metrics
	rules   []routing.Option // for what is to be stored
}

// operation is one line of the table of operations: a method and a path of
// openapi.yaml and what is done there.
type operation struct {
	method, path string
	scope        tokens.Scope // what a token must allow; 0 is open to everybody
	parameters   []string     // of the query; others are refused
	lenient      bool         // other parameters are ignored
	quiet        bool         // logged at debug level when all is well
	handle       func(*gin.Context) error
}

func (a *api) operations() []operation {
	ofWrites := []string{"why", "dryRun", "wait"}
	ofFollowers := []string{"after", "wait", "gateway", "version", "setAside", "leaving"}
	return []operation{
		{method: "GET", path: "/v1/route/abtesting", scope: tokens.Read, parameters: []string{"limit", "after"}, handle: a.listBook},
		{method: "GET", path: "/v1/route/abtesting/:serviceName", scope: tokens.Read, handle: a.getBook},
		{method: "PUT", path: "/v1/route/abtesting/:serviceName", scope: tokens.Write, parameters: []string{"why", "wait"}, handle: a.putBook},
		{method: "DELETE", path: "/v1/route/abtesting/:serviceName", scope: tokens.Write, parameters: []string{"why"}, handle: a.deleteBook},

		{method: "GET", path: "/v1/routes", scope: tokens.Read, parameters: []string{"limit", "after"}, handle: a.listRoutes},
		{method: "GET", path: "/v1/routes/:service", scope: tokens.Read, handle: a.getRoute},
		{method: "PUT", path: "/v1/routes/:service", scope: tokens.Write, parameters: ofWrites, handle: a.putRoute},
		{method: "DELETE", path: "/v1/routes/:service", scope: tokens.Write, parameters: ofWrites, handle: a.deleteRoute},
		{method: "PUT", path: "/v1/routes/:service/weights", scope: tokens.Write, parameters: ofWrites, handle: a.putWeights},
		{method: "PUT", path: "/v1/routes/:service/active", scope: tokens.Write, parameters: ofWrites, handle: a.putActive},
		{method: "GET", path: "/v1/routes/:service/history", scope: tokens.Read, parameters: []string{"limit", "before"}, handle: a.history},
		{method: "POST", path: "/v1/routes/:service/rollback", scope: tokens.Write, parameters: ofWrites, handle: a.rollback},
		{method: "GET", path: "/v1/instances", scope: tokens.Read, parameters: []string{"limit", "after", "service"}, handle: a.listLabels},
		{method: "GET", path: "/v1/instances/:service/:id/labels", scope: tokens.Read, handle: a.getLabels},
		{method: "PUT", path: "/v1/instances/:service/:id/labels", scope: tokens.Write, parameters: ofWrites, handle: a.putLabels},
		{method: "DELETE", path: "/v1/instances/:service/:id/labels", scope: tokens.Write, parameters: ofWrites, handle: a.deleteLabels},
		{method: "GET", path: "/v1/instances/:service/:id/labels/history", scope: tokens.Read, parameters: []string{"limit", "before"}, handle: a.labelsHistory},
		{method: "POST", path: "/v1/explain", scope: tokens.Read, handle: a.explain},
		{method: "GET", path: "/v1/gateways", scope: tokens.Read, handle: a.listGateways},

		{method: "GET", path: "/v1/changes", scope: tokens.Read, parameters: ofFollowers, lenient: true, quiet: true, handle: a.changes},

		{method: "GET", path: "/healthz", lenient: true, quiet: true, handle: a.healthz},
		{method: "GET", path: "/readyz", lenient: true, quiet: true, handle: a.readyz},
		{method: "GET", path: "/metrics", lenient: true, quiet: true, handle: a.showMetrics},
		{method: "GET", path: "/openapi.yaml", scope: tokens.Read, handle: a.openapi},
	}
}

// New returns the interface. It is safe for concurrent use.
func New(o Options) http.Handler { return o.Draining.Wrap(newEngine(o)) }

func newEngine(o Options) *gin.Engine {
	a := &api{
		Options: o,
		hosts:   newHostPolicy(o.Hosts, o.Tokens != nil),
		origins: http.NewCrossOriginProtection(),
		metrics: newMetrics(o.Metrics, o.Feed),
	}
	if a.AllowLinkLocal {
		a.rules = []routing.Option{routing.AllowLinkLocal()}
	}
	if a.Draw == nil {
		a.Draw = func(sum int64) int64 { return 1 + rand.Int64N(sum) }
	}
	if a.Now == nil {
		a.Now = time.Now
	}
	if a.BodyTimeout == 0 {
		a.BodyTimeout = bodyTimeout
	}
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.HandleMethodNotAllowed = true
	e.RedirectTrailingSlash = false
	e.RedirectFixedPath = false
	e.UseEscapedPath = true // a %2F separates nothing
	e.UnescapePathValues = true
	e.ForwardedByClientIP = false
	_ = e.SetTrustedProxies(nil) // fails only for addresses that cannot be parsed

	e.Use(a.edge, failing(a.guard))
	e.NoRoute(failing(func(*gin.Context) error { return errNoPath }))
	e.NoMethod(failing(func(*gin.Context) error { return errMethod }))
	for _, o := range a.operations() {
		e.Handle(o.method, o.path, failing(a.admit(o)), failing(o.handle))
	}
	return e
}

// failing makes a gin handler of a function that returns its error; edge answers
// with it.
func failing(f func(*gin.Context) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := f(c); err != nil {
			_ = c.Error(err)
			c.Abort()
		}
	}
}

// admit lets pass who may do the operation, asked for as it can be.
func (a *api) admit(o operation) func(*gin.Context) error {
	return func(c *gin.Context) error {
		c.Set(quietKey, o.quiet)
		if o.scope != 0 {
			token, err := a.authenticate(c.Request)
			if err != nil {
				return err
			}
			c.Set(tokenKey, token)
			if !token.Allows(o.scope) {
				return a.notAllowed(token)
			}
		}
		return checkQuery(c.Request.URL.RawQuery, o)
	}
}

// The keys of what a request carries through its handlers.
const (
	tokenKey = "token"
	quietKey = "quiet"
)

// bodyTimeout is what a client has to send a body of a MiB.
const bodyTimeout = 30 * time.Second
