package filter

import (
	"slices"

	"specialroutes.example/gateway/internal/config"
)

// knownLabels are routing headers whatever the records say: the estate's services
// carry them on.
var knownLabels = []string{"Version", "App", "Zone"}

// clientLabels keeps or removes the routing headers that a client sends, by the
// setting of this edge. They are those of every service's rules: a call goes on
// from service to service with them, and is chosen by them there.
func clientLabels(whose config.ClientLabels, records func() Records) func(*Exchange) error {
	return func(ex *Exchange) error {
		if whose == config.ClientLabelsAll || whose == config.ClientLabelsTrusted && ex.Trusted {
			return nil
		}
		ex.labels = labelsOf(ex, records())
		for name := range ex.Request.Header {
			if ex.isLabel(name) {
				delete(ex.Request.Header, name)
			}
		}
		return nil
	}
}

// labelsOf returns the routing headers. It also looks at the record that the request
// keeps: those of the moment may be others already.
func labelsOf(ex *Exchange, r Records) []string {
	all := slices.Concat(knownLabels, r.RoutingHeaders())
	for _, rule := range ex.Record.LabelRules() {
		all = append(all, rule.Header)
	}
	return all
}

// isLabel reports whether a field, however spelt, is a routing header that a client
// may not send.
func (ex *Exchange) isLabel(name string) bool {
	return len(ex.labels) > 0 && slices.Contains(ex.labels, plainName(name))
}
