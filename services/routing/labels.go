package routing

import "net/netip"

// LabelMode says when a request's label and an instance's agree.
type LabelMode string

// The modes of a label rule.
const (
	LabelExact     LabelMode = "exact"     // both carry it, and they are equal
	LabelSymmetric LabelMode = "symmetric" // equal; absent equals absent
	LabelLenient   LabelMode = "lenient"   // either has none, or they are equal
)

// LabelFallback says what a label rule that leaves no instance does instead.
type LabelFallback string

// The fallbacks of a label rule.
const (
	LabelNone       LabelFallback = "none"       // nothing: no instance is left
	LabelUnlabelled LabelFallback = "unlabelled" // instances without the label
	LabelAny        LabelFallback = "any"        // the set that the rule was given
)

// LabelFilter is a compiled label rule. It is a plain value; do not change Guard.
type LabelFilter struct {
	Header   string // in canonical form (http.CanonicalHeaderKey)
	Label    string
	Mode     LabelMode
	Fallback LabelFallback
	Guard    []netip.Prefix // masked; empty: no guard
}

// Label is one key and value that an instance must carry.
type Label struct{ Key, Value string }

// Passes says whether an instance with that label value passes for a request with
// that one. A blank value counts as absent; values are compared byte by byte.
func (f *LabelFilter) Passes(request, instance string) bool {
	if isBlank(request) {
		request = ""
	}
	if isBlank(instance) {
		instance = ""
	}
	switch {
	case f.Mode == LabelLenient && (request == "" || instance == ""):
		return true
	case f.Mode == LabelExact && request == "":
		return false
	default:
		return request == instance
	}
}

// Admits says whether the guard lets a request with that label value reach an
// instance at that address. A request without the label reaches only addresses
// inside the guard; the zero Addr, an instance registered by name, is outside.
func (f *LabelFilter) Admits(request string, instance netip.Addr) bool {
	if len(f.Guard) == 0 || !isBlank(request) {
		return true
	}
	instance = instance.Unmap().WithZone("")
	for _, p := range f.Guard {
		if p.Contains(instance) {
			return true
		}
	}
	return false
}
