// Package lane carries what belongs to one client's request through a service:
// the correlation ID, the estate's headers, the labels that routing reads, and a
// tracer's context. A middleware takes them from the incoming request into its
// context, and a RoundTripper puts them on every outgoing one:
//
//	handler = lane.Middleware(lane.Options{Headers: []string{"zone"}})(handler)
//	client := &http.Client{Transport: &lane.Transport{}}
//
// The values live in the context and nowhere else. They reach other goroutines
// with it, and nothing is left behind when the request is over. Work that
// outlives the request takes context.WithoutCancel of its context.
package lane

import (
	"context"
	"net/http"
	"slices"
)

// The estate's headers, which every service passes on.
const (
	CorrelationID  = "Tmx-Correlation-Id" // one ID across all services for one client request
	AuthToken      = "Tmx-Auth-Token"
	Authorization  = "Authorization"
	UserID         = "Tmx-User-Id"
	OrganizationID = "Tmx-Org-Id"
)

// EstateHeaders returns the names that are always carried: the estate's own, and
// those of a tracer's context, so that a service without a tracer does not break
// its callers' traces. The slice is the caller's.
func EstateHeaders() []string {
	return []string{
		CorrelationID, AuthToken, Authorization, UserID, OrganizationID,
		"Traceparent", "Tracestate", "Baggage",
	}
}

// Values are the headers that are carried. They never change, so they may be used
// by many goroutines. The zero value is empty.
type Values struct{ fields []field }

type field struct {
	name  string // canonical
	lines []string
}

// Get returns the first line of a header, "" when it is not carried. Case of the
// name does not matter.
func (v Values) Get(name string) string {
	name = http.CanonicalHeaderKey(name)
	for _, f := range v.fields {
		if f.name == name {
			return f.lines[0]
		}
	}
	return ""
}

// addTo puts each header on h that h does not have. A header that is present in
// h without a line stays absent on the wire: so a caller keeps one back.
func (v Values) addTo(h http.Header) {
	for _, f := range v.fields {
		if _, present := h[f.name]; !present {
			h[f.name] = slices.Clone(f.lines)
		}
	}
}

// From copies the estate's headers and those of the further names out of h, every
// line as it is.
func From(h http.Header, names ...string) Values {
	return from(h, canonical(names))
}

// canonical returns the names to carry, each once.
func canonical(further []string) []string {
	var names []string
	for _, n := range slices.Concat(EstateHeaders(), further) {
		if n = http.CanonicalHeaderKey(n); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

func from(h http.Header, names []string) Values {
	var v Values
	for _, n := range names {
		if lines := h[n]; len(lines) > 0 {
			v.fields = append(v.fields, field{name: n, lines: slices.Clone(lines)})
		}
	}
	return v
}

// contextKey is the key of Values in a context.
type contextKey struct{}

// NewContext returns a context that carries v, for work that no request has begun,
// as reading from a queue. Values that ctx carried are replaced, not joined.
func NewContext(ctx context.Context, v Values) context.Context {
	return context.WithValue(ctx, contextKey{}, v)
}

// FromContext returns what ctx carries, empty if that is nothing.
func FromContext(ctx context.Context) Values {
	v, _ := ctx.Value(contextKey{}).(Values)
	return v
}
