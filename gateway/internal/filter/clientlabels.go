package filter

import (
	"net/http"

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
		removeLabels(ex.Request.Header, ex, records().RoutingHeaders())
		return nil
	}
}

// removeLabels also looks at the record that the request keeps: that of the moment
// may be another already.
func removeLabels(h http.Header, ex *Exchange, ofAll []string) {
	for _, name := range knownLabels {
		delete(h, name)
	}
	for _, name := range ofAll {
		delete(h, name)
	}
	for _, rule := range ex.Record.LabelRules() {
		delete(h, rule.Header)
	}
}
