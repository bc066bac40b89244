package api

import (
	"net/http"
	"sync"
	"testing"

	"specialroutes.example/specialroutes/internal/store"
)

func TestConditionsHold(t *testing.T) {
	t.Parallel()
	there := &store.Stored{Service: "a", Revision: 42, Nonce: "k3f9"} // "42.k3f9"
	tests := []struct {
		name   string
		header string
		value  string
		there  bool // holds while the record is there
		absent bool // holds while it is not
	}{
		{"match", "If-Match", `"42.k3f9"`, true, false},
		{"match of another", "If-Match", `"41.k3f9"`, false, false},
		{"match of the same revision in another history", "If-Match", `"42.k3f8"`, false, false},
		{"match in a list", "If-Match", `"1.a" , "42.k3f9"`, true, false},
		{"match after a tag with a comma in it", "If-Match", `"a,b","42.k3f9"`, true, false},
		{"match of a weak tag", "If-Match", `W/"42.k3f9"`, false, false},
		{"match of any", "If-Match", `*`, true, false},
		{"none match", "If-None-Match", `"42.k3f9"`, false, true},
		{"none match of a weak tag", "If-None-Match", `W/"42.k3f9"`, false, true},
		{"none match of another", "If-None-Match", `"41.a", "43.b"`, true, true},
		{"none match of any", "If-None-Match", ` * `, false, true},
	}
	for _, test := range tests {
		c, err := readConditions(http.Header{test.header: {test.value}})
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if got := c.check(there.ETag()) == nil; got != test.there {
			t.Errorf("%s: %s: %s of a record that is there holds = %v", test.name, test.header, test.value, got)
		}
		if got := c.check("") == nil; got != test.absent {
			t.Errorf("%s: %s: %s of a record that is not there holds = %v", test.name, test.header, test.value, got)
		}
	}
}

func TestConditionsThatCannotBeReadAreRefused(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", ",", "42.k3f9", `"42.k3f9`, `42.k3f9"`, `"a" "b"`, `*, "a"`, `"a", *`, `w/"a"`, `"a` + "\x80" + `"`} {
		if c, err := readConditions(http.Header{"If-Match": {value}}); err == nil {
			t.Errorf("If-Match: %q is read as %+v", value, c.match)
		}
	}
}

func TestConditions_AChangeNeedsThemAndStoresNothingWithout(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		srv.expect(http.StatusPreconditionFailed, "PUT", bookPath, half, "If-Match", "*")
		srv.expect(http.StatusPreconditionFailed, "DELETE", bookPath, "", "If-Match", `"1.a"`)
		first := srv.expect(http.StatusCreated, "PUT", bookPath, half, "If-None-Match", "*").header.Get("ETag")
		srv.expect(http.StatusPreconditionFailed, "PUT", bookPath, half, "If-None-Match", "*")
		second := srv.expect(http.StatusOK, "PUT", bookPath, half, "If-Match", first).header.Get("ETag")
		srv.expect(http.StatusPreconditionFailed, "PUT", bookPath, half, "If-Match", first)
		if p := srv.expect(http.StatusPreconditionFailed, "DELETE", bookPath, "", "If-Match", first).problem(t); p.Code != "precondition_failed" {
			t.Errorf("code %s", p.Code)
		}
		a := srv.expect(http.StatusNotModified, "GET", bookPath, "", "If-None-Match", second)
		if a.body != "" || a.header.Get("ETag") != second {
			t.Errorf("304 with body %q, ETag %q", a.body, a.header.Get("ETag"))
		}
		srv.expect(http.StatusOK, "GET", bookPath, "", "If-None-Match", first)
		srv.expect(http.StatusNoContent, "DELETE", bookPath, "", "If-Match", second)
		if entries, err := s.History(t.Context(), "organizationservice", 0, 0); err != nil || len(entries) != 3 {
			t.Errorf("History has %d entries, %v, want 3: what was refused left one", len(entries), err)
		}
	})
}

func TestConditions_OfTwoWritersOneWins(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		tag := srv.expect(http.StatusCreated, "PUT", bookPath, half).header.Get("ETag")
		const writers = 8
		statuses := make([]int, writers)
		var running sync.WaitGroup
		for i := range writers {
			running.Go(func() { statuses[i] = srv.do("PUT", bookPath, half, "If-Match", tag).status })
		}
		running.Wait()
		count := map[int]int{}
		for _, status := range statuses {
			count[status]++
		}
		if count[http.StatusOK] != 1 || count[http.StatusPreconditionFailed] != writers-1 {
			t.Errorf("statuses %v, want one 200 and %d 412", count, writers-1)
		}
	})
}
