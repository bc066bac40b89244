package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"specialroutes.example/services/routing"
	"specialroutes.example/services/routing/routingtest"
)

// explanation is an answer of POST /v1/explain.
type explanation struct {
	Service         string
	Revision        int64
	Variant, Reason string
	NeedsKey        bool
	Target          struct {
		Endpoint, Service string
		Selector          map[string]string
	}
	Steps []routing.Step
}

// question is a body of POST /v1/explain.
type question struct {
	Service string          `json:"service"`
	Record  *routing.Record `json:"record,omitempty"`
	Request asked           `json:"request"`
}

type asked struct {
	Method   string      `json:"method,omitempty"`
	Path     string      `json:"path,omitempty"`
	Query    string      `json:"query,omitempty"`
	Headers  http.Header `json:"headers,omitempty"`
	Client   string      `json:"client,omitempty"`
	Override string      `json:"override,omitempty"`
	Draw     int64       `json:"draw,omitempty"`
}

func (r routes) explain(q question) (explanation, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return explanation{}, err
	}
	got, err := do("POST", r.url+"/v1/explain", strings.NewReader(string(body)), headers{{"Content-Type", jsonType}})
	if err != nil {
		return explanation{}, err
	}
	var e explanation
	if got.status != 200 {
		return e, fmt.Errorf("POST /v1/explain %s: status %d: %s", body, got.status, got.body)
	}
	return e, json.Unmarshal(got.body, &e)
}

const explained = 200

// reachable changes a random record so that each of its variants can be reached in
// the lab: the decision is the same, only the places are real.
func reachable(r *routing.Record, service, endpoint string) *routing.Record {
	r = r.Clone()
	r.Service = service
	for i, v := range r.Variants {
		if v.Endpoint != nil {
			r.Variants[i].Endpoint = new(endpoint + "/" + v.Name)
		}
	}
	return r
}

// sendable changes a random request to one that HTTP and the gateway's edge let
// through: each header that routing reads has one line, the client is known, and
// what the gateway issues it has not issued yet.
func sendable(q *routing.Request) *routing.Request {
	for name, values := range q.Header {
		if name != "Cookie" {
			q.Header[name] = values[:1]
		}
	}
	if !q.Client.IsValid() {
		q.Client = netip.MustParseAddr("192.0.2.99")
	}
	q.FreshKey = ""
	return q
}

// explainLab is a lab with a route, instances and a record for each case.
func explainLab(t *testing.T) (*lab, []*routing.Record) {
	t.Helper()
	random := routingtest.Rand(200)
	at := newUpstream(t, "instance", nil)
	all := newUpstream(t, "endpoint", echo)
	var routes, instances strings.Builder
	records := make([]*routing.Record, explained)
	for i := range records {
		service := fmt.Sprintf("explained-%d", i)
		records[i] = reachable(routingtest.Record(random), service, all.URL)
		fmt.Fprintf(&routes, "{prefix: /case/%d, service: %s}, ", i, service)
		fmt.Fprintf(&instances, "%s: [{id: plain, address: %q}", service, at.addr())
		for v := range routing.MaxVariants {
			fmt.Fprintf(&instances, ", {id: v%d, address: %q, labels: {version: v%d}}", v, at.addr(), v)
		}
		instances.WriteString("], ")
	}
	l := overrideLab(t, labOptions{old: at, new: all, config: map[string]string{
		"routes":         "[" + routes.String() + "]",
		"instances":      fmt.Sprintf("{%sother: [{id: other, address: %q}]}", instances.String(), at.addr()),
		"trustedProxies": "[127.0.0.1/32]",
	}})
	each(t, explained, func(i int) (struct{}, error) {
		body, err := json.Marshal(records[i])
		if err != nil {
			return struct{}{}, err
		}
		got, err := do("PUT", l.full(records[i].Service), strings.NewReader(string(body)), headers{{"Content-Type", jsonType}})
		if err == nil && got.status != 201 {
			err = fmt.Errorf("PUT %s: status %d: %s", body, got.status, got.body)
		}
		return struct{}{}, err
	})
	l.inForce(t)
	return l, records
}

