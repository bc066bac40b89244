package balance

import (
	"time"

	"specialroutes.example/services/routing"
)

// reason says why nothing could be picked from the wanted variant.
func (s *Selection) reason(now time.Time) Reason {
	if s.connects[wanted] > 0 {
		return Connect
	}
	t := s.want.Route.Variant(s.want.Variant)
	var candidates []*candidate
	if t.URL != nil {
		candidates = []*candidate{s.balancer.endpoint(t)}
	} else {
		candidates = s.set().candidates
		if _, m := s.balancer.pool(&s.want, t); len(m.candidates) == 0 {
			return NoInstances
		}
	}
	if len(candidates) == 0 {
		return Labels
	}
	for _, c := range candidates {
		if c.circuit.state(now) == tripped {
			return Tripped
		}
	}
	return Limit
}

// GaveWay returns the wanted variant's name and why the request's last target is
// not simply one of its available instances; "" and "" when nothing gave way.
func (s *Selection) GaveWay() (variant string, why Reason) {
	switch {
	case s.last == nil:
		return "", ""
	case s.last.stage != wanted:
		why = s.why
	case s.sets[wanted] != nil && s.sets[wanted].relaxed:
		why = Labels
	case s.spread:
		why = Zones
	default:
		return "", ""
	}
	return s.want.Route.Variant(s.want.Variant).Name, why
}

// ConnectFailed reports whether a connect failed on the way.
func (s *Selection) ConnectFailed() bool {
	return s.connects[wanted]+s.connects[fallback]+s.connects[anyway] > 0
}

// Step is one step on the way from a variant to its targets.
type Step struct {
	Variant string `json:"variant"`
	Step    string `json:"step"`
	Left    int    `json:"left"` // targets left after it
}

// Steps tells what was left at each step of the wanted variant, and of the
// default variant where that was asked too. It is for errors and costs what it
// costs.
func (s *Selection) Steps() []Step {
	now := s.balancer.options.Now()
	rt := s.want.Route
	steps := s.stepsOf(now, rt.Variant(s.want.Variant))
	if d := rt.DefaultVariant(); d != s.want.Variant && !s.want.Pinned && rt.OnUnavailable() == routing.OnUnavailableDefault {
		steps = append(steps, s.stepsOf(now, rt.Variant(d))...)
	}
	return steps
}

func (s *Selection) stepsOf(now time.Time, t *routing.Target) []Step {
	if t.URL != nil {
		return []Step{{t.Name, "endpoint", 1}, {t.Name, "availability", s.count(now, []*candidate{s.balancer.endpoint(t)})}}
	}
	_, m := s.balancer.pool(&s.want, t)
	steps := []Step{
		{t.Name, "instances", len(s.want.Instances.Instances(registered(&s.want, t)))},
		{t.Name, "selector", len(m.candidates)},
	}
	set := s.balancer.set(&s.want, t, s.values)
	for i, left := range set.left {
		steps = append(steps, Step{t.Name, "label " + s.want.Route.LabelRules()[i].Label, left})
	}
	return append(steps, Step{t.Name, "availability", s.count(now, set.candidates)})
}

func (s *Selection) count(now time.Time, candidates []*candidate) int {
	n := 0
	for _, c := range candidates {
		if s.balancer.available(now, c) {
			n++
		}
	}
	return n
}
