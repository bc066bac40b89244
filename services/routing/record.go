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

// Record is a service's route record as it is written down: the JSON document of
// the admin API, the store and the change feed. A pointer is nil where the member
// is absent, because absent and empty differ. Validate says whether it may be
// used; Compile turns it into what Decide needs.
type Record struct {
	Service       string       `json:"service"`
	Active        *bool        `json:"active,omitempty"`
	Variants      []Variant    `json:"variants,omitempty"`
	Default       *string      `json:"default,omitempty"`
	Rules         []Rule       `json:"rules,omitempty"`
	Sticky        *Sticky      `json:"sticky,omitempty"`
	OnUnavailable *string      `json:"onUnavailable,omitempty"`
	LabelRules    *[]LabelRule `json:"labelRules,omitempty"`
	Owner         *string      `json:"owner,omitempty"`
	Ends          *string      `json:"ends,omitempty"` // a date, YYYY-MM-DD
}

// Variant is one of the competing versions of a service. With neither Endpoint,
// Service nor Selector it is the service's own instances that no other variant's
// selector claims.
type Variant struct {
	Name     string            `json:"name"`
	Weight   *int64            `json:"weight,omitempty"` // its part of the sum of weights
	Endpoint *string           `json:"endpoint,omitempty"`
	Service  *string           `json:"service,omitempty"`
	Selector map[string]string `json:"selector,omitempty"`
}

// Rule leads requests that match all of Match to one variant, or to a split of
// their own.
type Rule struct {
	Name    string           `json:"name"`
	Match   []Match          `json:"match"`
	Variant *string          `json:"variant,omitempty"`
	Weights map[string]int64 `json:"weights,omitempty"`
}

// Match is one condition on a request. Exactly one of the tests In, Prefix,
// Regex, CIDR and Present is set.
type Match struct {
	On      string    `json:"on"` // header, cookie, query, path, method or client
	Name    *string   `json:"name,omitempty"`
	In      *[]string `json:"in,omitempty"`
	Prefix  *string   `json:"prefix,omitempty"`
	Regex   *string   `json:"regex,omitempty"` // RE2, over the whole value
	CIDR    *string   `json:"cidr,omitempty"`
	Present *bool     `json:"present,omitempty"`
}

// Sticky makes the split follow a key instead of a draw.
type Sticky struct {
	By      string  `json:"by"` // header, cookie, query, client or gateway-cookie
	Name    *string `json:"name,omitempty"`
	Salt    string  `json:"salt,omitempty"`
	Missing *string `json:"missing,omitempty"` // draw or default
	MaxAge  *int64  `json:"maxAge,omitempty"`  // seconds, of the gateway's cookie
}

// LabelRule narrows a variant's instances by a label that the request names.
type LabelRule struct {
	Header   string   `json:"header"`
	Label    string   `json:"label"`
	Mode     string   `json:"mode"`               // exact, symmetric or lenient
	Fallback *string  `json:"fallback,omitempty"` // none, unlabelled or any
	Guard    []string `json:"guard,omitempty"`    // CIDRs
}
