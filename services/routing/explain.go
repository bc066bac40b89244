package routing

import (
	"fmt"
	"net/netip"
)

// Explanation is a decision with the way to it.
type Explanation struct {
	Decision Decision `json:"-"`
	Variant  string   `json:"variant"` // the chosen variant's name
	Reason   string   `json:"reason"`  // the text of X-Route-Reason
	Steps    []Step   `json:"steps"`   // in the order in which they were tried
}

// Step is one step of a decision: what was tried, how it ended and why.
type Step struct {
	Step   string `json:"step"`           // request, record, active, override, rule, sticky or draw
	Rule   string `json:"rule,omitempty"` // the rule's name, when the step is one
	Result string `json:"result"`         // StepTaken or StepPassed
	Why    string `json:"why"`            // a plain sentence
}

// The results of a step.
const (
	StepTaken  = "taken"  // it led to the variant, alone or with the steps after it
	StepPassed = "passed" // it did not, and the next one was tried
)

const (
	stepRequest  = "request"
	stepRecord   = "record"
	stepActive   = "active"
	stepOverride = "override"
	stepRule     = "rule"
	stepSticky   = "sticky"
	stepDraw     = "draw"
)

// Explain decides as Decide does, by the same code over the same compiled rules,
// and returns the steps too. It is for people: it allocates.
func (rt *Route) Explain(req *Request, draw func(sum int64) int64) Explanation {
	var tr trace
	d := rt.decide(req, draw, &tr)
	return Explanation{Decision: d, Variant: rt.Variant(d.Variant).Name, Reason: d.Reason(), Steps: tr.steps}
}

// ExplainRefused is the explanation of a request that the gateway refuses: no variant,
// and the reason "refused".
func ExplainRefused(r *Refused) Explanation {
	return Explanation{Reason: "refused", Steps: []Step{{
		Step: stepRequest, Result: StepTaken,
		Why: fmt.Sprintf("the gateway answers %d (%s): %s", r.Status, r.Code, r.Detail),
	}}}
}

// trace collects the steps of a decision. All methods may be called on a nil
// *trace, and then cost nothing: that is how Decide runs.
type trace struct{ steps []Step }

func (tr *trace) add(step, rule, result, why string) {
	tr.steps = append(tr.steps, Step{Step: step, Rule: rule, Result: result, Why: why})
}

func (tr *trace) taken(step, why string) {
	if tr != nil {
		tr.add(step, "", StepTaken, why)
	}
}

func (tr *trace) passed(step, why string) {
	if tr != nil {
		tr.add(step, "", StepPassed, why)
	}
}

func (tr *trace) passedOverride(req *Request) {
	if tr == nil {
		return
	}
	why := "the request carries no verified override for this service"
	if req.Override != "" {
		why = fmt.Sprintf("the override asks for %q, which is not a variant of the record", req.Override)
	}
	tr.add(stepOverride, "", StepPassed, why)
}

func (tr *trace) passedRule(u *rule, failed int, r *reading) {
	if tr != nil {
		tr.add(stepRule, u.name, StepPassed, fmt.Sprintf("match %d does not hold: %s", failed, u.matches[failed].seen(r)))
	}
}

func (tr *trace) takenRule(u *rule) {
	if tr == nil {
		return
	}
	why := "all matches hold: the rule's variant"
	if u.split != nil {
		why = "all matches hold: the rule's own weights"
	}
	tr.add(stepRule, u.name, StepTaken, why)
}

func (tr *trace) takenKey(k *stickyKey, variant string) {
	if tr != nil {
		tr.add(stepSticky, "", StepTaken, fmt.Sprintf("the key of %s gives variant %s the smallest score", k.origin(), variant))
	}
}

func (tr *trace) takenMissing(k *stickyKey) {
	if tr != nil {
		tr.add(stepSticky, "", StepTaken, "no key of "+k.origin()+" (missing, empty or over 512 bytes): the default variant")
	}
}

func (tr *trace) passedKey(k *stickyKey) {
	if tr != nil {
		tr.add(stepSticky, "", StepPassed, "no key of "+k.origin()+" (missing, empty or over 512 bytes): the request draws")
	}
}

func (tr *trace) takenDraw(v, sum int64) {
	if tr != nil {
		tr.add(stepDraw, "", StepTaken, fmt.Sprintf("drew %d of 1 to %d", v, sum))
	}
}

// origin names where the key comes from.
func (k *stickyKey) origin() string {
	switch k.from {
	case fromHeader:
		return "header " + k.name
	case fromCookie, fromGatewayCookie:
		return "cookie " + k.name
	case fromQuery:
		return "parameter " + k.name
	default:
		return "the client's address"
	}
}

// seen names what a match has looked at.
func (m *matcher) seen(r *reading) string {
	switch m.from {
	case fromHeader:
		return describe("header", r.names.headers[m.slot], r.header(m.slot)...)
	case fromCookie:
		return describeField("cookie", r.names.cookies[m.slot], r.cookie(m.slot))
	case fromQuery:
		return describeField("parameter", r.names.queries[m.slot], r.query(m.slot))
	case fromPath:
		return describe("path", "", r.req.Path)
	case fromMethod:
		return describe("method", "", r.req.Method)
	default:
		return describeClient(r.client())
	}
}

func describeField(kind, name string, f field) string {
	if !f.there {
		return describe(kind, name)
	}
	return describe(kind, name, f.text)
}

// describe names a value, cut to a length that a person reads.
func describe(kind, name string, values ...string) string {
	if name != "" {
		kind += " " + name
	}
	switch len(values) {
	case 0:
		return kind + " is absent"
	case 1:
		return fmt.Sprintf("%s is %.200q", kind, values[0])
	default:
		return fmt.Sprintf("%s has %d lines, the first %.200q", kind, len(values), values[0])
	}
}

func describeClient(a netip.Addr) string {
	if !a.IsValid() {
		return "the client's address is not known"
	}
	return "the client's address is " + a.String()
}
