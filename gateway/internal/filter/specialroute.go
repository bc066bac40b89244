package filter

import (
	"net/http"

	"specialroutes.example/services/routing"
)

// specialRoute decides the variant by the record. Where the split sticks by the
// gateway's cookie and the client has none, newKey makes it one; nil makes none.
func specialRoute(draw func(sum int64) int64, newKey func() string) func(*Exchange) error {
	return func(ex *Exchange) error {
		h := ex.Request.Header
		if name, fault := ex.Record.HeaderFault(h); fault != "" {
			return &Refusal{Status: http.StatusBadRequest, Code: routing.CodeBadHeader,
				Detail:  routing.HeaderRefusal(name, fault),
				Members: map[string]any{"header": name}}
		}
		r := routing.Request{
			Method:   ex.Request.Method,
			Path:     ex.Route.Below(ex.Target.Path),
			RawQuery: ex.Target.Query,
			Header:   h,
			Client:   ex.Client,
			Override: ex.Override,
		}
		ex.Decision = ex.Record.Decide(&r, draw)
		if ex.Decision.NeedsKey && newKey != nil {
			r.FreshKey = newKey()
			ex.FreshKey = r.FreshKey
			ex.Decision = ex.Record.Decide(&r, draw)
		}
		ex.Entry.Reason = ex.Decision.Reason()
		ex.Entry.Variant = ex.Record.Variant(ex.Decision.Variant).Name
		return nil
	}
}
