package filter

import (
	"net/http"

	"specialroutes.example/gateway/internal/table"
)

// match finds the route, and the record that is in force for its service. From
// here on the request keeps that record, whatever changes meanwhile.
func match(t *table.Table, records func() Records) func(*Exchange) error {
	return func(ex *Exchange) error {
		r := t.Match(ex.Request.Host, ex.Target.Path)
		if r == nil {
			return &Refusal{Status: http.StatusNotFound, Code: "no_route", Detail: "no route leads to this path"}
		}
		ex.Route, ex.Record = r, records().Route(r.Service)
		ex.Entry.Route, ex.Entry.Service = r.Name, r.Service
		return nil
	}
}
