package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"specialroutes.example/specialroutes/internal/store"
)

const (
	routePath = "/v1/routes/organizationservice"

	// full has every member that a record can have.
	full = `{
		"service": "organizationservice", "active": true,
		"variants": [
			{"name": "old", "weight": 94},
			{"name": "new", "weight": 5, "endpoint": "http://orgservice-new:8087/a%2Fb/"},
			{"name": "next", "weight": 1, "service": "orgservice-next", "selector": {"version": "2.0.0"}}
		],
		"default": "old",
		"rules": [
			{"name": "testers", "match": [{"on": "header", "name": "tmx-user-id", "in": ["u-17", "u-42"]}], "variant": "new"},
			{"name": "office", "match": [{"on": "client", "cidr": "10.0.0.0/8"}, {"on": "path", "prefix": "/v1"}], "weights": {"old": 1, "next": 1}},
			{"name": "rest", "match": [{"on": "query", "name": "v", "regex": "[0-9]+"}, {"on": "cookie", "name": "beta", "present": true}], "variant": "next"}
		],
		"sticky": {"by": "header", "name": "tmx-user-id", "salt": "s1", "missing": "default"},
		"onUnavailable": "fail",
		"labelRules": [{"header": "version", "label": "version", "mode": "lenient", "fallback": "none", "guard": ["10.0.0.0/8"]}],
		"owner": "organization team", "ends": "2026-12-31"
	}`

	split = `{"service":"organizationservice","active":true,"default":"old",
		"variants":[{"name":"old","weight":9},{"name":"new","weight":1,"endpoint":"http://new"}]}`
)

// decoded reads an answer.
func decoded[T any](t testing.TB, a answer) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%s: %v", a.body, err)
	}
	return v
}

func TestRoutes_APutIsWhatAGetReturns(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		for i, body := range []string{full, split, strings.Replace(split, `"active":true`, `"active":false`, 1), `{"service":"organizationservice","active":true}`} {
			status := http.StatusOK
			if i == 0 {
				status = http.StatusCreated
			}
			put := srv.expect(status, "PUT", routePath, body)
			get := srv.expect(http.StatusOK, "GET", routePath, "")
			w := decoded[written](t, put)
			if !sameJSON(t, get.body, body) || !sameJSON(t, string(w.Record), body) || w.Service != "organizationservice" {
				t.Errorf("PUT %s = %s, GET = %s", body, put.body, get.body)
			}
			if tag := put.header.Get("ETag"); tag != get.header.Get("ETag") || !strings.HasPrefix(tag, fmt.Sprintf(`"%d.`, w.Revision)) {
				t.Errorf("ETag %s of the PUT with revision %d, %s of the GET", tag, w.Revision, get.header.Get("ETag"))
			}
		}
	})
}

func TestRoutes_TheWildcardIsARecord(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		const body = `{"service":"*","active":true,"onUnavailable":"fail","labelRules":[]}`
		srv.expect(http.StatusCreated, "PUT", "/v1/routes/*", body)
		if a := srv.expect(http.StatusOK, "GET", "/v1/routes/%2A", ""); !sameJSON(t, a.body, body) {
			t.Errorf("GET = %s", a.body)
		}
		srv.expect(http.StatusOK, "DELETE", "/v1/routes/*", "")
	})
}

func TestRoutes_DeleteLeavesTheHistory(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		srv.expect(http.StatusCreated, "PUT", routePath, split)
		a := srv.expect(http.StatusOK, "DELETE", routePath+"?why=enough", "")
		if w := decoded[written](t, a); w.Revision != 2 || string(w.Record) != "null" || a.header.Get("ETag") != "" {
			t.Errorf("DELETE = %s, ETag %q", a.body, a.header.Get("ETag"))
		}
		srv.expect(http.StatusNotFound, "DELETE", routePath, "")
		p := decoded[historyPage](t, srv.expect(http.StatusOK, "GET", routePath+"/history", ""))
		if len(p.Entries) != 2 || string(p.Entries[0].After) != "null" || p.Entries[0].Why != "enough" || p.Entries[0].Who != "anonymous" {
			t.Errorf("history = %+v", p)
		}
	})
}

