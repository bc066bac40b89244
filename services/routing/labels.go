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
