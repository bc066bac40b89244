package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"specialroutes.example/specialroutes/internal/store"
)

// changed is the full record with one part replaced.
func changed(part, by string) string {
	if !strings.Contains(full, part) {
		panic(part)
	}
	return strings.Replace(full, part, by, 1)
}

// badRecords are records that must not be stored; that the rules of record.md are
// complete is tested where they are, so here is one of each kind.
func badRecords() []badRequest {
	shape := func(name, body string, pointers ...string) badRequest {
		return badRequest{name: name, path: routePath, body: body, status: http.StatusBadRequest, code: "bad_json", pointers: pointers}
	}
	meaning := func(name, body string, pointers ...string) badRequest {
		return badRequest{name: name, path: routePath, body: body, status: http.StatusUnprocessableEntity, code: "invalid_record", pointers: pointers}
	}
	many := func(n int, format string) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(format, i))
		}
		return strings.Join(list, ",")
	}
	return []badRequest{
		shape("an unknown member", changed(`"owner"`, `"colour"`), "/colour"),
		shape("an unknown member far inside", changed(`"cidr"`, `"net"`), "/rules/1/match/0/net"),
		shape("a duplicate", changed(`"name": "new", "weight": 5`, `"name": "new", "weight": 5, "weight": 6`), "/variants/1/weight"),
		shape("a duplicate in a map", changed(`{"old": 1, "next": 1}`, `{"old": 1, "old": 2}`), "/rules/1/weights/old"),
		shape("another case", changed(`"onUnavailable"`, `"onunavailable"`), "/onunavailable"),
		shape("null", changed(`"missing": "default"`, `"missing": null`), "/sticky/missing"),
		shape("a fraction", changed(`"weight": 94`, `"weight": 94.0`), "/variants/0/weight"),
		shape("a string for a list", changed(`["u-17", "u-42"]`, `"u-17"`), "/rules/0/match/0/in"),
		shape("trailing data", full+`{}`),
		meaning("nothing", `{}`, "/active", "/service"),
		meaning("another service", changed(`"service": "organizationservice"`, `"service": "other"`), "/service"),
		meaning("a service that is no name", changed(`"service": "organizationservice"`, `"service": "Other"`), "/service"),
		meaning("all weights 0", strings.NewReplacer(`94`, `0`, `"weight": 5`, `"weight": 0`, `"weight": 1`, `"weight": 0`).Replace(full), "/variants"),
		meaning("a sum above the limit", changed(`94`, `2147483647`), "/variants"),
		meaning("a weight below 0", changed(`94`, `-1`), "/variants/0/weight"),
		meaning("no weight", changed(`"name": "old", "weight": 94`, `"name": "old"`), "/variants/0/weight"),
		meaning("no default", changed(`"default": "old",`, ``), "/default"),
		meaning("an unknown default", changed(`"default": "old"`, `"default": "older"`), "/default"),
		meaning("a name twice", changed(`"name": "new"`, `"name": "old"`), "/rules/0/variant", "/variants/1/name"),
		meaning("a rule to no variant", changed(`"variant": "new"`, `"variant": "newer"`), "/rules/0/variant"),
		meaning("a regex that does not compile", changed(`[0-9]+`, `[0-9`), "/rules/2/match/0/regex"),
		meaning("an unknown kind of match", changed(`"on": "client"`, `"on": "moon"`), "/rules/1/match/0/cidr", "/rules/1/match/0/on"),
		meaning("an endpoint that is none", changed(`http://orgservice-new:8087/a%2Fb/`, `ftp://x`), "/variants/1/endpoint"),
		meaning("selectors that overlap", `{"service":"organizationservice","active":true,"default":"a","variants":[{"name":"a","weight":1},
			{"name":"b","weight":1,"selector":{"x":"1"}},{"name":"c","weight":1,"selector":{"y":"1"}}]}`, "/variants/2/selector"),
		meaning("too many variants", `{"service":"organizationservice","active":true,"default":"v0","variants":[`+many(17, `{"name":"v%d","weight":1,"endpoint":"http://a"}`)+`]}`, "/variants"),
		meaning("too many rules", changed(`"rules": [`, `"rules": [`+many(64, `{"name":"r%d","match":[{"on":"method","in":["GET"]}],"variant":"new"}`)+`,`), "/rules"),
		meaning("variants of the wildcard", `{"service":"*","active":true}`, "/service"),
		meaning("three mistakes", strings.NewReplacer(`94`, `-1`, `"fail"`, `"panic"`, `"2026-12-31"`, `"31.12."`).Replace(full), "/ends", "/onUnavailable", "/variants/0/weight"),
	}
}

