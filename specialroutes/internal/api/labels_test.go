package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"specialroutes.example/specialroutes/internal/store"
	"specialroutes.example/specialroutes/internal/tokens"
)

const labelsPath = "/v1/instances/organizationservice/org-1/labels"

// endsIn is the end of labels, so long from now.
func endsIn(d time.Duration) string {
	return time.Now().Add(d).UTC().Truncate(time.Second).Format(time.RFC3339)
}

// labelsBody is a document with those labels that ends in an hour.
func labelsBody(labels string) string {
	return fmt.Sprintf(`{"labels":%s,"ends":%q}`, labels, endsIn(time.Hour))
}

func TestLabels_AreCreatedReadReplacedAndDeleted(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		if p := srv.expect(http.StatusNotFound, "GET", labelsPath, "").problem(t); p.Code != "no_labels" {
			t.Errorf("before all: %+v", p)
		}
		lane := labelsBody(`{"zone":"alice","version":null}`)
		created := srv.expect(http.StatusCreated, "PUT", labelsPath+"?why=a+lane", lane)
		if created.header.Get("Location") != labelsPath || !strings.Contains(created.body, `"service":"organizationservice","id":"org-1","revision":1,`) {
			t.Errorf("created = %s %s", created.header, created.body)
		}
		read := srv.expect(http.StatusOK, "GET", labelsPath, "")
		if !sameJSON(t, read.body, lane) || read.header.Get("ETag") != created.header.Get("ETag") {
			t.Errorf("GET = %s %s, want %s", read.header, read.body, lane)
		}
		srv.expect(http.StatusNotModified, "GET", labelsPath, "", "If-None-Match", read.header.Get("ETag"))
		srv.expect(http.StatusOK, "PUT", labelsPath, read.body, "If-Match", read.header.Get("ETag"))
		srv.expect(http.StatusPreconditionFailed, "PUT", labelsPath, lane, "If-Match", read.header.Get("ETag"))
		srv.expect(http.StatusPreconditionFailed, "PUT", labelsPath, lane, "If-None-Match", "*")
		srv.expect(http.StatusPreconditionFailed, "DELETE", labelsPath, "", "If-Match", `"9.x"`)
		gone := srv.expect(http.StatusOK, "DELETE", labelsPath, "")
		if gone.body != `{"service":"organizationservice","id":"org-1","revision":3,"labels":null,"ends":null}`+"\n" || gone.header.Get("ETag") != "" {
			t.Errorf("DELETE = %s %s", gone.header, gone.body)
		}
		srv.expect(http.StatusNotFound, "DELETE", labelsPath, "")
		history := decoded[historyPage](t, srv.expect(http.StatusOK, "GET", labelsPath+"/history", ""))
		if len(history.Entries) != 3 || string(history.Entries[0].After) != "null" || history.Entries[2].Why != "a lane" || !sameJSON(t, string(history.Entries[2].After), lane) {
			t.Errorf("history = %+v", history)
		}
		page := decoded[historyPage](t, srv.expect(http.StatusOK, "GET", labelsPath+"/history?limit=1&before=3", ""))
		if len(page.Entries) != 1 || page.Entries[0].Revision != 2 || page.Next != 2 {
			t.Errorf("a page of history = %+v", page)
		}
	})
}

func TestLabels_AnInstanceIsNamedAsTheRegistryDoes(t *testing.T) {
	t.Parallel()
	srv := start(t, openSQLite(t))
	for _, id := range []string{"a%2Fb", "%3F%23%25", "a:b@c;d", "..", strings.Repeat("x", 255), "labels"} {
		path := "/v1/instances/svc/" + id + "/labels"
		created := srv.expect(http.StatusCreated, "PUT", path, labelsBody(`{"a":"b"}`))
		srv.expect(http.StatusOK, "GET", created.header.Get("Location"), "")
	}
	for path, pointer := range map[string]string{
		"/v1/instances/svc/a%20b/labels":                            "id",
		"/v1/instances/svc/%C3%BC/labels":                           "id",
		"/v1/instances/svc/a%00/labels":                             "id",
		"/v1/instances/svc/" + strings.Repeat("x", 256) + "/labels": "id",
		"/v1/instances/*/a/labels":                                  "service",
		"/v1/instances/Svc/a/labels":                                "service",
	} {
		p := srv.expect(http.StatusBadRequest, "PUT", path, labelsBody(`{"a":"b"}`)).problem(t)
		if !slices.Equal(p.pointers(), []string{pointer}) {
			t.Errorf("%s: mistakes at %q, want %s", path, p.pointers(), pointer)
		}
	}
}

