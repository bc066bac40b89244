package routing_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"specialroutes.example/services/routing"
	"specialroutes.example/services/routing/routingtest"
)

// For random records and requests Explain gives the decision of Decide, draws as
// often, and its steps end where the decision was made.
func TestExplain_EqualsDecide(t *testing.T) {
	t.Parallel()
	rnd := routingtest.Rand(10_000)
	kinds := map[routing.Kind]int{}
	for i := range 10_000 {
		r, q := routingtest.Record(rnd), routingtest.Request(rnd)
		rt := routingtest.Compile(t, r)
		if i%100 == 0 {
			rt, q.Override = nil, "default"
		}
		v := rnd.Int64()
		var drawn [2]int
		draw := func(n *int) func(int64) int64 {
			return func(sum int64) int64 { *n++; return 1 + v%sum }
		}
		d := rt.Decide(q, draw(&drawn[0]))
		e := rt.Explain(q, draw(&drawn[1]))
		if e.Decision != d || drawn[0] != drawn[1] || drawn[0] > 1 {
			t.Fatalf("record %s, request %+v: Explain = %+v after %d draws, Decide = %+v after %d", asJSON(t, r), q, e, drawn[1], d, drawn[0])
		}
		checkSteps(t, rt, r, e)
		kinds[d.Kind]++
	}
	for kind := routing.KindNoRecord; kind <= routing.KindDraw; kind++ {
		if kinds[kind] < 20 {
			t.Errorf("only %d of the decisions are of kind %s: the test shows too little", kinds[kind], kind)
		}
	}
}

// checkSteps wants steps that fit the decision: the first that was taken is its
// kind, and of the rules exactly those that came before it were passed.
func checkSteps(t *testing.T, rt *routing.Route, r *routing.Record, e routing.Explanation) {
	t.Helper()
	steps := map[routing.Kind]string{
		routing.KindNoRecord: "record", routing.KindInactive: "active", routing.KindOverride: "override",
		routing.KindRule: "rule", routing.KindSticky: "sticky", routing.KindDraw: "draw",
	}
	rule := 0
	for i, s := range e.Steps {
		if s.Why == "" {
			t.Fatalf("step %+v gives no reason", s)
		}
		if s.Step == "rule" {
			if s.Rule != r.Rules[rule].Name {
				t.Fatalf("rule %d is explained as %s", rule, s.Rule)
			}
			rule++
		}
		if s.Result == routing.StepPassed {
			continue
		}
		if s.Step != steps[e.Decision.Kind] || s.Rule != e.Decision.Rule {
			t.Fatalf("the first step taken is %+v, the decision %+v", s, e.Decision)
		}
		if i < len(e.Steps)-1 && e.Decision.Kind != routing.KindRule {
			t.Fatalf("steps follow the one that was taken: %+v", e.Steps)
		}
		break
	}
	if e.Variant != rt.Variant(e.Decision.Variant).Name || e.Reason != e.Decision.Reason() {
		t.Fatalf("the texts of %+v are not those of its decision", e)
	}
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestExplain_Steps(t *testing.T) {
	t.Parallel()
	r := decode(t, fmtValid(`"rules": [
		{"name": "testers", "match": [{"on": "path", "prefix": "/"}, {"on": "header", "name": "tmx-user-id", "in": ["u-17"]}], "variant": "b"},
		{"name": "canary", "match": [{"on": "cookie", "name": "canary", "present": true}], "variant": "b"},
		{"name": "laptop", "match": [{"on": "client", "cidr": "10.0.0.0/8"}], "variant": "b"},
		{"name": "half", "match": [{"on": "query", "name": "half", "in": ["1"]}], "weights": {"b": 1}}],
		"sticky": {"by": "header", "name": "tmx-user-id"}`))
	rt := routingtest.Compile(t, r)
	q := query("half=1")
	q.Path, q.Override = "/", "c"
	got := rt.Explain(q, routingtest.Always(1))
	want := []routing.Step{
		{Step: "active", Result: "passed", Why: "the record is active"},
		{Step: "override", Result: "passed", Why: `the override asks for "c", which is not a variant of the record`},
		{Step: "rule", Rule: "testers", Result: "passed", Why: "match 1 does not hold: header Tmx-User-Id is absent"},
		{Step: "rule", Rule: "canary", Result: "passed", Why: "match 0 does not hold: cookie canary is absent"},
		{Step: "rule", Rule: "laptop", Result: "passed", Why: "match 0 does not hold: the client's address is not known"},
		{Step: "rule", Rule: "half", Result: "taken", Why: "all matches hold: the rule's own weights"},
		{Step: "sticky", Result: "passed", Why: "no key of header tmx-user-id (missing, empty or over 512 bytes): the request draws"},
		{Step: "draw", Result: "taken", Why: "drew 1 of 1 to 1"},
	}
	if !reflect.DeepEqual(got.Steps, want) || got.Variant != "b" || got.Reason != "rule:half" {
		t.Errorf("Explain = %s, want the steps %s", asJSON(t, got), asJSON(t, want))
	}
}