// badParts are bad requests for the parts of a record.
func badParts() []badRequest {
	one := func(method, path, body string, status int, code string, pointers ...string) badRequest {
		return badRequest{name: method + " " + path + " " + body, method: method, path: path, body: body, status: status, code: code, pointers: pointers}
	}
	const shape, meaning = http.StatusBadRequest, http.StatusUnprocessableEntity
	list := []badRequest{
		one("PUT", routePath+"/weights", `{"old":1,"new":1}`, meaning, "invalid_record", "/next"),
		one("PUT", routePath+"/weights", `{"old":1,"new":1,"next":1,"other/~":1}`, meaning, "invalid_record", "/other~1~0"),
		one("PUT", routePath+"/weights", `{"old":0,"new":0,"next":0}`, meaning, "invalid_record", ""),
		one("PUT", routePath+"/weights", `{"old":2147483647,"new":1,"next":0}`, meaning, "invalid_record", ""),
		one("PUT", routePath+"/weights", `{"old":-1,"new":9223372036854775807,"next":0}`, meaning, "invalid_record", "/new", "/old"),
		one("PUT", routePath+"/weights", `{}`, meaning, "invalid_record", "/new", "/next", "/old"),
		one("PUT", routePath+"/weights", `{"old":1,"old":2}`, shape, "bad_json", "/old"),
		one("PUT", routePath+"/weights", `{"old":null}`, shape, "bad_json", "/old"),
		one("PUT", routePath+"/weights", `{"old":"1"}`, shape, "bad_json", "/old"),
		one("PUT", routePath+"/weights", `[1]`, shape, "bad_json", ""),
		one("PUT", routePath+"/active", `{}`, meaning, "invalid_record", "/active"),
		one("PUT", routePath+"/active", `{"active":"Y"}`, shape, "bad_json", "/active"),
		one("PUT", routePath+"/active", `true`, shape, "bad_json", ""),
		one("POST", routePath+"/rollback", `{}`, meaning, "invalid_record", "/revision"),
		one("POST", routePath+"/rollback", `{"revision":9223372036854775807}`, meaning, "invalid_record", "/revision"),
		one("POST", routePath+"/rollback", `{"revision":"1"}`, shape, "bad_json", "/revision"),
		one("POST", "/v1/explain", `{}`, meaning, "invalid_record", "/service"),
		one("POST", "/v1/explain", `{"service":"a","request":{"method":"","path":"x","query":" ","client":"moon","draw":0,"headers":{"a b":["\u0000"]}}}`,
			meaning, "invalid_record", "/request/client", "/request/draw", "/request/headers/a b", "/request/headers/a b", "/request/method", "/request/path", "/request/query"),
		one("POST", "/v1/explain", `{"service":"a","record":{"service":"b","active":true,"default":"x"}}`, meaning, "invalid_record"),
		one("POST", "/v1/explain", `{"service":"a","record":{"service":"B","active":true}}`, meaning, "invalid_record", "/record/service"),
		one("POST", "/v1/explain", `{"service":"a","request":{"headers":{"a":"b"}}}`, shape, "bad_json", "/request/headers/a"),
		one("POST", "/v1/explain?x=1", `{"service":"a"}`, shape, "bad_request", "x"),
		one("GET", routePath+"/history?limit=0", "", shape, "bad_request", "limit"),
		one("GET", routePath+"?dryRun=true", "", shape, "bad_request", "dryRun"),
		one("GET", "/v1/gateways?limit=1", "", shape, "bad_request", "limit"),
		one("PUT", routePath+"?dryrun=true", full, shape, "bad_request", "dryrun"),
		one("PUT", routePath+"?dryRun=yes", full, shape, "bad_request", "dryRun"),
		one("PUT", routePath+"?wait=5s", full, shape, "bad_request", "wait"),
		one("DELETE", routePath+"?dryRun=true&wait=applied", "", shape, "bad_request", "wait"),
		one("PUT", bookPath+"?dryRun=true", half, shape, "bad_request", "dryRun"),
		one("POST", routePath, full, http.StatusMethodNotAllowed, "method_not_allowed"),
		one("GET", "/v1/explain", "", http.StatusMethodNotAllowed, "method_not_allowed"),
		one("GET", routePath+"/weights", "", http.StatusMethodNotAllowed, "method_not_allowed"),
		one("GET", routePath+"/nothing", "", http.StatusNotFound, "not_found"),
		one("GET", "/v1/routes/", "", http.StatusNotFound, "not_found"),
		one("GET", "/v1/routes/**", "", shape, "bad_request", "service"),
		one("GET", "/v1/routes/organizationservice%2Fhistory", "", shape, "bad_request", "service"),
	}
	for _, before := range []string{"0", "-1", "x", "", "01", "9223372036854775808"} {
		list = append(list, one("GET", routePath+"/history?before="+before, "", shape, "bad_request", "before"))
	}
	return list
}

func TestRoutes_BadInputIsRefusedByNameAndStoresNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		srv.expect(http.StatusCreated, "PUT", routePath, full)
		head, err := s.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range slices.Concat(badRecords(), badParts()) {
			t.Run(bad.name[:min(len(bad.name), 100)], func(t *testing.T) { checkRefused(t, srv, bad) })
		}
		if now, err := s.Head(t.Context()); err != nil || now != head {
			t.Errorf("Head() = %v, %v, want %v: something was stored", now, err, head)
		}
	})
}

func FuzzPutRouteNeverFailsHere(f *testing.F) {
	for _, bad := range badRecords() {
		f.Add([]byte(bad.body))
	}
	f.Add([]byte(full))
	f.Add([]byte(split))
	srv := start(f, openSQLite(f))
	f.Fuzz(func(t *testing.T, body []byte) {
		a := srv.of(t).do("PUT", routePath, string(body), "Content-Type", "application/json")
		switch {
		case a.status >= http.StatusInternalServerError:
			t.Fatalf("PUT %q = %d %s", body, a.status, a.body)
		case a.status >= http.StatusBadRequest:
			a.problem(t)
		default:
			w := decoded[written](t, a)
			if get := srv.expect(http.StatusOK, "GET", routePath, ""); !sameJSON(t, get.body, string(w.Record)) {
				t.Errorf("PUT %q = %s, GET = %s", body, a.body, get.body)
			}
		}
	})
}
