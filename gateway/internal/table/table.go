// Package table finds the route of a request: host and path prefix → service. A
// table is built once and never changes, so any number of requests may search it
// at the same time.
package table

import (
	"fmt"
	"net/http"
	"strings"

	"specialroutes.example/gateway/internal/config"
)

// Route is one entry of the table. It is immutable; do not change its slices.
type Route struct {
	Name             string // host and prefix, for logs: "shop.example/api/cart"
	Host             string // in lower case, without a port; "" is any
	Prefix           string // raw, without a slash at its end; "" is every path
	Service          string
	StripPrefix      bool
	PreserveHost     bool
	SensitiveHeaders []string // in canonical form
	Timeouts         config.Timeouts
}

// Below returns the part of a path below the prefix, which the path must have.
// It starts with "/".
func (r *Route) Below(path string) string {
	if rest := path[len(r.Prefix):]; rest != "" {
		return rest
	}
	return "/"
}

// Forwarded returns the path that the upstream is asked for: what is left after
// the prefix, or all of it where the prefix stays.
func (r *Route) Forwarded(path string) string {
	if r.StripPrefix {
		return r.Below(path)
	}
	return path
}

// Table is all routes of the gateway.
type Table struct {
	hosts   map[string]*prefixes
	anyHost *prefixes
	routes  []*Route
}

// New builds a table. It refuses a prefix that does not start with "/" and two
// routes with the same host and prefix.
func New(routes []config.Route) (*Table, error) {
	t := &Table{hosts: make(map[string]*prefixes), anyHost: newPrefixes()}
	for _, c := range routes {
		r := newRoute(c)
		if !strings.HasPrefix(c.Prefix, "/") {
			return nil, fmt.Errorf("the prefix %q does not start with /", c.Prefix)
		}
		if !t.prefixesOf(r.Host).add(r) {
			return nil, fmt.Errorf("two routes for %q", r.Name)
		}
		t.routes = append(t.routes, r)
	}
	return t, nil
}

func newRoute(c config.Route) *Route {
	r := &Route{
		Host:         strings.ToLower(strings.TrimSuffix(c.Host, ".")),
		Prefix:       strings.TrimRight(c.Prefix, "/"),
		Service:      c.Service,
		StripPrefix:  c.Strips(),
		PreserveHost: c.PreserveHost,
		Timeouts:     c.Timeouts,
	}
	r.Name = r.Host + r.Prefix
	if r.Prefix == "" {
		r.Name += "/"
	}
	for _, name := range c.SensitiveHeaders {
		r.SensitiveHeaders = append(r.SensitiveHeaders, http.CanonicalHeaderKey(name))
	}
	return r
}

func (t *Table) prefixesOf(host string) *prefixes {
	if host == "" {
		return t.anyHost
	}
	if t.hosts[host] == nil {
		t.hosts[host] = newPrefixes()
	}
	return t.hosts[host]
}

// Routes returns all routes in the order of the configuration. Do not change the
// slice.
func (t *Table) Routes() []*Route { return t.routes }

// Match returns the route of a raw path, nil when there is none. The longest
// prefix wins, and ends where a segment ends. Routes of the very host come before
// those of any host; host is a Host field's value, its case, its port and a dot at the
// end of its name are ignored.
func (t *Table) Match(host, path string) *Route {
	if len(t.hosts) > 0 {
		if p := t.hosts[strings.ToLower(strings.TrimSuffix(withoutPort(host), "."))]; p != nil {
			if r := p.longest(path); r != nil {
				return r
			}
		}
	}
	return t.anyHost.longest(path)
}

// withoutPort cuts the port off a Host field's value.
func withoutPort(host string) string {
	i := strings.LastIndexByte(host, ':')
	if i < 0 || i < strings.LastIndexByte(host, ']') {
		return host
	}
	return host[:i]
}
