package records

import (
	"fmt"
	"net/http"
	"testing"

	"specialroutes.example/gateway/internal/records/recordstest"
	"specialroutes.example/services/routing"
)

// BenchmarkDecision is what a request pays for its record: finding it and deciding
// by it. Requests for one service and for all in turn differ by what the processor
// has in its cache, not by the search.
func BenchmarkDecision(b *testing.B) {
	q := &routing.Request{Method: http.MethodGet, Path: "/v1/organizations/1", Header: http.Header{}}
	draw := func(int64) int64 { return 7 }
	for _, n := range []int{10, 1_000, 10_000} {
		items, services := make([]string, n), make([]string, n)
		for i := range n {
			services[i] = fmt.Sprintf("service-%d", i)
			items[i] = recordstest.Book(services[i], i, 5, endpoint)
		}
		s := answer(b, nil, recordstest.Full("1.a", items...))
		for _, asked := range [][]string{services[7:8], services} {
			b.Run(fmt.Sprintf("records=%d/services=%d", n, len(asked)), func(b *testing.B) {
				i := 0
				for b.Loop() {
					if s.Route(asked[i]).Decide(q, draw).Kind != routing.KindDraw {
						b.Fatal("it was not drawn")
					}
					if i++; i == len(asked) {
						i = 0
					}
				}
			})
		}
	}
}
