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
		tr.taken(stepRecord, "the service has no record: its own instances")
		return Decision{Kind: KindNoRecord}
	}
	if !rt.active {
		tr.taken(stepActive, "the record is switched off: the default variant")
		return Decision{Variant: rt.def, Kind: KindInactive}
	}
	tr.passed(stepActive, "the record is active")
	if req.Override != "" {
		if i, ok := rt.VariantNamed(req.Override); ok {
			tr.taken(stepOverride, "a verified override asks for the variant")
			return Decision{Variant: i, Kind: KindOverride}
		}
	}
	tr.passedOverride(req)
	if len(rt.rules) == 0 && rt.sticky == nil {
		return Decision{Variant: rt.drawn(&rt.split, draw, tr), Kind: KindDraw}
	}
	if len(rt.rules) == 0 {
		return rt.decideByKey(req, draw, tr)
	}
	return rt.decideByRules(req, draw, tr)
}

// decideByKey is the rest of the decision for a record without rules: it reads at
// most one thing.
func (rt *Route) decideByKey(req *Request, draw func(sum int64) int64, tr *trace) Decision {
	var header [1]headerLines
	var cookie, query [1]field
	r := reading{req: req, names: &rt.reads, headers: header[:], cookies: cookie[:], queries: query[:]}
	variant, kind, needsKey := rt.divide(&rt.split, &r, draw, tr)
	return Decision{Variant: variant, Kind: kind, NeedsKey: needsKey}
}

// decideByRules is the rest of the decision for a record with rules. The memory
// for what it reads is on its own stack, so that other records do not pay for it.
func (rt *Route) decideByRules(req *Request, draw func(sum int64) int64, tr *trace) Decision {
	var mem scratch
	r := reading{
		req: req, names: &rt.reads,
		headers: room(mem.headers[:], len(rt.reads.headers)),
		cookies: room(mem.cookies[:], len(rt.reads.cookies)),
		queries: room(mem.queries[:], len(rt.reads.queries)),
	}
	for i := range rt.rules {
		u := &rt.rules[i]
		if failed := u.firstFailing(&r); failed >= 0 {
			tr.passedRule(u, failed, &r)
			continue
		}
		d := Decision{Variant: u.variant, Kind: KindRule, Rule: u.name}
		tr.takenRule(u)
		if u.split != nil {
			d.Variant, _, d.NeedsKey = rt.divide(u.split, &r, draw, tr)
		}
		return d
	}
	variant, kind, needsKey := rt.divide(&rt.split, &r, draw, tr)
	return Decision{Variant: variant, Kind: kind, NeedsKey: needsKey}
}

// room returns n elements, of few when it has so many.
func room[T any](few []T, n int) []T {
	if n > len(few) {
		return make([]T, n)
	}
	return few[:n]
}

// divide chooses a variant of s by the request's key, or by the draw when the
// record is not sticky.
func (rt *Route) divide(s *split, r *reading, draw func(sum int64) int64, tr *trace) (variant int, kind Kind, needsKey bool) {
	if rt.sticky == nil {
		return rt.drawn(s, draw, tr), KindDraw, false
	}
	var buf keyBuffer
	b, ok := rt.sticky.appendKey(append(buf[:0], rt.keyPrefix...), r)
	needsKey = !ok && rt.sticky.from == fromGatewayCookie
	switch {
	case ok:
		variant = s.choose(b, rt.targets)
		tr.takenKey(rt.sticky, rt.targets[variant].Name)
		return variant, KindSticky, false
	case rt.sticky.missingDefault:
		tr.takenMissing(rt.sticky)
		return rt.def, KindSticky, needsKey
	default:
		tr.passedKey(rt.sticky)
		return rt.drawn(s, draw, tr), KindDraw, needsKey
	}
}

// drawn chooses a variant of s by the draw.
func (rt *Route) drawn(s *split, draw func(sum int64) int64, tr *trace) int {
	v := draw(s.sum)
	tr.takenDraw(v, s.sum)
	return s.at(v)
}