func TestLabels_MistakesAreNamedAllAtOnce(t *testing.T) {
	t.Parallel()
	srv := start(t, openSQLite(t))
	for _, test := range []struct {
		body     string
		status   int
		pointers []string
	}{
		{`{"labels":{"a=b":"c","d":"\u0001"},"ends":"2020-01-01T00:00:00Z"}`, http.StatusUnprocessableEntity, []string{"/labels/a=b", "/labels/d", "/ends"}},
		{`{}`, http.StatusUnprocessableEntity, []string{"/labels", "/ends"}},
		{fmt.Sprintf(`{"labels":{"a":"b"},"ends":%q}`, endsIn(31*24*time.Hour)), http.StatusUnprocessableEntity, []string{"/ends"}},
		{`{"labels":null,"ends":"2020-01-01T00:00:00Z"}`, http.StatusBadRequest, []string{"/labels"}},
		{`{"labels":{"a":"b"},"ends":null}`, http.StatusBadRequest, []string{"/ends"}},
		{`{"labels":{"a":"b","a":null},"ends":"2020-01-01T00:00:00Z"}`, http.StatusBadRequest, []string{"/labels/a"}},
		{`{"labels":{"a":1},"ends":"2020-01-01T00:00:00Z"}`, http.StatusBadRequest, []string{"/labels/a"}},
		{`{"labels":{"a":"b"},"Ends":"2020-01-01T00:00:00Z"}`, http.StatusBadRequest, []string{"/Ends"}},
		{`{"labels":{"a":"b"},"end":"2020-01-01T00:00:00Z"}`, http.StatusBadRequest, []string{"/end"}},
	} {
		p := srv.expect(test.status, "PUT", labelsPath, test.body).problem(t)
		if !slices.Equal(p.pointers(), test.pointers) {
			t.Errorf("%s: mistakes at %q, want %q", test.body, p.pointers(), test.pointers)
		}
	}
	srv.expect(http.StatusNotFound, "GET", labelsPath, "")
	if h, _ := srv.store.Head(t.Context()); h.Revision != 0 {
		t.Errorf("the head has moved to %v", h)
	}
}

func TestLabels_ADryRunTellsAndChangesNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		body := labelsBody(`{"zone":"alice","version":null}`)
		d := decoded[labelsDryRun](t, srv.expect(http.StatusOK, "PUT", labelsPath+"?dryRun=true", body))
		if !d.DryRun || d.Before != nil || d.After == nil || len(d.Changes) != 1 || d.Changes[0].Op != "add" {
			t.Errorf("creating = %+v", d)
		}
		srv.expect(http.StatusNotFound, "GET", labelsPath, "")
		srv.expect(http.StatusNotFound, "DELETE", labelsPath+"?dryRun=true", "")
		srv.expect(http.StatusCreated, "PUT", labelsPath, body)
		other := strings.Replace(strings.Replace(body, `"alice"`, `null`, 1), `"version":null`, `"app":"x"`, 1)
		answer := srv.expect(http.StatusOK, "PUT", labelsPath+"?dryRun=true", other)
		const want = `[{"pointer":"/labels/app","op":"add","after":"x"},{"pointer":"/labels/version","op":"remove","before":null},` +
			`{"pointer":"/labels/zone","op":"replace","before":"alice","after":null}]`
		if _, changes, _ := strings.Cut(answer.body, `"changes":`); !sameJSON(t, strings.TrimSuffix(strings.TrimSpace(changes), "}"), want) {
			t.Errorf("replacing = %s, want the changes %s", answer.body, want)
		}
		if d := decoded[labelsDryRun](t, srv.expect(http.StatusOK, "DELETE", labelsPath+"?dryRun=true", "")); d.Before == nil || d.After != nil {
			t.Errorf("deleting = %+v", d)
		}
		srv.expect(http.StatusPreconditionFailed, "PUT", labelsPath+"?dryRun=true", body, "If-None-Match", "*")
		if read := srv.expect(http.StatusOK, "GET", labelsPath, ""); !sameJSON(t, read.body, body) {
			t.Errorf("after dry runs GET = %s", read.body)
		}
	})
}

