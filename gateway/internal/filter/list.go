package filter

import (
	"net/netip"
	"time"

	"specialroutes.example/gateway/internal/balance"
	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/registry"
	"specialroutes.example/gateway/internal/table"
	"specialroutes.example/services/override"
	"specialroutes.example/services/routing"
)

// Records is the route records of one moment.
type Records interface {
	// Route returns a service's compiled record; nil is none and decides as well.
	Route(service string) *routing.Route

	// RoutingHeaders returns the headers that label rules of any service read, in
	// canonical form.
	RoutingHeaders() []string
}

// Settings are what the filters need. All of it is immutable or safe for
// concurrent use.
type Settings struct {
	Table     *table.Table
	Records   func() Records            // the snapshot in force
	Instances func() *registry.Snapshot // the snapshot in force
	Balancer  *balance.Balancer

	Draw  func(sum int64) int64 // a number of 1..sum, each equally likely
	NewID func() string         // a new correlation ID

	NewKey       func() string         // a new key for the gateway's cookie; nil: none is issued
	OverrideKeys func() *override.Keys // those in force; nil, or of nothing: no override is valid
	Now          func() time.Time      // nil is time.Now; overrides expire by it

	TrustedProxies []netip.Prefix
	Limits         config.Limits
	ClientLabels   config.ClientLabels
	ExposeRoute    bool
}

// Standard returns the gateway's filters. This is the one list: a new filter is a
// file of its own and a line here.
func Standard(s Settings) *Chain {
	if s.Now == nil {
		s.Now = time.Now
	}
	return NewChain(
		Pre(0, "hop-by-hop", hopByHop),
		Pre(1, "correlation", correlation(s.NewID)),
		Pre(2, "target", target),
		Pre(3, "match", match(s.Table, s.Records)),
		Pre(4, "limits", limits(s.Limits)),
		Pre(4, "expect", expect),
		Pre(5, "client", client(s.TrustedProxies)),
		Pre(6, "owned", owned),
		Pre(7, "client-labels", clientLabels(s.ClientLabels, s.Records)),
		Pre(8, "override", overrides(s.OverrideKeys, s.Now)),

		Route(1, "special-route", specialRoute(s.Draw, s.NewKey)),
		Route(2, "choose", choose(s.Balancer, s.Instances)),
		Route(3, "sensitive", sensitive),
		Route(4, "forwarded", forwarded),
		Route(5, "route-headers", routeHeaders),

		Post(0, "sensitive", sensitiveAnswer),
		Post(1, "response", response),
		Post(2, "expose", expose(s.ExposeRoute)),
		Post(3, "vary", vary),
		Post(4, "override-private", overridePrivate),
		Post(5, "sticky-cookie", stickyCookie),
	)
}
