package routing_test

import (
	"encoding/json"
	"testing"

	"specialroutes.example/services/routing"
	"specialroutes.example/services/routing/routingtest"
	"specialroutes.example/services/strictjson"
)

// FuzzRecord feeds documents through decoder and validator as the admin API and
// the gateway do. Nothing panics; what validates compiles, is the same after it
// was written and read again, and decides for any request.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte(`{"service":"*","active":true,"labelRules":[]}`))
	f.Add([]byte(`{"service":"s"}`))
	rnd := routingtest.Rand(1)
	for range 50 {
		data, err := json.Marshal(routingtest.Record(rnd))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var r routing.Record
		if strictjson.Decode(data, &r) != nil {
			return
		}
		errs := r.Validate()
		rt, err := routing.Compile(&r, nil)
		if (errs == nil) != (err == nil) {
			t.Fatalf("Validate = %v, Compile = %v", errs, err)
		}
		if err != nil {
			return
		}
		written := asJSON(t, &r)
		var again routing.Record
		if err := strictjson.Decode([]byte(written), &again); err != nil || asJSON(t, &again) != written {
			t.Fatalf("%s is read as %s, %v", written, asJSON(t, &again), err)
		}
		rnd := routingtest.Rand(uint64(len(data)))
		for range 4 {
			q := routingtest.Request(rnd)
			d := rt.Decide(q, routingtest.Always(1))
			if e := rt.Explain(q, routingtest.Always(1)); e.Decision != d || e.Variant != rt.Variant(d.Variant).Name {
				t.Fatalf("Explain = %+v, Decide = %+v", e, d)
			}
		}
		_, _ = routing.ToBook(&r)
	})
}

// FuzzValidate goes round the decoder: a record may be made by Go code too, with
// nil and empty where no document has them.
func FuzzValidate(f *testing.F) {
	f.Add("s", "a", "header", "x", "http://h", int64(1), uint8(0))
	f.Add("", "", "", "", "", int64(-1), uint8(255))
	f.Fuzz(func(t *testing.T, service, name, word, text, endpoint string, n int64, bits uint8) {
		there := func(i int, s string) *string {
			if bits&(1<<i) != 0 {
				return nil
			}
			return &s
		}
		r := &routing.Record{
			Service: service, Active: new(true), Default: there(0, name), OnUnavailable: there(1, word), Owner: there(2, text), Ends: there(3, text),
			Variants: []routing.Variant{{Name: name, Weight: &n, Endpoint: there(4, endpoint), Service: there(5, word), Selector: map[string]string{text: word}}, {}},
			Rules: []routing.Rule{{}, {Name: name, Variant: there(6, name), Weights: map[string]int64{name: n},
				Match: []routing.Match{{On: word, Name: there(6, text), In: []string{text}, Regex: there(7, text), CIDR: there(5, text), Prefix: there(4, text)}, {}}}},
			Sticky:     &routing.Sticky{By: word, Name: there(3, text), Salt: there(2, text), Missing: there(1, word), MaxAge: &n},
			LabelRules: []routing.LabelRule{{}, {Header: text, Label: name, Mode: word, Fallback: there(0, word), Guard: []string{text}}},
		}
		errs := r.Validate()
		if _, err := routing.Compile(r, nil); (errs == nil) != (err == nil) {
			t.Fatalf("Validate = %v, Compile = %v", errs, err)
		}
	})
}

// FuzzEndpoint wants no accepted endpoint that leads to a refused address.
func FuzzEndpoint(f *testing.F) {
	for _, host := range append(refusedAddresses, "localhost", "10.0.0.1:80/x") {
		f.Add("http://" + host)
	}
	f.Fuzz(func(t *testing.T, endpoint string) {
		rt, err := routing.Compile(routingtest.Book("s", 5, endpoint), nil)
		if err != nil {
			return
		}
		if u := rt.Variant(1).URL; u.Host == "" || u.Address == "" || leadsToRefused(u.Host) {
			t.Errorf("%q is accepted as %+v", endpoint, u)
		}
	})
}