func TestLabels_AreListedByPagesAndByService(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		ids := func(query string) (list []string, next string) {
			page := decoded[labelsPage](t, srv.expect(http.StatusOK, "GET", "/v1/instances"+query, ""))
			for _, i := range page.Instances {
				list = append(list, i.Service+"/"+i.ID)
			}
			return list, page.Next
		}
		if list, next := ids(""); list != nil || next != "" {
			t.Errorf("before all: %q, next %q", list, next)
		}
		for _, of := range []string{"b/2", "a/2", "a/1", "b/1", "a/x%2Fy"} {
			srv.expect(http.StatusCreated, "PUT", "/v1/instances/"+of+"/labels", labelsBody(`{"zone":"a"}`))
		}
		if list, _ := ids("?service=b"); !slices.Equal(list, []string{"b/1", "b/2"}) {
			t.Errorf("of b: %q", list)
		}
		var all []string
		for query := "?limit=2"; ; {
			list, next := ids(query)
			all = append(all, list...)
			if next == "" {
				break
			}
			query = "?limit=2&after=" + next
		}
		if want := []string{"a/1", "a/2", "a/x/y", "b/1", "b/2"}; !slices.Equal(all, want) {
			t.Errorf("by pages of two: %q, want %q", all, want)
		}
		srv.expect(http.StatusBadRequest, "GET", "/v1/instances?service=", "")
		srv.expect(http.StatusBadRequest, "GET", "/v1/instances?after=%00", "")
	})
}

func TestLabels_ATokenIsForTheInstancesOfItsServices(t *testing.T) {
	t.Parallel()
	set, err := tokens.Parse([]byte("team " + strings.Repeat("t", 32) + " write team-\nreader " + strings.Repeat("r", 32) + " read *\nall " + strings.Repeat("a", 32) + " write *\n"))
	if err != nil {
		t.Fatal(err)
	}
	srv := start(t, openSQLite(t), func(o *Options) { o.Tokens = func() *tokens.Set { return set } })
	as := func(c string) []string { return []string{"Authorization", "Bearer " + strings.Repeat(c, 32)} }
	const own, other = "/v1/instances/team-a/1/labels", "/v1/instances/other/1/labels"
	body := labelsBody(`{"zone":"a"}`)
	srv.expect(http.StatusCreated, "PUT", own, body, as("t")...)
	srv.expect(http.StatusCreated, "PUT", other, body, as("a")...)
	for _, path := range []string{other, other + "/history", "/v1/instances?service=other"} {
		srv.expect(http.StatusForbidden, "GET", path, "", as("t")...)
	}
	srv.expect(http.StatusForbidden, "PUT", other, body, as("t")...)
	srv.expect(http.StatusForbidden, "DELETE", other, "", as("t")...)
	srv.expect(http.StatusForbidden, "PUT", own, body, as("r")...)
	srv.expect(http.StatusUnauthorized, "GET", own, "")
	list := decoded[labelsPage](t, srv.expect(http.StatusOK, "GET", "/v1/instances", "", as("t")...))
	if len(list.Instances) != 1 || list.Instances[0].Service != "team-a" {
		t.Errorf("the team's list = %+v", list)
	}
	history := decoded[historyPage](t, srv.expect(http.StatusOK, "GET", own+"/history", "", as("r")...))
	if history.Entries[0].Who != "team" {
		t.Errorf("history = %+v, want it made by team", history)
	}
}

