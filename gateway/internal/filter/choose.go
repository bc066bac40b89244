package filter

import (
	"net/http"

	"specialroutes.example/gateway/internal/balance"
	"specialroutes.example/gateway/internal/registry"
	"specialroutes.example/services/routing"
)

// choose picks the first target of the variant.
func choose(b *balance.Balancer, instances func() *registry.Snapshot) func(*Exchange) error {
	return func(ex *Exchange) error {
		ex.Selection = b.Select(balance.Want{
			Service:   ex.Route.Service,
			Route:     ex.Record,
			Variant:   ex.Decision.Variant,
			Instances: instances(),
			Header:    ex.Request.Header,
			Pinned:    ex.Decision.Kind == routing.KindOverride,
		})
		ex.Pick = ex.Selection.Next()
		switch {
		case ex.Pick == nil && ex.Decision.Kind == routing.KindOverride:
			return OverrideUnavailable(ex)
		case ex.Pick == nil:
			return NoInstance(ex)
		}
		return nil
	}
}

// NoInstance is the refusal of a request that no instance matched. It says what
// was asked for and what was left at each step.
func NoInstance(ex *Exchange) *Refusal {
	return &Refusal{Status: http.StatusServiceUnavailable, Code: "no_instance",
		Detail:  "no instance of " + ex.Route.Service + " can take the request",
		Members: unavailability(ex)}
}

// unavailability is what a client may know of a variant without instances.
func unavailability(ex *Exchange) map[string]any {
	return map[string]any{
		"service": ex.Route.Service,
		"variant": ex.Record.Variant(ex.Decision.Variant).Name,
		"labels":  labelsAskedFor(ex),
		"steps":   ex.Selection.Steps(),
	}
}

// labelsAskedFor are the labels that the request names, by the rules in force.
func labelsAskedFor(ex *Exchange) map[string]string {
	labels := make(map[string]string)
	for _, rule := range ex.Record.LabelRules() {
		if value := trimSpace(ex.Request.Header.Get(rule.Header)); value != "" {
			labels[rule.Label] = value
		}
	}
	return labels
}