// through sends a request of a case to the gateway.
func (l *lab) through(t *testing.T, i int, service string, q *routing.Request) (answer, error) {
	target := fmt.Sprintf("http://%s/case/%d%s", l.data, i, q.Path)
	if q.RawQuery != "" {
		target += "?" + q.RawQuery
	}
	h := headers{{"X-Forwarded-For", q.Client.String()}}
	for name, values := range q.Header {
		for _, v := range values {
			h = append(h, [2]string{name, v})
		}
	}
	if q.Override != "" {
		h = append(h, [2]string{"Route-Override", signed(t, presentKey, service, q.Override, time.Hour)})
	}
	return do(q.Method, target, nil, h)
}

func TestExplainEqualsTheGatewayForTwoHundredRandomRecordsAndRequests(t *testing.T) {
	t.Parallel()
	l, records := explainLab(t)
	random := routingtest.Rand(201)
	requests := make([]*routing.Request, explained)
	for i := range requests {
		requests[i] = sendable(routingtest.Request(random))
	}
	kinds := map[string]int{}
	for _, reason := range each(t, explained, func(i int) (string, error) {
		q, service := requests[i], records[i].Service
		got, err := l.through(t, i, service, q)
		if err != nil || got.status != 200 {
			return "", fmt.Errorf("case %d: status %d, %w: %.300s", i, got.status, err, got.body)
		}
		real := routeOf(got)
		ask := question{Service: service, Request: asked{
			Method: q.Method, Path: q.Path, Query: q.RawQuery, Headers: q.Header, Client: q.Client.String(), Override: q.Override,
		}}
		if ask.Request, err = l.known(ask.Request, records[i], q, got); err != nil {
			return "", fmt.Errorf("case %d: %w", i, err)
		}
		said, err := l.explain(ask)
		switch {
		case err != nil:
		case said.Variant != real.variant || said.Reason != real.reason:
			err = fmt.Errorf("the gateway says %+v, explain says %s for %s: %+v", real, said.Variant, said.Reason, said.Steps)
		case said.Target.Endpoint != "" && string(got.body) != "/"+real.variant+q.Path+questionMark(q):
			err = fmt.Errorf("explain says %s, the call came to %.200s", said.Target.Endpoint, got.body)
		}
		if err != nil {
			record, _ := json.Marshal(records[i])
			return "", fmt.Errorf("case %d: %w\nrecord %s\nrequest %+v", i, err, record, q)
		}
		return real.reason, nil
	}) {
		kind, _, _ := strings.Cut(reason, ":")
		kinds[kind]++
	}
	for _, kind := range []string{"inactive", "override", "rule", "sticky", "draw"} {
		if kinds[kind] < 3 {
			t.Errorf("%d cases are decided by %s: %v", kinds[kind], kind, kinds)
		}
	}
}

func questionMark(q *routing.Request) string {
	if q.RawQuery == "" {
		return ""
	}
	return "?" + q.RawQuery
}

// known adds to a question what only the gateway's answer tells: the key that it
// issued, and of the numbers that it may have drawn one that leads where it went.
func (l *lab) known(a asked, record *routing.Record, q *routing.Request, got answer) (asked, error) {
	a.Headers = a.Headers.Clone()
	if cookies := keyCookies(got); len(cookies) > 0 {
		before, err := l.explain(question{Service: record.Service, Request: a})
		if err == nil && !before.NeedsKey {
			err = fmt.Errorf("the gateway issued a key, explain says that none is needed")
		}
		if err != nil {
			return a, err
		}
		// The first cookie of the name counts, so it goes before what was sent.
		a.Headers["Cookie"] = append([]string{"sr-key=" + cookies[0].Value}, a.Headers["Cookie"]...)
	}
	route, err := routing.Compile(record, nil)
	if err != nil {
		return a, err
	}
	asks := *q
	asks.Header = a.Headers
	var sum int64
	route.Decide(&asks, func(s int64) int64 { sum = s; return 1 })
	for draw := int64(1); draw <= sum; draw++ {
		if d := route.Decide(&asks, routingtest.Always(draw)); route.Variant(d.Variant).Name == got.header.Get("X-Route-Variant") {
			a.Draw = draw
			return a, nil
		}
	}
	return a, nil
}

