package balance

import (
	"strings"

	"specialroutes.example/gateway/internal/registry"
	"specialroutes.example/services/routing"
)

// belongs reports whether an instance is one of the variant's: it carries the
// selector's labels, and no other variant's selector claims it.
func belongs(t *routing.Target, i *registry.Instance) bool {
	if !carries(i, t.Selector) {
		return false
	}
	for _, other := range t.Except {
		if carries(i, other) {
			return false
		}
	}
	return true
}

func carries(i *registry.Instance, labels []routing.Label) bool {
	for _, l := range labels {
		if i.Labels[l.Key] != l.Value {
			return false
		}
	}
	return true
}

// filterKey names what belongs selects by, the same text for the same selection
// whatever record it stands in. It is "" for a service's whole set.
func filterKey(t *routing.Target) string {
	if len(t.Selector) == 0 && len(t.Except) == 0 {
		return ""
	}
	var b strings.Builder
	writeLabels(&b, t.Selector)
	for _, other := range t.Except {
		b.WriteString("!")
		writeLabels(&b, other)
	}
	return b.String()
}

func writeLabels(b *strings.Builder, labels []routing.Label) {
	for _, l := range labels {
		b.WriteString(l.Key)
		b.WriteByte(0)
		b.WriteString(l.Value)
		b.WriteByte(0)
	}
}