func TestLabels_AreToldToGatewaysAtOnceAndWithTheRecords(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		cursor := srv.expect(http.StatusOK, "GET", "/v1/changes", "").after(t)
		answers := make(chan answer, 1)
		go func() { answers <- srv.do("GET", "/v1/changes?wait=50s&after="+cursor, "") }()
		waitFor(t, "a follower", func() bool { return srv.feed.Waiting() == 1 })
		ends := endsIn(time.Hour)
		srv.expect(http.StatusCreated, "PUT", labelsPath, fmt.Sprintf(`{"labels":{"zone":"alice","version":null},"ends":%q}`, ends))
		told := <-answers
		item := fmt.Sprintf(`{"service":"organizationservice","id":"org-1","revision":1,"labels":{"zone":"alice","version":null},"ends":%q}`, ends)
		if want := fmt.Sprintf(`{"cursor":%q,"full":false,"records":[],"deleted":[],"instanceLabels":[%s],"instanceLabelsDeleted":[]}`, told.after(t), item); !sameJSON(t, told.body, want) {
			t.Errorf("told %s, want %s", told.body, want)
		}
		srv.expect(http.StatusCreated, "PUT", routePath, split)
		full := srv.expect(http.StatusOK, "GET", "/v1/changes?after=7.other", "")
		if !strings.Contains(full.body, `"full":true`) || !strings.Contains(full.body, `"id":"org-1"`) || !strings.Contains(full.body, `"record":{`) {
			t.Errorf("a full answer = %s", full.body)
		}
		srv.expect(http.StatusOK, "DELETE", labelsPath, "")
		gone := srv.expect(http.StatusOK, "GET", "/v1/changes?after="+told.after(t), "")
		if !strings.Contains(gone.body, `"instanceLabels":[],"instanceLabelsDeleted":[{"service":"organizationservice","id":"org-1"}]`) || strings.Contains(gone.body, `"records":[]`) {
			t.Errorf("after both = %s", gone.body)
		}
	})
}

func TestLabels_AChangeCanBeWaitedFor(t *testing.T) {
	t.Parallel()
	srv := start(t, openSQLite(t))
	end := make(chan struct{})
	follow(t, srv, "gw-1", "&setAside=organizationservice", end)
	defer close(end)
	waitFor(t, "the gateway", func() bool { return knows(t, srv, "gw-1") })
	for _, write := range [][2]string{{"PUT", labelsBody(`{"zone":"alice"}`)}, {"DELETE", ""}} {
		w := decoded[labelsWritten](t, srv.do(write[0], labelsPath+"?wait=applied", write[1]))
		if p := w.Applied; p == nil || p.Of != 1 || p.Now != 1 || len(p.SetAside) != 0 {
			t.Errorf("%s = %+v, want it applied by the one gateway, which has set a record aside", write[0], p)
		}
	}
}

// The gateway has the change, and says that it cannot use it.
func TestLabels_AGatewayThatCannotUseAChangeIsNamedForIt(t *testing.T) {
	t.Parallel()
	const path = "/v1/instances/organizationservice/a%2Fb%2C1%25/labels?wait=applied"
	for told, want := range map[string][]string{
		"organizationservice/a%252Fb%252C1%2525": {"gw-1"}, "organizationservice/a%252Fb": {}, "other/a%252Fb%252C1%2525": {},
	} {
		t.Run(told, func(t *testing.T) {
			t.Parallel()
			srv := start(t, openSQLite(t))
			end := make(chan struct{})
			defer close(end)
			follow(t, srv, "gw-1", "&setAside="+told, end)
			waitFor(t, "the gateway", func() bool { return knows(t, srv, "gw-1") })
			w := decoded[labelsWritten](t, srv.do("PUT", path, labelsBody(`{"zone":"alice"}`)))
			if p := w.Applied; p == nil || p.Now != 1 || !slices.Equal(p.SetAside, want) {
				t.Errorf("%+v, want that %v cannot use it", p, want)
			}
		})
	}
}