func TestRoutes_ListShowsAllAndWarns(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s store.Store, exec func(string)) {
		srv := start(t, s)
		srv.expect(http.StatusCreated, "PUT", "/v1/routes/a", `{"service":"a","active":true,"ends":"2020-02-29"}`)
		srv.expect(http.StatusCreated, "PUT", "/v1/routes/b", `{"service":"b","active":true,"ends":"2999-12-31"}`)
		exec(`INSERT INTO routes (service, record) VALUES ('Broken One', '{"service":"Broken One","active":1}')`)
		var got []string
		for after, more := "", true; more; {
			p := decoded[routePage](t, srv.expect(http.StatusOK, "GET", "/v1/routes?limit=2&after="+strings.ReplaceAll(after, " ", "%20"), ""))
			for _, r := range p.Routes {
				got = append(got, r.Service)
				if (len(r.Warnings) > 0) != (r.Service == "a") || (r.Broken != "") != (r.Service == "Broken One") || len(r.Record) < 10 {
					t.Errorf("the list has %+v", r)
				}
			}
			after, more = p.Next, p.Next != ""
		}
		if want := []string{"Broken One", "a", "b"}; !slices.Equal(got, want) {
			t.Errorf("the list has %q, want %q", got, want)
		}
	})
}

func TestRoutes_ABrokenRecordCanBeSeenReplacedAndDeleted(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s store.Store, exec func(string)) {
		srv := start(t, s)
		breakIt := func() {
			exec(`DELETE FROM routes`)
			exec(`INSERT INTO routes (service, record) VALUES ('organizationservice', '{"service":"organizationservice","active":true,"colour":"red"}')`)
		}
		breakIt()
		for request, body := range map[string]string{
			"GET " + routePath: "", "PUT " + routePath + "/weights": `{"a":1}`, "PUT " + routePath + "/active": `{"active":true}`,
			"POST /v1/explain": `{"service":"organizationservice"}`,
		} {
			method, path, _ := strings.Cut(request, " ")
			a := srv.expect(http.StatusConflict, method, path, body)
			if p := a.problem(t); p.Code != "record_broken" || !strings.Contains(a.body, `"colour":"red"`) {
				t.Errorf("%s = %s", request, a.body)
			}
		}
		d := decoded[dryRun](t, srv.expect(http.StatusOK, "PUT", routePath+"?dryRun=true", split))
		if d.Before != nil || d.After == nil {
			t.Errorf("a dry run of a repair = %+v", d)
		}
		srv.expect(http.StatusOK, "PUT", routePath, split)
		srv.expect(http.StatusOK, "GET", routePath, "")
		breakIt()
		srv.expect(http.StatusOK, "DELETE", routePath, "")
		srv.expect(http.StatusNotFound, "GET", routePath, "")
	})
}

func TestRoutes_WeightsAndActiveChangeNothingElse(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		for path, body := range map[string]string{"/weights": `{"old":1}`, "/active": `{"active":true}`} {
			srv.expect(http.StatusNotFound, "PUT", routePath+path, body)
		}
		srv.expect(http.StatusCreated, "PUT", routePath, full)
		tag := srv.expect(http.StatusOK, "PUT", routePath+"/weights", `{"next":0,"new":2147483647,"old":0}`).header.Get("ETag")
		want := strings.NewReplacer(`"weight": 94`, `"weight":0`, `"weight": 5,`, `"weight":2147483647,`, `"weight": 1`, `"weight":0`).Replace(full)
		if a := srv.expect(http.StatusOK, "GET", routePath, ""); !sameJSON(t, a.body, want) {
			t.Errorf("after the weights: %s", a.body)
		}
		srv.expect(http.StatusOK, "PUT", routePath+"/active", `{"active":false}`, "If-Match", tag)
		srv.expect(http.StatusPreconditionFailed, "PUT", routePath+"/active", `{"active":true}`, "If-Match", tag)
		if a := srv.expect(http.StatusOK, "GET", routePath, ""); !sameJSON(t, a.body, strings.Replace(want, `"active": true`, `"active":false`, 1)) {
			t.Errorf("after active: %s", a.body)
		}
	})
}

