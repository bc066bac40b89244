package filter

import (
	"net/http"

	"specialroutes.example/gateway/internal/config"
)

// knownLabels are routing headers whatever the records say: the estate's services
// carry them on.
var knownLabels = []string{"Version", "App", "Zone"}

// clientLabels keeps or removes the routing headers that a client sends, by the
// setting of this edge.
func clientLabels(whose config.ClientLabels) func(*Exchange) error {
	return func(ex *Exchange) error {
		if whose == config.ClientLabelsAll || whose == config.ClientLabelsTrusted && ex.Trusted {
			return nil
		}
		removeLabels(ex.Request.Header, ex)
		return nil
	}
}

func removeLabels(h http.Header, ex *Exchange) {
	for _, name := range knownLabels {
		delete(h, name)
	}
	for _, rule := range ex.Record.LabelRules() {
		delete(h, rule.Header)
	}
}
