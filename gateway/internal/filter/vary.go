package filter

import "strings"

// vary names what the choice of the variant depends on, the same for all variants,
// beside what the upstream's answer depends on.
func vary(ex *Exchange) {
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
