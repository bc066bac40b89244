package filter

import (
	"strings"

	"specialroutes.example/services/routing"
)

// vary names what the choice of the variant depends on, the same for all variants,
// beside what the upstream's answer depends on. An answer that an override decided
// is its tester's alone: no cache may hand it to others.
func vary(ex *Exchange) {
	if ex.Decision.Kind == routing.KindOverride {
		makePrivate(ex.Answer)
	}
	names := ex.Record.Vary()
	if len(names) == 0 {
		return
	}
	lines := ex.Answer["Vary"]
	if hasToken(lines, "*") {
		return
	}
	value := strings.Join(lines, ", ")
	for _, name := range names {
		if hasToken(lines, strings.ToLower(name)) {
			continue
		}
		if value != "" {
			value += ", "
		}
		value += name
	}
	ex.Answer["Vary"] = []string{value}
}
