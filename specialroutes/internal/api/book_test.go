package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"specialroutes.example/services/routing"
	"specialroutes.example/specialroutes/internal/store"
)

const (
	bookPath = "/v1/route/abtesting/organizationservice"
	half     = `{"serviceName":"organizationservice","active":"Y","endpoint":"http://orgservice-new:8087","weight":5}`
)

func TestBook_APutIsWhatAGetReturns(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		srv.expect(http.StatusNotFound, "GET", bookPath, "")
		steps := []struct {
			body   string
			status int
		}{
			{half, http.StatusCreated},
			{strings.Replace(half, `"weight":5`, `"weight":0`, 1), http.StatusOK},
			{strings.Replace(half, `"weight":5`, `"weight":10`, 1), http.StatusOK},
			{strings.Replace(half, `"Y"`, `"N"`, 1), http.StatusOK},
			{strings.Replace(half, "http://orgservice-new:8087", "https://[2001:db8::1]:1/a%2Fb/", 1), http.StatusOK},
		}
		tags := map[string]bool{}
		for _, step := range steps {
			put := srv.expect(step.status, "PUT", bookPath, step.body)
			get := srv.expect(http.StatusOK, "GET", bookPath, "")
			if !sameJSON(t, put.body, step.body) || !sameJSON(t, get.body, step.body) {
				t.Errorf("PUT %s = %s, GET = %s", step.body, put.body, get.body)
			}
			tag := put.header.Get("ETag")
			if tag != get.header.Get("ETag") || tags[tag] {
				t.Errorf("ETag %s of the PUT, %s of the GET, before %v", tag, get.header.Get("ETag"), tags)
			}
			tags[tag] = true
		}
		if got, want := srv.expect(http.StatusNoContent, "DELETE", bookPath, "").body, ""; got != want {
			t.Errorf("DELETE answers %q", got)
		}
		for _, method := range []string{"GET", "DELETE"} {
			if p := srv.expect(http.StatusNotFound, method, bookPath, "").problem(t); p.Code != "no_record" {
				t.Errorf("%s of what was deleted is %s", method, p.Code)
			}
		}
		srv.expect(http.StatusCreated, "PUT", bookPath, half)
	})
}

func TestBook_PutAnswersWithWhatItCreatedAndWhere(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		a := srv.expect(http.StatusCreated, "PUT", bookPath, half)
		if !sameJSON(t, a.body, half) || a.header.Get("Location") != bookPath {
			t.Errorf("PUT = %s, Location %q", a.body, a.header.Get("Location"))
		}
	})
}

func TestBook_PutWritesItsFourFieldsAndNothingElse(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		before := record(`{"service":"organizationservice","active":false,
			"variants":[{"name":"new","weight":1,"endpoint":"http://a"},{"name":"old","weight":9}],"default":"old",
			"onUnavailable":"fail","labelRules":[],"owner":"organization team","ends":"2026-12-31"}`)
		write(t, s, before)
		srv.expect(http.StatusOK, "PUT", bookPath, half)
		stored, err := s.Get(t.Context(), "organizationservice")
		if err != nil {
			t.Fatal(err)
		}
		want := `{"service":"organizationservice","active":true,
			"variants":[{"name":"new","weight":5,"endpoint":"http://orgservice-new:8087"},{"name":"old","weight":5}],"default":"old",
			"onUnavailable":"fail","labelRules":[],"owner":"organization team","ends":"2026-12-31"}`
		if !sameJSON(t, string(stored.Raw), want) {
			t.Errorf("PUT stored %s, want %s", stored.Raw, want)
		}
	})
}

