package filter

import (
	"fmt"
	"net/http"

	"specialroutes.example/services/routing"
)

// routingValueMost is the longest value of a header that routing reads.
const routingValueMost = 255

// specialRoute decides the variant by the record. Where the split sticks by the
// gateway's cookie and the client has none, newKey makes it one; nil makes none.
func specialRoute(draw func(sum int64) int64, newKey func() string) func(*Exchange) error {
	return func(ex *Exchange) error {
		h := ex.Request.Header
		for _, name := range ex.Record.Headers() {
			if err := oneMeaning(name, h[name]); err != nil {
				return err
			}
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

// oneMeaning refuses a header that we and the upstream could read in two ways.
func oneMeaning(name string, lines []string) error {
	refuse := func(what string) error {
		return &Refusal{Status: http.StatusBadRequest, Code: "bad_header",
			Detail:  fmt.Sprintf("the header %s, which routing reads, %s", name, what),
			Members: map[string]any{"header": name}}
	}
	switch {
	case len(lines) == 0:
		return nil
	case len(lines) > 1:
		return refuse("comes more than once")
	case len(lines[0]) > routingValueMost:
		return refuse(fmt.Sprintf("is longer than %d bytes", routingValueMost))
	}
	for i := range len(lines[0]) {
		if c := lines[0][i]; c < ' ' || c > '~' {
			return refuse("holds something else than visible ASCII")
		}
	}
	return nil
}
