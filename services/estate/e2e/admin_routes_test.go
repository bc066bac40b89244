package e2e_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"specialroutes.example/services/routing"
)

// written is an answer to a change.
type written struct {
	Service  string
	Revision int64
	Record   json.RawMessage
	Warnings []string
	Applied  *applied
}

// applied says how far a change has got.
type applied struct {
	Of, Now  int
	Behind   []string
	SetAside []string
}

// historyPage is an answer of GET …/history.
type historyPage struct {
	Entries []historyEntry
	Next    int64
}

type historyEntry struct {
	Revision int64
	ETag     string
	At       time.Time
	Who, Why string
	Before   json.RawMessage
	After    json.RawMessage
}

// dryRun is an answer to a change that is not made.
type dryRun struct {
	DryRun        bool
	Service       string
	Before, After json.RawMessage
	Changes       []struct {
		Pointer, Op   string
		Before, After json.RawMessage
	}
	Moves    routing.Moves
	Warnings []string
}

func (r routes) history(t testing.TB, service string) []historyEntry {
	t.Helper()
	got := call(t, "GET", r.full(service, "history"), nil, nil)
	if got.status != 200 {
		t.Fatalf("GET history: status %d: %s", got.status, got.body)
	}
	return decoded[historyPage](t, got).Entries
}

// etagOf is the present ETag of a record, "" when there is none.
func (r routes) etagOf(t testing.TB, service string) string {
	t.Helper()
	return call(t, "GET", r.full(service), nil, nil).header.Get("ETag")
}

// sameJSON tells whether two documents hold the same, whatever their order.
func sameJSON(t testing.TB, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatalf("%v: %s", err, a)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return reflect.DeepEqual(x, y)
}