func TestBook_AnotherRecordIsAConflictThatLinksToIt(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		write(t, s, record(`{"service":"organizationservice","active":true,
			"variants":[{"name":"a","weight":1},{"name":"b","weight":2,"endpoint":"http://b"}],"default":"a"}`))
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			body := ""
			if method == "PUT" {
				body = half
			}
			a := srv.expect(http.StatusConflict, method, bookPath, body)
			const route = "/v1/routes/organizationservice"
			if p := a.problem(t); p.Code != "not_expressible" || p.Route != route || !strings.Contains(a.header.Get("Link"), "<"+route+">") {
				t.Errorf("%s = %+v, Link %q", method, p, a.header.Get("Link"))
			}
		}
		if stored, err := s.Get(t.Context(), "organizationservice"); err != nil || stored.Revision != 1 {
			t.Errorf("the record is at revision %d, %v, want it untouched", stored.Revision, err)
		}
	})
}

func TestBook_ListGoesThroughPagesAndCountsWhatItLeavesOut(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		var want []string
		for i := range 7 {
			name := fmt.Sprintf("service-%d", i)
			if i == 2 || i == 3 {
				write(t, s, record(`{"service":"`+name+`","active":true}`))
				continue
			}
			want = append(want, name)
			srv.expect(http.StatusCreated, "PUT", "/v1/route/abtesting/"+name, `{"serviceName":"`+name+`","active":"Y","endpoint":"http://a","weight":5}`)
		}
		write(t, s, record(`{"service":"*","active":true,"labelRules":[]}`))

		var got []string
		leftOut, pages := 0, 0
		for after, more := "", true; more; pages++ {
			var p bookPage
			a := srv.expect(http.StatusOK, "GET", "/v1/route/abtesting?limit=3&after="+after, "")
			if err := json.Unmarshal([]byte(a.body), &p); err != nil {
				t.Fatal(err)
			}
			for _, b := range p.Records {
				got = append(got, *b.ServiceName)
			}
			leftOut += p.LeftOut
			after, more = p.Next, p.Next != ""
		}
		if !slices.Equal(got, want) || leftOut != 3 || pages != 3 {
			t.Errorf("%d pages with %q, %d left out, want 3 with %q, 3 left out", pages, got, leftOut, want)
		}
		all := srv.expect(http.StatusOK, "GET", "/v1/route/abtesting", "")
		if !strings.Contains(all.body, `"leftOut":3`) || strings.Contains(all.body, `"next"`) {
			t.Errorf("one page for all = %s", all.body)
		}
	})
}

func TestBook_AnEmptyListIsAList(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		if a := start(t, s).expect(http.StatusOK, "GET", "/v1/route/abtesting", ""); !sameJSON(t, a.body, `{"records":[],"leftOut":0}`) {
			t.Errorf("GET = %s", a.body)
		}
	})
}

func TestBook_AChangeSaysWhoAndWhy(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		srv.expect(http.StatusCreated, "PUT", bookPath+"?why=try+it+%C3%A4", half)
		srv.expect(http.StatusNoContent, "DELETE", bookPath, "")
		entries, err := s.History(t.Context(), "organizationservice", 0, 0)
		if err != nil || len(entries) != 2 {
			t.Fatalf("History = %+v, %v, want two entries", entries, err)
		}
		if got, want := entries[1].Author, (store.Author{Who: "anonymous", Why: "try it ä"}); got != want {
			t.Errorf("the first change is by %+v, want %+v", got, want)
		}
		if entries[0].After != nil {
			t.Errorf("the delete has an after: %s", entries[0].After)
		}
	})
}

// record reads a record of a test.
func record(text string) *routing.Record {
	r := new(routing.Record)
	if err := json.Unmarshal([]byte(text), r); err != nil {
		panic(err)
	}
	return r
}

// write stores a record behind the interface's back.
func write(t testing.TB, s store.Store, r *routing.Record) store.Stored {
	t.Helper()
	stored, err := s.Write(t.Context(), r.Service, store.Author{Who: "test"}, func(*store.Stored) (*routing.Record, error) { return r, nil })
	if err != nil {
		t.Fatalf("Write(%+v): %v", r, err)
	}
	return stored
}
