package filter

import (
	"net/http"
	"strings"
)

// Names of fields, in canonical form.
const (
	CorrelationID   = "Tmx-Correlation-Id"
	RouteVariant    = "X-Route-Variant"
	RouteReason     = "X-Route-Reason"
	RouteFallback   = "X-Route-Fallback"
	RouteOverride   = "Route-Override"
	OverrideInvalid = "X-Route-Override-Invalid"
	forwardedField  = "Forwarded"
	forwardedFor    = "X-Forwarded-For"
	forwardedHost   = "X-Forwarded-Host"
	forwardedPort   = "X-Forwarded-Port"
	forwardedProto  = "X-Forwarded-Proto"
	forwardedPrefix = "X-Forwarded-Prefix"
	realIP          = "X-Real-Ip"

	forwardedFamily = "X-Forwarded-"

	overrideCookie = "route-override"
)

// nameSet is a set of field names in canonical form.
type nameSet map[string]struct{}

func names(list ...string) nameSet {
	s := make(nameSet, len(list))
	for _, n := range list {
		s[http.CanonicalHeaderKey(n)] = struct{}{}
	}
	return s
}

func (s nameSet) has(name string) bool { _, ok := s[name]; return ok }

// plainName returns the field name that a careless reader takes name for: CGI and
// what descends from it read X_Forwarded_For as X-Forwarded-For. It returns name
// itself where nothing can be mistaken.
func plainName(name string) string {
	if strings.IndexFunc(name, oddSeparator) < 0 {
		return name
	}
	return http.CanonicalHeaderKey(strings.Map(func(r rune) rune {
		if oddSeparator(r) {
			return '-'
		}
		return r
	}, name))
}

// oddSeparator reports whether r is neither a letter, a digit nor the hyphen.
func oddSeparator(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-')
}
