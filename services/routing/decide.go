package routing

// Kind is the step of the decision order that chose the variant.
type Kind uint8

// The kinds, in the order in which the steps are tried.
const (
	KindNoRecord Kind = iota // the service has no record
	KindInactive             // the record is switched off
	KindOverride             // a verified override asks for it
	KindRule                 // a rule holds
	KindSticky               // the request's key
	KindDraw                 // the draw
)

var kindTexts = [...]string{"no-record", "inactive", "override", "rule", "sticky", "draw"}

// String returns the kind's word in X-Route-Reason, for KindRule without the name.
func (k Kind) String() string { return kindTexts[k] }

// Decision is the outcome of Decide: a variant, and why. It is a plain value.
type Decision struct {
	Variant int    // index for Route.Variant
	Kind    Kind   // what chose it
	Rule    string // the rule's name when Kind is KindRule, else ""

	// NeedsKey says that the split sticks by the gateway's cookie and that the
	// request has none: the gateway issues a key, calls again with it as
	// Request.FreshKey, and sets the cookie. Who cannot issue one takes the
	// decision as it is, which is the record's answer to a missing key.
	NeedsKey bool
}

// Reason returns the text of X-Route-Reason: no-record, inactive, override,
// rule:NAME, sticky or draw.
func (d Decision) Reason() string {
	if d.Kind == KindRule {
		return "rule:" + d.Rule
	}
	return d.Kind.String()
}

// Decide chooses the variant for a request: active, override, rules in order,
// sticky, draw. It is a pure function of the route, the request and the draw,
// which gives a number from 1 to sum, each equally likely; it is asked at most
// once. Decide allocates nothing unless a query value that the record reads is
// percent-encoded.
func (rt *Route) Decide(req *Request, draw func(sum int64) int64) Decision {
	return rt.decide(req, draw, nil)
}

// decide is Decide and Explain in one, so that the two cannot differ. tr is nil
// for Decide.
func (rt *Route) decide(req *Request, draw func(sum int64) int64, tr *trace) Decision {
	if rt == nil || !rt.hasRecord {
		return Decision{Kind: KindNoRecord}
	}
	if !rt.active {
		return Decision{Variant: rt.def, Kind: KindInactive}
	}
	if req.Override != "" {
		if i, ok := rt.VariantNamed(req.Override); ok {
			return Decision{Variant: i, Kind: KindOverride}
		}
	}
	if len(rt.rules) == 0 && rt.sticky == nil {
		return Decision{Variant: rt.split.at(draw(rt.split.sum)), Kind: KindDraw}
	}
	return rt.decideByRequest(req, draw, tr)
}

// decideByRequest is the part of the decision that reads the request.
func (rt *Route) decideByRequest(req *Request, draw func(sum int64) int64, tr *trace) Decision {
	return Decision{Variant: rt.split.at(draw(rt.split.sum)), Kind: KindDraw}
}
