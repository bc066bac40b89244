package routing

// Step is one step of a decision: what was tried, how it ended and why.
type Step struct {
	Step   string `json:"step"`           // record, active, override, rule, sticky or draw
	Name   string `json:"name,omitempty"` // the rule's
	Result string `json:"result"`         // taken, passed or off
	Reason string `json:"reason"`         // a plain sentence
}

// The results of a step.
const (
	StepTaken  = "taken"  // it chose the variant; the last step
	StepPassed = "passed" // it did not, and the next one was tried
)

// Explanation is a decision with the way to it.
type Explanation struct {
	Decision
	Steps []Step
}

// trace collects the steps of a decision.
type trace struct{ steps []Step }

// Explain decides as Decide does, by the same code, and returns the steps too.
func (rt *Route) Explain(req *Request, draw func(sum int64) int64) Explanation {
	var tr trace
	d := rt.decide(req, draw, &tr)
	return Explanation{Decision: d, Steps: tr.steps}
}