func TestExplainTellsEachStepAndItsReason(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	r.save(t, "explained", recordOf("explained", []string{
		`{"name":"old","weight":9}`, `{"name":"new","weight":1,"endpoint":"http://orgservice-new:8087"}`, `{"name":"two","weight":0,"service":"other","selector":{"version":"2"}}`,
	}, rulesOf(
		ruleTo("testers", "new", `{"on":"header","name":"tmx-user-id","in":["u-17"]}`),
		ruleTo("second", "two", `{"on":"path","prefix":"/v2/"}`, `{"on":"cookie","name":"beta","present":true}`),
	), `"sticky":{"by":"header","name":"tmx-user-id"}`))
	steps := func(e explanation) string {
		var parts []string
		for _, s := range e.Steps {
			if s.Why == "" {
				t.Errorf("a step without a reason: %+v", s)
			}
			parts = append(parts, strings.TrimSuffix(s.Step+" "+s.Rule, " ")+" "+s.Result)
		}
		return strings.Join(parts, ", ")
	}
	for _, test := range []struct {
		name            string
		request         asked
		variant, reason string
		steps           string
	}{
		{"a bare request", asked{Draw: 10}, "new", "draw", "active passed, override passed, rule testers passed, rule second passed, sticky passed, draw taken"},
		{"the first number", asked{Draw: 1}, "old", "draw", "active passed, override passed, rule testers passed, rule second passed, sticky passed, draw taken"},
		{"a tester", asked{Headers: http.Header{"TMX-User-ID": {"u-17"}}}, "new", "rule:testers", "active passed, override passed, rule testers taken"},
		{"two matches", asked{Path: "/v2/x", Headers: http.Header{"Cookie": {"beta=1"}}}, "two", "rule:second", "active passed, override passed, rule testers passed, rule second taken"},
		{"an override", asked{Override: "two", Headers: http.Header{"tmx-user-id": {"u-17"}}}, "two", "override", "active passed, override taken"},
		{"a key", asked{Headers: http.Header{"tmx-user-id": {"u-2"}}}, "new", "sticky", "active passed, override passed, rule testers passed, rule second passed, sticky taken"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, err := r.explain(question{Service: "explained", Request: test.request})
			if err != nil {
				t.Fatal(err)
			}
			if e.Variant != test.variant || e.Reason != test.reason || e.Service != "explained" || e.Revision != 1 {
				t.Errorf("%+v, want %s for %s", e, test.variant, test.reason)
			}
			if got := steps(e); got != test.steps {
				t.Errorf("steps: %s\nwant %s", got, test.steps)
			}
			switch e.Variant {
			case "new":
				if e.Target.Endpoint != "http://orgservice-new:8087" {
					t.Errorf("target = %+v", e.Target)
				}
			case "two":
				if e.Target.Service != "other" || e.Target.Selector["version"] != "2" {
					t.Errorf("target = %+v", e.Target)
				}
			}
		})
	}
	t.Run("a record that is not stored", func(t *testing.T) {
		var record routing.Record
		if err := json.Unmarshal([]byte(pair("explained", 0, 1)), &record); err != nil {
			t.Fatal(err)
		}
		e, err := r.explain(question{Service: "explained", Record: &record})
		if err != nil || e.Variant != "new" || e.Revision != 0 {
			t.Errorf("%v: %+v", err, e)
		}
		if now := r.etagOf(t, "explained"); !strings.HasPrefix(now, `"1.`) {
			t.Errorf("ETag = %s: explain stored something", now)
		}
	})
	t.Run("a service without a record", func(t *testing.T) {
		e, err := r.explain(question{Service: "nobody"})
		if err != nil || e.Variant != "default" || e.Reason != "no-record" || e.Revision != 0 || steps(e) != "record passed" && steps(e) != "record taken" {
			t.Errorf("%v: %+v", err, e)
		}
	})
	t.Run("a record that is switched off", func(t *testing.T) {
		if got := sendJSON(t, "PUT", r.full("explained", "active"), `{"active":false}`); got.status != 200 {
			t.Fatal(got.status)
		}
		e, err := r.explain(question{Service: "explained", Request: asked{Override: "new"}})
		if err != nil || e.Variant != "old" || e.Reason != "inactive" || steps(e) != "active taken" {
			t.Errorf("%v: %+v", err, e)
		}
	})
}