func wantJSON(t testing.TB, what string, got []byte, want string) {
	t.Helper()
	if !sameJSON(t, got, []byte(want)) {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// pair is a record with two variants in the form of the book.
func pair(service string, oldWeight, newWeight int64, members ...string) string {
	return recordOf(service, []string{
		fmt.Sprintf(`{"name":"old","weight":%d}`, oldWeight), fmt.Sprintf(`{"name":"new","weight":%d,"endpoint":"http://orgservice-new:8087"}`, newWeight),
	}, members...)
}

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	wantProblem(t, call(t, "GET", r.full("round-trip"), nil, nil), 404)
	for i, document := range []string{
		`{"service":"round-trip","active":true}`,
		`{"service":"round-trip","active":false,"rules":[],"labelRules":[]}`,
		pair("round-trip", 1, 0),
		pair("round-trip", 0, 2147483647, `"sticky":{"by":"gateway-cookie","maxAge":34560000}`, `"owner":"Ω team","ends":"2020-02-29"`),
		strings.ReplaceAll(whole("", ""), "bad-input", "round-trip"),
		recordOf("round-trip", []string{`{"name":"old","weight":1}`, `{"name":"a","weight":0,"endpoint":"HTTPS://Host:443/%2Fa/"}`, `{"name":"b","weight":2,"service":"c","selector":{"version":"1.10"}}`}),
	} {
		want := 200
		if i == 0 {
			want = 201
		}
		put := sendJSON(t, "PUT", r.full("round-trip"), document)
		if put.status != want {
			t.Errorf("PUT %s: status = %d, want %d: %s", document, put.status, want, put.body)
		}
		if location := put.header.Get("Location"); (location == "/v1/routes/round-trip") != (i == 0) {
			t.Errorf("Location = %q with status %d", location, put.status)
		}
		w := decoded[written](t, put)
		wantJSON(t, "the answer to PUT", w.Record, document)
		got := call(t, "GET", r.full("round-trip"), nil, nil)
		wantJSON(t, "GET", got.body, document)
		if etag := got.header.Get("ETag"); etag == "" || etag != put.header.Get("ETag") || !strings.HasPrefix(etag, fmt.Sprintf("\"%d.", w.Revision)) {
			t.Errorf("ETag = %q after %q of revision %d", etag, put.header.Get("ETag"), w.Revision)
		}
		if w.Service != "round-trip" {
			t.Errorf("service = %q", w.Service)
		}
	}
	deleted := call(t, "DELETE", r.full("round-trip"), nil, nil)
	if w := decoded[written](t, deleted); deleted.status != 200 || string(w.Record) != "null" || w.Revision != 7 {
		t.Errorf("DELETE: status %d: %s", deleted.status, deleted.body)
	}
	wantProblem(t, call(t, "GET", r.full("round-trip"), nil, nil), 404)
	wantProblem(t, call(t, "DELETE", r.full("round-trip"), nil, nil), 404)
}

func TestTheListOfRecordsIsPagedSortedAndWarnsOfWhatHasEnded(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	var want []string
	for i := range 25 {
		service := fmt.Sprintf("listed-%02d", (i*7)%25)
		members := []string{}
		if i == 3 {
			members = append(members, `"ends":"2020-01-01"`, `"owner":"nobody"`)
		}
		r.save(t, service, pair(service, 1, int64(i), members...))
		want = append(want, service)
	}
	r.save(t, "*", `{"service":"*","active":true,"onUnavailable":"fail"}`)
	want = append(want, "*")
	slices.Sort(want)
	var got, warned []string
	next := ""
	for pages := 0; pages == 0 || next != ""; pages++ {
		if pages > 26 {
			t.Fatal("the pages have no end")
		}
		page := decoded[struct {
			Routes []struct {
				Service, ETag string
				Revision      int64
				Record        json.RawMessage
				Warnings      []string
			}
			Next string
		}](t, call(t, "GET", r.url+"/v1/routes?limit=10&after="+next, nil, nil))
		if len(page.Routes) > 10 {
			t.Errorf("a page has %d records", len(page.Routes))
		}
		for _, entry := range page.Routes {
			got = append(got, entry.Service)
			if len(entry.Warnings) > 0 {
				warned = append(warned, entry.Service)
			}
			if etag := r.etagOf(t, entry.Service); etag != entry.ETag && etag != `"`+entry.ETag+`"` {
				t.Errorf("%s: etag = %q in the list, %q at GET", entry.Service, entry.ETag, etag)
			}
		}
		next = page.Next
	}
	if !slices.Equal(got, want) {
		t.Errorf("the pages hold %v, want %v", got, want)
	}
	if len(warned) != 1 {
		t.Errorf("warned of %v, want the one that has ended", warned)
	}
}

func TestWeightsAndActiveChangeNothingElse(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	const service = "bad-input"
	r.save(t, service, whole("", ""))
	got := sendJSON(t, "PUT", r.full(service, "weights"), `{"new":1,"old":9}`)
	want := strings.NewReplacer(`"old","weight":5`, `"old","weight":9`, `"new","weight":5`, `"new","weight":1`).Replace(whole("", ""))
	if got.status != 200 {
		t.Fatalf("weights: status %d: %s", got.status, got.body)
	}
	wantJSON(t, "the answer", decoded[written](t, got).Record, want)
	wantJSON(t, "GET", call(t, "GET", r.full(service), nil, nil).body, want)
	got = sendJSON(t, "PUT", r.full(service, "active"), `{"active":false}`)
	if got.status != 200 {
		t.Fatalf("active: status %d: %s", got.status, got.body)
	}
	want = strings.Replace(want, `"active":true`, `"active":false`, 1)
	wantJSON(t, "GET", call(t, "GET", r.full(service), nil, nil).body, want)
	if etag := r.etagOf(t, service); etag != got.header.Get("ETag") {
		t.Errorf("ETag = %q, the last change said %q", etag, got.header.Get("ETag"))
	}
	for _, part := range []struct{ name, body string }{{"weights", `{"old":1}`}, {"active", `{"active":true}`}, {"rollback", `{"revision":1}`}} {
		method := "PUT"
		if part.name == "rollback" {
			method = "POST"
		}
		doc := wantProblem(t, sendJSON(t, method, r.full("nobody", part.name), part.body), map[bool]int{true: 422, false: 404}[part.name == "rollback"])
		if doc.Code == "" {
			t.Errorf("%s of a record that is not there: %+v", part.name, doc)
		}
	}
}

func TestHistoryTellsWhoWhenWhyBeforeAndAfterAndARollbackIsANewRevision(t *testing.T) {
	t.Parallel()
	base := "http://" + guarded(t)
	poll(t, 20*time.Second, "ready", func() error { return wantStatus(base+"/readyz", 200) })
	r := routes{url: base}
	ops, team := [2]string{"Authorization", "Bearer " + opsSecret}, [2]string{"Authorization", "Bearer " + teamSecret}
	const service = "lab-service"
	began := time.Now().Add(-time.Minute)
	one, two := pair(service, 1, 0), pair(service, 1, 1, `"owner":"team"`)
	change := func(method, url, body string, status int, h [2]string) answer {
		t.Helper()
		got := sendJSON(t, method, url, body, h)
		if got.status != status {
			t.Fatalf("%s %s: status %d, want %d: %s", method, url, got.status, status, got.body)
		}
		return got
	}
	change("PUT", r.full(service)+"?why=begin%20with%20%C3%BC", one, 201, ops)
	change("PUT", r.full(service), two, 200, team)
	change("PUT", r.full(service, "weights")+"?why=more", `{"old":1,"new":2}`, 200, ops)
	change("DELETE", r.full(service)+"?why=gone", "", 200, ops)
	change("POST", r.full(service, "rollback"), `{"revision":2}`, 201, team)
	change("POST", r.full(service, "rollback")+"?why=again", `{"revision":4}`, 200, ops) // which was the delete
	change("POST", r.full(service, "rollback"), `{"revision":1}`, 201, ops)
	change("POST", r.full(service, "rollback"), `{"revision":3}`, 200, ops)
	three := strings.Replace(two, `"new","weight":1`, `"new","weight":2`, 1)

	page := decoded[historyPage](t, change("GET", r.full(service, "history"), "", 200, team))
	entries := page.Entries
	slices.Reverse(entries)
	for i, want := range []struct{ who, why, before, after string }{
		{"ops", "begin with ü", "null", one},
		{"team", "", one, two},
		{"ops", "more", two, three},
		{"ops", "gone", three, "null"},
		{"team", "2", "null", two}, // names the revision
		{"ops", "again", two, "null"},
		{"ops", "1", "null", one},
		{"ops", "3", one, three},
	} {
		if i >= len(entries) {
			t.Fatalf("%d entries", len(entries))
		}
		e := entries[i]
		if e.Revision != int64(i+1) || e.Who != want.who || !strings.Contains(e.Why, want.why) || (want.why == "" && e.Why != "") {
			t.Errorf("entry %d: revision %d, who %q, why %q; want %+v", i, e.Revision, e.Who, e.Why, want)
		}
		if e.At.Before(began) || e.At.After(time.Now().Add(time.Minute)) {
			t.Errorf("entry %d: at %v", i, e.At)
		}
		wantJSON(t, fmt.Sprintf("entry %d, before", i), e.Before, want.before)
		wantJSON(t, fmt.Sprintf("entry %d, after", i), e.After, want.after)
	}
	wantJSON(t, "after the last rollback", change("GET", r.full(service), "", 200, ops).body, three)

	// A rollback of what is another service's, or was never, changes nothing.
	change("PUT", r.full("lab-other"), pair("lab-other", 1, 1), 201, ops)
	for _, revision := range []string{"9", "10", "99999"} {
		doc := wantProblem(t, sendJSON(t, "POST", r.full(service, "rollback"), `{"revision":`+revision+`}`, ops), 422)
		if !doc.names("/revision") {
			t.Errorf("revision %s: %+v", revision, doc)
		}
	}
	// Pages: newest first, each once.
	var revisions []int64
	next := int64(0)
	for pages := 0; pages == 0 || next != 0; pages++ {
		url := r.full(service, "history") + "?limit=3"
		if next != 0 {
			url += fmt.Sprintf("&before=%d", next)
		}
		page := decoded[historyPage](t, change("GET", url, "", 200, ops))
		for _, e := range page.Entries {
			revisions = append(revisions, e.Revision)
		}
		if next = page.Next; pages > 8 {
			t.Fatal("the pages have no end")
		}
	}
	if !slices.Equal(revisions, []int64{8, 7, 6, 5, 4, 3, 2, 1}) {
		t.Errorf("the pages hold %v", revisions)
	}
	if entries := decoded[historyPage](t, change("GET", r.full("lab-never", "history"), "", 200, ops)).Entries; len(entries) != 0 {
		t.Errorf("a record that never was has a history: %+v", entries)
	}
	for _, path := range []string{"", "/history", "/weights", "/active", "/rollback"} {
		method := map[string]string{"": "GET", "/history": "GET", "/rollback": "POST"}[path]
		if method == "" {
			method = "PUT"
		}
		wantProblem(t, sendJSON(t, method, r.full("other")+path, "{}", team), 403) // not its prefix
		wantProblem(t, sendJSON(t, method, r.full("*")+path, "{}", team), 403)
		wantProblem(t, sendJSON(t, method, r.full(service)+path, "{}"), 401)
	}
}

func TestADryRunShowsTheDifferenceAndTheMovesAndChangesNothing(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	const service = "dry"
	sticky := `"sticky":{"by":"header","name":"tmx-user-id"}`
	before, after := pair(service, 5, 5, sticky), pair(service, 7, 3, sticky, `"owner":"team"`)
	nothing := func(what string) {
		t.Helper()
		if etag := r.etagOf(t, service); etag != "" {
			t.Errorf("%s: there is a record with ETag %s", what, etag)
		}
	}
	got := sendJSON(t, "PUT", r.full(service)+"?dryRun=true", before)
	if d := decoded[dryRun](t, got); got.status != 200 || !d.DryRun || string(d.Before) != "null" || !sameJSON(t, d.After, []byte(before)) {
		t.Errorf("of a record that is not there: status %d: %s", got.status, got.body)
	}
	nothing("after a dry run")
	r.save(t, service, before)
	etag := r.etagOf(t, service)
	for name, test := range map[string]struct {
		method, url, body string
		after             string
		changes           []string
	}{
		"of a new record": {"PUT", r.full(service), after, after, []string{"add /owner", "replace /variants/0/weight", "replace /variants/1/weight"}},
		"of weights":      {"PUT", r.full(service, "weights"), `{"old":7,"new":3}`, pair(service, 7, 3, sticky), []string{"replace /variants/0/weight", "replace /variants/1/weight"}},
		"of active":       {"PUT", r.full(service, "active"), `{"active":false}`, strings.Replace(before, "true", "false", 1), []string{"replace /active"}},
		"of a delete":     {"DELETE", r.full(service), "", "null", nil},
		"of a rollback":   {"POST", r.full(service, "rollback"), `{"revision":1}`, before, nil},
		"of nothing":      {"PUT", r.full(service), before, before, nil},
	} {
		got := sendJSON(t, test.method, test.url+"?dryRun=true", test.body)
		if got.status != 200 {
			t.Errorf("%s: status %d: %s", name, got.status, got.body)
			continue
		}
		d := decoded[dryRun](t, got)
		wantJSON(t, name+", before", d.Before, before)
		wantJSON(t, name+", after", d.After, test.after)
		var changes []string
		for _, c := range d.Changes {
			changes = append(changes, c.Op+" "+c.Pointer)
		}
		slices.Sort(changes)
		if name != "of a delete" && !slices.Equal(changes, test.changes) {
			t.Errorf("%s: changes = %v, want %v", name, changes, test.changes)
		}
		if name == "of a new record" || name == "of weights" {
			// Two tenths move, all of them from new to old, as the formula says.
			want := routing.CountMoves(compiled(t, before), compiled(t, test.after), d.Moves.Sample)
			if !reflect.DeepEqual(d.Moves, want) {
				t.Errorf("%s: moves = %+v, want %+v", name, d.Moves, want)
			}
			if d.Moves.Sample < 1000 || len(d.Moves.Between) != 1 || d.Moves.Between[0].From != "new" || d.Moves.Between[0].To != "old" {
				t.Errorf("%s: moves = %+v, want them from new to old only", name, d.Moves)
			}
			if share := float64(d.Moves.Moved) / float64(d.Moves.Sample); share < 0.15 || share > 0.25 {
				t.Errorf("%s: %v of the sample moves, want about 0.2", name, share)
			}
		} else if name != "of a delete" && name != "of active" && d.Moves.Moved != 0 {
			t.Errorf("%s: moves = %+v, want none", name, d.Moves)
		}
		if got.header.Get("ETag") == etag {
			t.Errorf("%s: the ETag is that of the record", name)
		}
	}
	wantProblem(t, sendJSON(t, "PUT", r.full(service)+"?dryRun=true&wait=applied", after), 400) // for what?
	wantProblem(t, sendJSON(t, "DELETE", r.full("nobody")+"?dryRun=true", ""), 404)
	wantProblem(t, sendJSON(t, "PUT", r.full(service)+"?dryRun=true", pair(service, 0, 0)), 422)
	wantProblem(t, sendJSON(t, "PUT", r.full(service)+"?dryRun=true", after, [2]string{"If-Match", `"99.abc"`}), 412)
	if now := r.etagOf(t, service); now != etag || len(r.history(t, service)) != 1 {
		t.Errorf("ETag was %s and is %s, the history has %d entries", etag, now, len(r.history(t, service)))
	}
}

// compiled compiles a record's document.
func compiled(t testing.TB, document string) *routing.Route {
	t.Helper()
	var record routing.Record
	if err := json.Unmarshal([]byte(document), &record); err != nil {
		t.Fatal(err)
	}
	route, err := routing.Compile(&record, nil)
	if err != nil {
		t.Fatal(err)
	}
	return route
}

// race calls f for each of n writers at the same time and returns how often each
// status came.
func race(t testing.TB, n int, f func(i int) (answer, error)) map[int]int {
	t.Helper()
	var group sync.WaitGroup
	start, statuses := make(chan struct{}), make([]int, n)
	for i := range n {
		group.Go(func() {
			<-start
			got, err := f(i)
			if err != nil {
				t.Errorf("writer %d: %v", i, err)
			}
			statuses[i] = got.status
		})
	}
	close(start)
	group.Wait()
	counted := map[int]int{}
	for _, status := range statuses {
		counted[status]++
	}
	return counted
}

func TestOfTwoWritersWithTheSameETagOneWinsAndTheOtherLearnsOfIt(t *testing.T) {
	t.Parallel()
	// Writer i sends to one process or, where there are two on one database, to each.
	exercise := func(t *testing.T, processes ...routes) {
		r := processes[0]
		at := func(i int) routes { return processes[i%len(processes)] }
		put := func(i int, document string, h [2]string) (answer, error) {
			return do("PUT", at(i).full("raced"), strings.NewReader(document), headers{{"Content-Type", jsonType}, h})
		}
		// Five that create at once: one does.
		created := race(t, 5, func(i int) (answer, error) {
			return put(i, pair("raced", 1, int64(i)), [2]string{"If-None-Match", "*"})
		})
		if created[201] != 1 || created[412] != 4 {
			t.Errorf("five that create: %v, want one 201 and four 412", created)
		}
		for round := range 15 {
			etag := r.etagOf(t, "raced")
			won := race(t, 2, func(i int) (answer, error) {
				return put(i, pair("raced", int64(round+2), int64(i)), [2]string{"If-Match", etag})
			})
			if won[200] != 1 || won[412] != 1 {
				t.Errorf("round %d: %v, want one 200 and one 412", round, won)
			}
		}
		etag := r.etagOf(t, "raced")
		won := race(t, 2, func(i int) (answer, error) {
			return do("PUT", at(i).full("raced", "weights"), strings.NewReader(fmt.Sprintf(`{"old":50,"new":%d}`, i)), headers{{"Content-Type", jsonType}, {"If-Match", etag}})
		})
		if won[200] != 1 || won[412] != 1 {
			t.Errorf("two that set weights: %v, want one 200 and one 412", won)
		}
		if n := len(r.history(t, "raced")); n != 17 {
			t.Errorf("the history has %d entries, want 17", n)
		}
	}
	t.Run("SQLite", func(t *testing.T) { exercise(t, specialOnly(t)) })
	t.Run("PostgreSQL", func(t *testing.T) {
		p := postgresLab(t)
		exercise(t, routes{url: p.url}, routes{url: p.replica(t).url})
	})
}

func TestConditionsHoldForEveryChangeAndEveryRead(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	const service = "conditional"
	r.save(t, service, pair(service, 1, 0))
	first := r.etagOf(t, service)
	r.save(t, "another", pair("another", 1, 1))
	if now := r.etagOf(t, service); now != first {
		t.Errorf("another record's change made %s of the ETag %s", now, first)
	}
	r.save(t, service, pair(service, 1, 1))
	present := r.etagOf(t, service)
	before := stored(t, r)
	for _, test := range []struct{ method, below, body string }{
		{"PUT", "", pair(service, 1, 2)}, {"PUT", "/weights", `{"old":1,"new":2}`}, {"PUT", "/active", `{"active":false}`},
		{"POST", "/rollback", `{"revision":1}`}, {"DELETE", "", ""},
	} {
		for _, h := range [][2]string{{"If-Match", first}, {"If-Match", `"1.nothing"`}, {"If-None-Match", "*"}, {"If-None-Match", present}, {"If-None-Match", first + ", " + present}} {
			got := sendJSON(t, test.method, r.full(service)+test.below, test.body, h)
			if doc := wantProblem(t, got, 412); doc.Code != "precondition_failed" {
				t.Errorf("%s %s, %s: %+v", test.method, test.below, h, doc)
			}
		}
	}
	wantProblem(t, sendJSON(t, "PUT", r.full("nobody"), pair("nobody", 1, 1), [2]string{"If-Match", "*"}), 412)
	if after := stored(t, r); after != before {
		t.Errorf("something was stored:\nbefore %s\nafter  %s", before, after)
	}
	got := call(t, "GET", r.full(service), nil, headers{{"If-None-Match", present}})
	if got.status != 304 || len(got.body) != 0 || got.header.Get("ETag") != present {
		t.Errorf("GET with the present ETag: status %d, ETag %s: %s", got.status, got.header.Get("ETag"), got.body)
	}
	if got := call(t, "GET", r.full(service), nil, headers{{"If-None-Match", first}}); got.status != 200 {
		t.Errorf("GET with an old ETag: status %d", got.status)
	}
	for _, h := range [][2]string{{"If-Match", first + ", " + present}, {"If-Match", "*"}, {"If-None-Match", first}} {
		if got := sendJSON(t, "PUT", r.full(service), pair(service, 1, 3), h); got.status != 200 {
			t.Errorf("%s: status %d: %s", h, got.status, got.body)
		}
		present = r.etagOf(t, service)
	}
	if got := sendJSON(t, "PUT", r.full("created"), pair("created", 1, 1), [2]string{"If-None-Match", "*"}); got.status != 201 {
		t.Errorf("If-None-Match: * of a new record: status %d: %s", got.status, got.body)
	}
	if got := call(t, "DELETE", r.full(service), nil, headers{{"If-Match", present}}); got.status != 200 {
		t.Errorf("DELETE with the present ETag: status %d: %s", got.status, got.body)
	}
}

func TestTheBooksViewPointsToTheWholeRecordWhereItCannotShowIt(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	r.save(t, "plain", pair("plain", 5, 5, `"owner":"team"`))
	if b := r.readBook(t, "plain"); b != (book{"plain", "Y", "http://orgservice-new:8087", 5}) {
		t.Errorf("the book's view of two variants: %+v", b)
	}
	// A change through the book's view keeps what it does not show.
	r.write(t, book{"plain", "N", "http://x:1", 3})
	wantJSON(t, "the whole record", call(t, "GET", r.full("plain"), nil, nil).body,
		`{"service":"plain","active":false,"default":"old","owner":"team","variants":[{"name":"old","weight":3},{"name":"new","weight":7,"endpoint":"http://x:1"}]}`)
	for name, document := range map[string]string{
		"hundredths": pair("rich", 94, 6),
		"rules":      pair("rich", 5, 5, rulesOf(ruleTo("r", "new", `{"on":"path","prefix":"/"}`))),
		"sticky":     pair("rich", 5, 5, `"sticky":{"by":"client"}`),
		"three":      recordOf("rich", []string{`{"name":"old","weight":5}`, `{"name":"a","weight":5,"endpoint":"http://a"}`, `{"name":"b","weight":0,"endpoint":"http://b"}`}),
		"a service":  recordOf("rich", []string{`{"name":"old","weight":5}`, `{"name":"a","weight":5,"service":"a"}`}),
	} {
		r.save(t, "rich", document)
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			got := sendJSON(t, method, r.of("rich"), `{"serviceName":"rich","active":"Y","endpoint":"http://x:1","weight":5}`)
			doc := wantProblem(t, got, 409)
			if doc.Code != "not_expressible" || !strings.Contains(string(got.body), `"/v1/routes/rich"`) || !strings.Contains(got.header.Get("Link"), "/v1/routes/rich") {
				t.Errorf("%s, %s: Link = %q: %s", name, method, got.header.Get("Link"), got.body)
			}
		}
		wantJSON(t, name, call(t, "GET", r.full("rich"), nil, nil).body, document)
	}
	page := decoded[struct {
		Records []book
		LeftOut int
	}](t, call(t, "GET", r.url+"/v1/route/abtesting", nil, nil))
	if len(page.Records) != 1 || page.LeftOut != 1 {
		t.Errorf("the book's list: %+v, want one record and one left out", page)
	}
}