func TestRoutes_HistoryGoesThroughPages(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		if p := decoded[historyPage](t, srv.expect(http.StatusOK, "GET", routePath+"/history", "")); len(p.Entries) != 0 {
			t.Errorf("a record that never was has %+v", p)
		}
		srv.expect(http.StatusCreated, "PUT", routePath+"?why=first", split)
		srv.expect(http.StatusCreated, "PUT", "/v1/routes/other", `{"service":"other","active":true}`)
		for i := range 4 {
			srv.expect(http.StatusOK, "PUT", routePath+"/weights?why=step", fmt.Sprintf(`{"old":%d,"new":1}`, i))
		}
		var got []int64
		for query := "?limit=2"; ; {
			p := decoded[historyPage](t, srv.expect(http.StatusOK, "GET", routePath+"/history"+query, ""))
			for _, e := range p.Entries {
				got = append(got, e.Revision)
			}
			if p.Next == 0 {
				break
			}
			query = fmt.Sprintf("?limit=2&before=%d", p.Next)
		}
		if want := []int64{6, 5, 4, 3, 1}; !slices.Equal(got, want) {
			t.Errorf("revisions %v, want %v", got, want)
		}
		p := decoded[historyPage](t, srv.expect(http.StatusOK, "GET", routePath+"/history?before=4", ""))
		if last := p.Entries[1]; len(p.Entries) != 2 || string(last.Before) != "null" || !sameJSON(t, string(last.After), split) || last.Why != "first" || last.At.IsZero() {
			t.Errorf("the first change = %+v", last)
		}
	})
}

func TestRoutes_RollbackIsAChangeOfItsOwn(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		srv.expect(http.StatusCreated, "PUT", routePath, split) // 1
		srv.expect(http.StatusOK, "PUT", routePath, full)       // 2
		srv.expect(http.StatusOK, "DELETE", routePath, "")      // 3
		rollback := func(status int, revision int) answer {
			t.Helper()
			return srv.expect(status, "POST", routePath+"/rollback", fmt.Sprintf(`{"revision":%d}`, revision))
		}
		rollback(http.StatusNotFound, 3) // it is deleted already
		if w := decoded[written](t, rollback(http.StatusCreated, 2)); w.Revision != 4 || !sameJSON(t, string(w.Record), full) {
			t.Errorf("back to 2 = %+v", w)
		}
		if w := decoded[written](t, rollback(http.StatusOK, 1)); w.Revision != 5 || !sameJSON(t, string(w.Record), split) {
			t.Errorf("back to 1 = %+v", w)
		}
		if w := decoded[written](t, rollback(http.StatusOK, 3)); w.Revision != 6 || string(w.Record) != "null" {
			t.Errorf("back to 3 = %+v", w)
		}
		srv.expect(http.StatusCreated, "PUT", "/v1/routes/other", `{"service":"other","active":true}`) // 7
		for _, revision := range []int{7, 99, 0, -1} {
			if p := rollback(http.StatusUnprocessableEntity, revision).problem(t); !slices.Equal(p.pointers(), []string{"/revision"}) {
				t.Errorf("back to %d = %+v", revision, p)
			}
		}
		p := decoded[historyPage](t, srv.expect(http.StatusOK, "GET", routePath+"/history?limit=1", ""))
		if p.Entries[0].Why != "back to revision 3" {
			t.Errorf("the reason is %q", p.Entries[0].Why)
		}
	})
}

func TestRoutes_ADryRunTellsAndChangesNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		create := decoded[dryRun](t, srv.expect(http.StatusOK, "PUT", routePath+"?dryRun=true", split))
		if create.Before != nil || create.After == nil || len(create.Changes) != 1 || create.Changes[0].Op != "add" {
			t.Errorf("creating = %+v", create)
		}
		srv.expect(http.StatusNotFound, "GET", routePath, "")
		tag := srv.expect(http.StatusCreated, "PUT", routePath, split).header.Get("ETag")
		head, err := s.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		weights := decoded[dryRun](t, srv.expect(http.StatusOK, "PUT", routePath+"/weights?dryRun=true", `{"old":8,"new":2}`, "If-Match", tag))
		var pointers []string
		for _, c := range weights.Changes {
			pointers = append(pointers, c.Op+" "+c.Pointer+" "+string(*c.Before)+" "+string(*c.After))
		}
		if want := []string{"replace /variants/0/weight 9 8", "replace /variants/1/weight 1 2"}; !slices.Equal(pointers, want) {
			t.Errorf("changes %q, want %q", pointers, want)
		}
		m := weights.Moves
		if m.Sample != sampleKeys || m.Moved < 850 || m.Moved > 1150 || len(m.Between) != 1 || m.Between[0].From != "old" || m.Between[0].To != "new" {
			t.Errorf("from 9:1 to 8:2 moves %+v, want about a tenth from old to new", m)
		}
		none := decoded[dryRun](t, srv.expect(http.StatusOK, "PUT", routePath+"?dryRun=true", split))
		if len(none.Changes) != 0 || none.Moves.Moved != 0 {
			t.Errorf("no change = %+v", none)
		}
		grown := decoded[dryRun](t, srv.expect(http.StatusOK, "PUT", routePath+"?dryRun=true", full))
		var added []string
		for _, c := range grown.Changes {
			if c.Op == "add" {
				added = append(added, c.Pointer)
			}
		}
		if want := []string{"/ends", "/labelRules", "/onUnavailable", "/owner", "/rules", "/sticky", "/variants/2"}; !slices.Equal(added, want) {
			t.Errorf("a record that grows has new %q, want %q", added, want)
		}
		gone := decoded[dryRun](t, srv.expect(http.StatusOK, "DELETE", routePath+"?dryRun=true", ""))
		if gone.After != nil || gone.Changes[0].Op != "remove" {
			t.Errorf("deleting = %+v", gone)
		}
		srv.expect(http.StatusOK, "PUT", routePath+"/active?dryRun=true", `{"active":false}`)
		srv.expect(http.StatusOK, "POST", routePath+"/rollback?dryRun=true", `{"revision":1}`)
		srv.expect(http.StatusPreconditionFailed, "DELETE", routePath+"?dryRun=true", "", "If-Match", `"9.x"`)
		srv.expect(http.StatusUnprocessableEntity, "PUT", routePath+"?dryRun=true", `{"service":"x","active":true}`)
		if now, err := s.Head(t.Context()); err != nil || now != head {
			t.Errorf("Head() = %v, %v, want %v: a dry run changed something", now, err, head)
		}
		srv.expect(http.StatusOK, "PUT", routePath+"?dryRun=false", full)
	})
}

