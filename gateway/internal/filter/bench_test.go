package filter_test

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/balance"
	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/filter"
	"specialroutes.example/gateway/internal/registry/static"
	"specialroutes.example/gateway/internal/table"
	"specialroutes.example/services/routing"
)

// oneRecord is the records of the benchmark.
type oneRecord struct{ route *routing.Route }

func (r oneRecord) Route(string) *routing.Route { return r.route }
func (r oneRecord) RoutingHeaders() []string    { return nil }

// benchChain is the standard filters over a record that splits calls in half.
func benchChain(b *testing.B) *filter.Chain {
	b.Helper()
	c := config.Default()
	tab, err := table.New([]config.Route{{Prefix: "/api/organization", Service: "org", Timeouts: c.Timeouts, SensitiveHeaders: []string{"Cookie", "Set-Cookie"}}})
	if err != nil {
		b.Fatal(err)
	}
	route, err := routing.Compile(&routing.Record{
		Service: "org", Active: new(true), Default: new("default"),
		Variants: []routing.Variant{{Name: "default", Weight: new(int64(5))}, {Name: "alternate", Weight: new(int64(5)), Endpoint: new("http://127.0.0.1:2")}},
	}, nil)
	if err != nil {
		b.Fatal(err)
	}
	return filter.Standard(filter.Settings{
		Table:     tab,
		Records:   func() filter.Records { return oneRecord{route} },
		Instances: static.New(map[string][]config.Instance{"org": {{ID: "old", Address: "127.0.0.1:1"}}}).Load,
		Balancer:  balance.New(balance.Options{Now: time.Now, Random: rand.Int64N}),
		Draw:      func(sum int64) int64 { return 1 + rand.Int64N(sum) },
		NewID:     filter.RandomID, NewKey: filter.RandomKey,
		Limits: c.Limits, ClientLabels: c.ClientLabels, ExposeRoute: true,
	})
}

// BenchmarkChain is what all filters cost a request, with its answer.
func BenchmarkChain(b *testing.B) {
	chain := benchChain(b)
	for name, header := range map[string]http.Header{
		"bare": {},
		"browser": {
			"User-Agent": {"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"}, "Accept": {"application/json"},
			"Accept-Language": {"en-US,en;q=0.5"}, "Accept-Encoding": {"gzip, deflate, br"}, "Cookie": {"theme=dark; session=0123456789abcdef"},
			"Connection": {"keep-alive"}, "Tmx-Correlation-Id": {"0b6b1ab0-6c5b-4f4c-9f58-0d3c8f2f1b11"}, "Referer": {"https://example.org/organizations"},
		},
	} {
		b.Run(name, func(b *testing.B) {
			r := &http.Request{Method: http.MethodGet, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: "127.0.0.1:5555", RemoteAddr: "127.0.0.1:45678",
				RequestURI: "/api/organization/v1/organizations/e254f8c-c442-4ebe-a82a-e2fc1d1ff78a", Header: http.Header{}}
			answer, ex, known := http.Header{}, new(filter.Exchange), filter.Connection{} // used again and again, as on the loop
			b.ReportAllocs()
			for b.Loop() {
				clear(r.Header)
				for name, lines := range header {
					r.Header[name] = lines
				}
				*ex = filter.Exchange{Request: r, Connection: &known}
				if err := chain.Request(ex); err != nil {
					b.Fatal(err)
				}
				clear(answer)
				answer["Content-Type"], answer["Content-Length"] = jsonType, length
				ex.Answer = answer
				chain.Answer(ex)
				ex.Pick.Answered()
				ex.Pick.Release()
			}
		})
	}
}

var jsonType, length = []string{"application/json"}, []string{"180"}
