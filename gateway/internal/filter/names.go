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

// nameSet is a set of field names in canonical form. It is asked for every field of
// every request, and most are in no set: their length and first letter say so
// without a search.
type nameSet struct {
	names           map[string]struct{}
	lengths, firsts uint64 // bit n: of a name with n bytes; of one that begins with '@' + n
}

func names(list ...string) nameSet {
	s := nameSet{names: make(map[string]struct{}, len(list))}
	for _, n := range list {
		n = http.CanonicalHeaderKey(n)
		s.names[n] = struct{}{}
		s.lengths |= 1 << len(n)
		s.firsts |= 1 << (n[0] - '@')
	}
	return s
}

func (s *nameSet) has(name string) bool {
	if name == "" || s.lengths>>len(name)&1 == 0 || s.firsts>>(name[0]-'@')&1 == 0 {
		return false
	}
	_, ok := s.names[name]
	return ok
}

// plainName returns the field name that a careless reader takes name for: CGI and
// what descends from it read X_Forwarded_For as X-Forwarded-For. It returns name
// itself where nothing can be mistaken.
func plainName(name string) string {
	if isPlain(name) {
		return name
	}
	return http.CanonicalHeaderKey(strings.Map(func(r rune) rune {
		if oddSeparator(r) {
			return '-'
		}
		return r
	}, name))
}

// isPlain reports whether name holds letters, digits and hyphens alone.
func isPlain(name string) bool {
	for i := range len(name) {
		if oddSeparator(rune(name[i])) {
			return false
		}
	}
	return true
}

// oddSeparator reports whether r is neither a letter, a digit nor the hyphen.
func oddSeparator(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-')
}
