package api

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"specialroutes.example/services/routing"
	"specialroutes.example/specialroutes/internal/store"
)

func ask(t *testing.T, srv *server, question string) explanation {
	t.Helper()
	return decoded[explanation](t, srv.expect(http.StatusOK, "POST", "/v1/explain", question))
}

func TestExplain_TellsTheVariantAndTheWayToIt(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		if e := ask(t, srv, `{"service":"organizationservice"}`); e.Reason != "no-record" || e.Variant != "default" || e.Revision != 0 {
			t.Errorf("without a record = %+v", e)
		}
		srv.expect(http.StatusCreated, "PUT", routePath, full)
		tests := []struct {
			name, request           string
			variant, reason, target string
			steps                   int
		}{
			{"a rule", `{"headers":{"tmx-user-id":["u-42"]}}`, "new", "rule:testers", "http://orgservice-new:8087/a%2Fb/", 3},
			{"the second rule, which draws by the key", `{"client":"10.1.2.3","path":"/v1/x","headers":{"Tmx-User-Id":["u-1"]}}`, "", "rule:office", "", 5},
			{"the third rule", `{"query":"v=17","headers":{"cookie":["a=1; beta=2"]}}`, "next", "rule:rest", "orgservice-next", 5},
			{"a key", `{"headers":{"tmx-user-id":["somebody"]}}`, "old", "sticky", "", 6},
			{"no key", `{}`, "old", "sticky", "", 6},
			{"an override", `{"override":"next"}`, "next", "override", "orgservice-next", 2},
		}
		for _, test := range tests {
			e := ask(t, srv, `{"service":"organizationservice","request":`+test.request+`}`)
			if test.variant != "" && e.Variant != test.variant || e.Reason != test.reason || e.Revision != 1 || len(e.Steps) != test.steps {
				t.Errorf("%s = %+v, want %s by %s in %d steps", test.name, e, test.variant, test.reason, test.steps)
			}
			if test.target != "" && e.Target.Endpoint+e.Target.Service != test.target {
				t.Errorf("%s leads to %+v, want %s", test.name, e.Target, test.target)
			}
		}
	})
}

func TestExplain_TellsWhatTheGatewayRefuses(t *testing.T) {
	t.Parallel()
	srv := start(t, openSQLite(t))
	srv.expect(http.StatusCreated, "PUT", routePath, full)
	for request, code := range map[string]string{
		`{"headers":{"tmx-user-id":["u-42","u-1"]}}`:                                         "bad_header",
		`{"headers":{"tmx-user-id":["u-42"],"TMX-User-ID":["u-42"]}}`:                        "bad_header",
		`{"headers":{"tmx-user-id":["` + strings.Repeat("u", 256) + `"]}}`:                   "bad_header",
		`{"headers":{"tmx-user-id":["ü"]}}`:                                                  "bad_header",
		`{"path":"/v1/../x"}`:                                                                "bad_path",
		`{"path":"/v1/%2e%2E/x"}`:                                                            "bad_path",
		`{"path":"/v1/%zz"}`:                                                                 "bad_path",
		`{"path":"/v1/..","headers":{"tmx-user-id":["ü"]}}`:                                  "bad_path",
		`{"headers":{"other":["a","b"],"tmx-user-id":["` + strings.Repeat("u", 255) + `"]}}`: "",
		`{"path":"/v1/a%2Fb//c","headers":{"other":["ü"]}}`:                                  "",
	} {
		e := ask(t, srv, `{"service":"organizationservice","request":`+request+`}`)
		if code == "" {
			if e.Refused != nil || e.Variant == "" {
				t.Errorf("%.100s = %+v, want a variant", request, e)
			}
			continue
		}
		if e.Refused == nil || e.Refused.Status != 400 || e.Refused.Code != code || e.Variant != "" || e.Reason != "refused" || len(e.Steps) != 1 || !strings.Contains(e.Steps[0].Why, e.Refused.Detail) {
			t.Errorf("%.100s = %+v, want it refused with %s", request, e, code)
		}
	}
}

func TestExplain_TriesARecordThatIsNotStored(t *testing.T) {
	t.Parallel()
	srv := start(t, openSQLite(t))
	srv.expect(http.StatusCreated, "PUT", routePath, full)
	for draw, want := range map[int]string{1: "old", 9: "old", 10: "new"} {
		e := ask(t, srv, fmt.Sprintf(`{"service":"organizationservice","record":%s,"request":{"draw":%d}}`, split, draw))
		if e.Variant != want || e.Reason != "draw" || e.Revision != 0 {
			t.Errorf("with a draw of %d = %+v, want %s", draw, e, want)
		}
	}
	p := srv.expect(http.StatusUnprocessableEntity, "POST", "/v1/explain", `{"service":"organizationservice","record":`+split+`,"request":{"draw":11}}`).problem(t)
	if got := p.pointers(); len(got) != 1 || got[0] != "/request/draw" {
		t.Errorf("a draw above the sum = %+v", p)
	}
	cookie := strings.Replace(split, `"default"`, `"sticky":{"by":"gateway-cookie"},"default"`, 1)
	if e := ask(t, srv, `{"service":"organizationservice","record":`+cookie+`}`); !e.NeedsKey {
		t.Errorf("sticky by the gateway's cookie without one = %+v, want needsKey", e)
	}
}

func TestExplain_DrawsWhenNoNumberIsGiven(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	srv := start(t, openSQLite(t), func(o *Options) { o.Draw = func(sum int64) int64 { return 1 + random.Int64N(sum) } })
	srv.expect(http.StatusCreated, "PUT", routePath, strings.NewReplacer(`9`, `1`).Replace(split)) // 1:1
	seen := map[string]int{}
	for range 40 {
		seen[ask(t, srv, `{"service":"organizationservice"}`).Variant]++
	}
	if seen["old"] < 10 || seen["new"] < 10 {
		t.Errorf("40 draws of 1:1 = %v", seen)
	}
}

// TestExplain_IsTheDecision compares with what a gateway decides by the record that
// it gets from the feed.
func TestExplain_IsTheDecision(t *testing.T) {
	t.Parallel()
	srv := start(t, openSQLite(t))
	srv.expect(http.StatusCreated, "PUT", routePath, full)
	feed := decoded[envelope](t, srv.expect(http.StatusOK, "GET", "/v1/changes", ""))
	var record routing.Record
	if err := json.Unmarshal(feed.Records[0].Record, &record); err != nil {
		t.Fatal(err)
	}
	route, err := routing.Compile(&record, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		user := fmt.Sprintf("u-%d", i)
		r := &routing.Request{Method: "GET", Path: "/", Header: http.Header{"Tmx-User-Id": {user}}}
		d := route.Decide(r, func(sum int64) int64 { return sum })
		e := ask(t, srv, `{"service":"organizationservice","request":{"headers":{"tmx-user-id":["`+user+`"]}}}`)
		if e.Variant != route.Variant(d.Variant).Name || e.Reason != d.Reason() {
			t.Errorf("%s: explained as %s by %s, decided as %s by %s", user, e.Variant, e.Reason, route.Variant(d.Variant).Name, d.Reason())
		}
	}
}