func TestLabels_ThatHaveEndedAreNotThere(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		began := time.Now()
		var passed atomic.Int64
		clock := func() time.Time { return began.Add(time.Duration(passed.Load())) }
		srv := start(t, s, func(o *Options) { o.Now = clock })
		first := srv.expect(http.StatusOK, "GET", "/v1/changes", "").after(t)
		lane := labelsBody(`{"zone":"alice"}`)
		srv.expect(http.StatusCreated, "PUT", labelsPath, lane)
		passed.Store(int64(2 * time.Hour))
		srv.expect(http.StatusNotFound, "GET", labelsPath, "")
		srv.expect(http.StatusNotFound, "DELETE", labelsPath, "")
		srv.expect(http.StatusNotFound, "DELETE", labelsPath+"?dryRun=true", "")
		if list := decoded[labelsPage](t, srv.expect(http.StatusOK, "GET", "/v1/instances", "")); len(list.Instances) != 0 {
			t.Errorf("the list = %+v", list)
		}
		if full := srv.expect(http.StatusOK, "GET", "/v1/changes", ""); !strings.Contains(full.body, `"instanceLabels":[],"instanceLabelsDeleted":[]`) {
			t.Errorf("a full answer = %s", full.body)
		}
		if delta := srv.expect(http.StatusOK, "GET", "/v1/changes?after="+first, ""); !strings.Contains(delta.body, `"instanceLabels":[],"instanceLabelsDeleted":[{"service":"organizationservice","id":"org-1"}]`) {
			t.Errorf("a delta = %s", delta.body)
		}
		if w := srv.expect(http.StatusUnprocessableEntity, "PUT", labelsPath, lane).problem(t); w.pointers()[0] != "/ends" {
			t.Errorf("an end that has passed = %+v", w)
		}
		srv.expect(http.StatusCreated, "PUT", labelsPath, fmt.Sprintf(`{"labels":{"a":"b"},"ends":%q}`, clock().Add(time.Minute).UTC().Format(time.RFC3339)), "If-None-Match", "*")
	})
}

func TestLabels_ThatAHandBrokeAreShownAndCanBeReplaced(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s store.Store, exec func(string)) {
		srv := start(t, s)
		exec(`INSERT INTO instance_labels (service, instance, labels, ends) VALUES ('organizationservice', 'org-1', '{"a=b":"c"}', '2099-12-20T12:00:00.000000Z')`)
		if p := srv.expect(http.StatusConflict, "GET", labelsPath, "").problem(t); p.Code != "labels_broken" || !strings.Contains(p.Detail, "a=b") {
			t.Errorf("GET = %+v", p)
		}
		list := decoded[labelsPage](t, srv.expect(http.StatusOK, "GET", "/v1/instances", ""))
		if len(list.Instances) != 1 || !strings.Contains(list.Instances[0].Broken, "a=b") {
			t.Errorf("the list = %+v", list)
		}
		srv.expect(http.StatusOK, "GET", "/v1/changes", "")
		srv.expect(http.StatusOK, "PUT", labelsPath, labelsBody(`{"a":"b"}`))
		srv.expect(http.StatusOK, "GET", labelsPath, "")
	})
}

// A PUT of what is stored already confirms it: it is a change like any other.
func TestAPutThatChangesNothingIsAChangeOfRecordsAndOfLabels(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		for path, body := range map[string]string{routePath: full, labelsPath: labelsBody(`{"zone":"alice"}`)} {
			first := srv.expect(http.StatusCreated, "PUT", path, body)
			again := srv.expect(http.StatusOK, "PUT", path, body)
			history := decoded[historyPage](t, srv.expect(http.StatusOK, "GET", path+"/history", ""))
			if first.header.Get("ETag") == again.header.Get("ETag") || len(history.Entries) != 2 || history.Entries[0].Revision != history.Entries[1].Revision+1 {
				t.Errorf("%s: ETags %s and %s, history %+v", path, first.header.Get("ETag"), again.header.Get("ETag"), history)
			}
		}
	})
}