func TestRoutes_OfTwoWritersOneWins(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		tag := srv.expect(http.StatusCreated, "PUT", routePath, split).header.Get("ETag")
		statuses := make([]int, 2)
		var running sync.WaitGroup
		for i := range statuses {
			running.Go(func() {
				statuses[i] = srv.do("PUT", routePath+"/weights", fmt.Sprintf(`{"old":%d,"new":5}`, i), "If-Match", tag).status
			})
		}
		running.Wait()
		slices.Sort(statuses)
		if !slices.Equal(statuses, []int{http.StatusOK, http.StatusPreconditionFailed}) {
			t.Errorf("statuses %v, want one 200 and one 412", statuses)
		}
		srv.expect(http.StatusPreconditionFailed, "PUT", routePath, split, "If-None-Match", "*")
	})
}

func TestRoutes_TokensHoldForAllOfThem(t *testing.T) {
	t.Parallel()
	srv := start(t, openSQLite(t), withTokens)
	srv.expect(http.StatusCreated, "PUT", "/v1/routes/*", `{"service":"*","active":true}`, "Authorization", "Bearer "+allSecret)
	requests := []struct {
		request, body string
		write         bool
	}{
		{"GET /v1/routes/*", "", false}, {"GET /v1/routes/licensingservice", "", false}, {"GET /v1/routes/licensingservice/history", "", false},
		{"POST /v1/explain", `{"service":"licensingservice"}`, false}, {"GET /v1/gateways", "", false},
		{"PUT /v1/routes/*", `{"service":"*","active":true}`, true}, {"DELETE /v1/routes/*", "", true},
		{"PUT /v1/routes/licensingservice", `{"service":"licensingservice","active":true}`, true},
		{"PUT /v1/routes/licensingservice/weights", `{"a":1}`, true}, {"PUT /v1/routes/licensingservice/active", `{"active":true}`, true},
		{"POST /v1/routes/licensingservice/rollback", `{"revision":1}`, true}, {"DELETE /v1/routes/licensingservice", "", true},
		{"PUT /v1/routes/licensingservice?dryRun=true", `{"service":"licensingservice","active":true}`, true},
	}
	for _, r := range requests {
		method, path, _ := strings.Cut(r.request, " ")
		srv.expect(http.StatusUnauthorized, method, path, r.body)
		srv.expect(http.StatusForbidden, method, path, r.body, "Authorization", "Bearer "+writeSecret) // for organization
		if r.write {
			srv.expect(http.StatusForbidden, method, strings.NewReplacer("licensing", "organization", "*", "organizationservice").Replace(path),
				r.body, "Authorization", "Bearer "+readSecret)
		}
	}
	list := srv.expect(http.StatusOK, "GET", "/v1/routes", "", "Authorization", "Bearer "+writeSecret)
	if strings.Contains(list.body, `"*"`) {
		t.Errorf("a token for organization sees %s", list.body)
	}
}
