package filter

import (
	"net/http"
	"net/netip"

	"specialroutes.example/gateway/internal/accesslog"
	"specialroutes.example/gateway/internal/balance"
	"specialroutes.example/gateway/internal/rawpath"
	"specialroutes.example/gateway/internal/table"
	"specialroutes.example/services/routing"
)

// Exchange is one request's state on its way through the chain. It belongs to the
// request's goroutine.
type Exchange struct {
	// Request is what came from the client. The filters edit its Header in place;
	// after them it holds what goes upstream.
	Request *http.Request

	Target  rawpath.Target // the request-target, taken apart
	Peer    netip.Addr     // who the connection is with
	Trusted bool           // Peer is one of the trusted proxies
	Client  netip.Addr     // the right-most untrusted address; zero: not known

	Route    *table.Route   // nil until the table has been asked
	Record   *routing.Route // of Route.Service; nil is none
	Override string         // the variant that a verified override wants; "" when none does
	FreshKey string         // the key that was issued for a sticky decision; "" when none was
	Decision routing.Decision

	// Connection is what was found out about the client's connection with earlier
	// requests. Nil: the request is looked at alone.
	Connection *Connection

	labels []string // the routing headers that the client may not send; nil: it may
	peer   string   // Peer as text, "unknown" where it is not known

	values [16]string // of fields that the filters set, without an allocation for each
	valued int

	Selection *balance.Selection // the targets to try
	Pick      *balance.Pick      // the one in use; nil before there is one

	// Answer is the head of the answer while the post filters run.
	Answer http.Header

	// Entry is what will be logged. Each step fills in what it knows.
	Entry accesslog.Entry
}

// Connection is what the filters find out about a client's connection and keep for the
// requests that follow on it. It belongs to one exchange at a time, and to one chain.
// The zero value knows nothing.
type Connection struct {
	remote  string // the peer's address with its port
	address netip.Addr
	peer    string
	trusted bool

	host    string // of the last request; it is valid
	element string // of Forwarded, for that host; "" is none yet
}

// named reports whether an earlier request has named this host, which is valid then.
func (c *Connection) named(host string) bool { return c != nil && c.element != "" && c.host == host }

// line returns a value as the only line of a field. It is valid as long as the
// exchange.
func (ex *Exchange) line(value string) []string {
	if ex.valued == len(ex.values) {
		return []string{value}
	}
	ex.values[ex.valued] = value
	ex.valued++
	return ex.values[ex.valued-1 : ex.valued : ex.valued]
}

// Path returns the raw path that the upstream is asked for, without the target's
// base.
func (ex *Exchange) Path() string { return ex.Route.Forwarded(ex.Target.Path) }

// Use takes a target into use: it is logged, and h, which goes to it, names its
// variant.
func (ex *Exchange) Use(p *balance.Pick, h http.Header) {
	ex.Pick = p
	ex.Entry.Variant, ex.Entry.Instance = p.Variant.Name, p.Name
	if variant, why := ex.Selection.GaveWay(); variant != "" {
		ex.Entry.Fallback = "wanted=" + variant + "; reason=" + string(why)
	}
	h[RouteVariant] = ex.line(p.Variant.Name)
}

// Refusal is an answer of the gateway's own: an error whose text the client may
// read.
type Refusal struct {
	Status  int
	Code    string // stable; docs/forwarding.md lists all
	Detail  string
	Members map[string]any // further members of the problem document
}

// Error returns the code and the detail.
func (r *Refusal) Error() string { return r.Code + ": " + r.Detail }