func TestTheRoutesKnowTheirVerbsTypesAndSizes(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	r.save(t, "bad-input", whole("", ""))
	before := stored(t, r)
	for path, verbs := range map[string][2]string{
		"/v1/routes":                    {"GET", "POST PUT DELETE PATCH"},
		"/v1/routes/bad-input":          {"GET, PUT, DELETE", "POST PATCH"},
		"/v1/routes/bad-input/weights":  {"PUT", "GET POST DELETE PATCH"},
		"/v1/routes/bad-input/active":   {"PUT", "GET POST DELETE"},
		"/v1/routes/bad-input/history":  {"GET", "POST PUT DELETE"},
		"/v1/routes/bad-input/rollback": {"POST", "GET PUT DELETE"},
		"/v1/explain":                   {"POST", "GET PUT DELETE"},
		"/v1/gateways":                  {"GET", "POST PUT DELETE"},
	} {
		for verb := range strings.FieldsSeq(verbs[1]) {
			got := sendJSON(t, verb, r.url+path, "{}")
			wantProblem(t, got, 405)
			for allowed := range strings.SplitSeq(verbs[0], ", ") {
				if !strings.Contains(strings.Join(got.header.Values("Allow"), ", "), allowed) {
					t.Errorf("%s %s: Allow = %q, want %s", verb, path, got.header.Values("Allow"), verbs[0])
				}
			}
		}
	}
	for _, part := range []struct{ method, path string }{
		{"PUT", "/v1/routes/bad-input"}, {"PUT", "/v1/routes/bad-input/weights"}, {"PUT", "/v1/routes/bad-input/active"},
		{"POST", "/v1/routes/bad-input/rollback"}, {"POST", "/v1/explain"},
	} {
		wantProblem(t, call(t, part.method, r.url+part.path, strings.NewReader(whole("", "")), headers{{"Content-Type", "text/plain"}}), 415)
		wantProblem(t, call(t, part.method, r.url+part.path, strings.NewReader(whole("", "")), nil), 415)
		wantProblem(t, sendJSON(t, part.method, r.url+part.path, strings.Repeat(" ", mib)+whole("", "")), 413)
	}
	for _, path := range []string{"/v1/routes/", "/v1/routes/bad-input/", "/v1/routes/bad-input/other", "/v1/routes/bad-input/weights/old", "/v1/explain/", "/v1/gateways/gateway"} {
		got := call(t, "GET", r.url+path, nil, nil)
		wantProblem(t, got, 404)
	}
	for _, name := range []string{"Bad", "a_b", "-a", strings.Repeat("x", 64), "**"} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			got := sendJSON(t, method, r.full(name), whole("service", fmt.Sprintf("%q", name)))
			wantRefused(t, r, before, got, "")
		}
	}
}
