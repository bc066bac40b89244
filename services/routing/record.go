// Package routing is the centre of SpecialRoutes: the route record, its
// validation, and the decision that follows from it. The gateway routes with it;
// specialroutes validates and explains with the same code, so the two cannot
// disagree. It does no I/O, reads no clock and draws no numbers: what it needs
// is handed in.
package routing

// Fallback names what happens to a variant's share while the variant is
// unavailable (Record.OnUnavailable).
const (
	OnUnavailableDefault = "default" // the default variant answers, visibly
	OnUnavailableFail    = "fail"    // the call fails
)

// Wildcard is the service name of the record that holds label rules and
// onUnavailable for services without a record of their own.
const Wildcard = "*"

// Limits of a record, as docs/routing.md states them.
const (
	MaxVariants   = 16
	MaxRules      = 64
	MaxLabelRules = 16
	MaxWeightSum  = 1<<31 - 1
)

// Record is a service's route record as it is written down: the JSON document of
// the admin API, the store and the change feed. A nil pointer, slice or map is an
// absent member; absent and empty differ, and writing a record that was read
// gives the members that were there. Validate says whether it may be used;
// Compile turns it into what Decide needs. Treat a record as a value: whoever
// changes one changes a Clone.
type Record struct {
	Service       string      `json:"service"`
	Active        *bool       `json:"active,omitzero"`
	Variants      []Variant   `json:"variants,omitzero"`
	Default       *string     `json:"default,omitzero"`
	Rules         []Rule      `json:"rules,omitzero"`
	Sticky        *Sticky     `json:"sticky,omitzero"`
	OnUnavailable *string     `json:"onUnavailable,omitzero"`
	LabelRules    []LabelRule `json:"labelRules,omitzero"`
	Owner         *string     `json:"owner,omitzero"`
	Ends          *string     `json:"ends,omitzero"` // a date, YYYY-MM-DD
}

// Variant is one of the competing versions of a service. With neither Endpoint,
// Service nor Selector it is the service's own instances that no other variant's
// selector claims.
type Variant struct {
	Name     string            `json:"name"`
	Weight   *int64            `json:"weight,omitzero"` // its part of the sum of weights
	Endpoint *string           `json:"endpoint,omitzero"`
	Service  *string           `json:"service,omitzero"`
	Selector map[string]string `json:"selector,omitzero"`
}

// Rule leads requests that match all of Match to one variant, or to a split of
// their own. Exactly one of Variant and Weights is set.
type Rule struct {
	Name    string           `json:"name"`
	Match   []Match          `json:"match"`
	Variant *string          `json:"variant,omitzero"`
	Weights map[string]int64 `json:"weights,omitzero"`
}

// What a Match reads (Match.On).
const (
	OnHeader = "header"
	OnCookie = "cookie"
	OnQuery  = "query"
	OnPath   = "path"
	OnMethod = "method"
	OnClient = "client"
)

// Match is one condition on a request. Exactly one of the tests In, Prefix,
// Regex, CIDR and Present is set. Name is the header, cookie or parameter, and
// absent for the other kinds.
type Match struct {
	On      string   `json:"on"`
	Name    *string  `json:"name,omitzero"`
	In      []string `json:"in,omitzero"`
	Prefix  *string  `json:"prefix,omitzero"`
	Regex   *string  `json:"regex,omitzero"` // RE2, over the whole value
	CIDR    *string  `json:"cidr,omitzero"`
	Present *bool    `json:"present,omitzero"`
}

// Where a sticky key comes from (Sticky.By).
const (
	ByHeader        = "header"
	ByCookie        = "cookie"
	ByQuery         = "query"
	ByClient        = "client"
	ByGatewayCookie = "gateway-cookie"
)

// What happens to a request without a key (Sticky.Missing).
const (
	MissingDraw    = "draw"    // it draws; the same as an absent member
	MissingDefault = "default" // the default variant answers
)

// Sticky makes the split follow a key instead of a draw.
type Sticky struct {
	By      string  `json:"by"`
	Name    *string `json:"name,omitzero"`
	Salt    *string `json:"salt,omitzero"` // absent is the same as empty
	Missing *string `json:"missing,omitzero"`
	MaxAge  *int64  `json:"maxAge,omitzero"` // seconds, of the gateway's cookie
}

// LabelRule narrows a variant's instances by a label that the request names.
type LabelRule struct {
	Header   string   `json:"header"`
	Label    string   `json:"label"`
	Mode     string   `json:"mode"`              // a LabelMode
	Fallback *string  `json:"fallback,omitzero"` // a LabelFallback; absent is none
	Guard    []string `json:"guard,omitzero"`    // CIDRs
}
