package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"specialroutes.example/specialroutes/internal/store"
)

// after returns what a follower asks to go on from an answer.
func (a answer) after(t testing.TB) string {
	t.Helper()
	_, rest, _ := strings.Cut(a.body, `"cursor":"`)
	cursor, _, ok := strings.Cut(rest, `"`)
	if !ok {
		t.Fatalf("no cursor in %s", a.body)
	}
	return cursor
}

func TestChanges_TheEnvelopeIsWhatTheWireSays(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		empty := srv.expect(http.StatusOK, "GET", "/v1/changes", "")
		if want := `{"cursor":"` + empty.after(t) + `","full":true,"records":[],"deleted":[],"instanceLabels":[],"instanceLabelsDeleted":[]}` + "\n"; empty.body != want {
			t.Errorf("an empty database = %s, want %s", empty.body, want)
		}
		srv.expect(http.StatusCreated, "PUT", bookPath, half)
		first := srv.expect(http.StatusOK, "GET", "/v1/changes?gateway=gw-1&wait=0s&a-parameter-of-tomorrow=1&after="+empty.after(t), "")
		want := `{"cursor":"` + first.after(t) + `","full":false,"records":[{"service":"organizationservice","revision":1,"record":
			{"service":"organizationservice","active":true,"variants":[{"name":"default","weight":5},
			{"name":"alternate","weight":5,"endpoint":"http://orgservice-new:8087"}],"default":"default"}}],
			"deleted":[],"instanceLabels":[],"instanceLabelsDeleted":[]}`
		if !sameJSON(t, first.body, want) {
			t.Errorf("after a PUT = %s, want %s", first.body, want)
		}
		srv.expect(http.StatusNoContent, "DELETE", bookPath, "")
		second := srv.expect(http.StatusOK, "GET", "/v1/changes?after="+first.after(t), "")
		if want := `{"cursor":"` + second.after(t) + `","full":false,"records":[],"deleted":["organizationservice"],"instanceLabels":[],"instanceLabelsDeleted":[]}`; !sameJSON(t, second.body, want) {
			t.Errorf("after a DELETE = %s, want %s", second.body, want)
		}
		if last := srv.expect(http.StatusOK, "GET", "/v1/changes?after="+second.after(t), ""); last.after(t) != second.after(t) || strings.Contains(last.body, `"full":true`) {
			t.Errorf("after nothing = %s", last.body)
		}
	})
}

func TestChanges_ACursorThatIsNotOursGetsEverything(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		srv.expect(http.StatusCreated, "PUT", bookPath, half)
		head, err := s.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, cursor := range []string{"", head.String(), head.String() + "-3", "1.other", "1.other-2", "99.k3f9", "v2:abc", "42", "-1.a"} {
			a := srv.expect(http.StatusOK, "GET", "/v1/changes?wait=1s&after="+cursor, "")
			if !strings.Contains(a.body, `"full":true`) || !strings.Contains(a.body, "organizationservice") {
				t.Errorf("after %q = %s, want everything", cursor, a.body)
			}
		}
	})
}

func TestChanges_AWaitingFollowerIsWokenByAWrite(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		cursor := srv.expect(http.StatusOK, "GET", "/v1/changes", "").after(t)
		answers := make(chan answer, 1)
		go func() { answers <- srv.do("GET", "/v1/changes?wait=50s&gateway=gw-1&after="+cursor, "") }()
		waitFor(t, "a follower", func() bool { return srv.feed.Waiting() == 1 })
		before := time.Now()
		srv.expect(http.StatusCreated, "PUT", bookPath, half)
		if a := <-answers; a.status != http.StatusOK || !strings.Contains(a.body, "organizationservice") {
			t.Errorf("the follower got %d %s", a.status, a.body)
		}
		if took := time.Since(before); took > time.Second {
			t.Errorf("the follower heard of it after %v", took)
		}
	})
}

func TestChanges_TheWaitEndsWithEmptyLists(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		cursor := srv.expect(http.StatusOK, "GET", "/v1/changes", "").after(t)
		before := time.Now()
		a := srv.expect(http.StatusOK, "GET", "/v1/changes?wait=300ms&after="+cursor, "")
		want := `{"cursor":"` + cursor + `","full":false,"records":[],"deleted":[],"instanceLabels":[],"instanceLabelsDeleted":[]}`
		if took := time.Since(before); took < 300*time.Millisecond || !sameJSON(t, a.body, want) {
			t.Errorf("after %v: %s", took, a.body)
		}
	})
}

func TestChanges_AStopAnswersThoseWhoWaitAndRefusesTheOthers(t *testing.T) {
	t.Parallel()
	srv := start(t, openSQLite(t))
	cursor := srv.expect(http.StatusOK, "GET", "/v1/changes", "").after(t)
	answers := make(chan answer, 1)
	go func() { answers <- srv.do("GET", "/v1/changes?wait=50s&after="+cursor, "") }()
	waitFor(t, "a follower", func() bool { return srv.feed.Waiting() == 1 })
	srv.drain.Begin()
	srv.feed.Stop()
	if a := <-answers; a.status != http.StatusOK || a.after(t) != cursor {
		t.Errorf("who waited got %d %s", a.status, a.body)
	}
	a := srv.expect(http.StatusServiceUnavailable, "GET", "/v1/changes?wait=50s&after="+cursor, "")
	if p := a.problem(t); p.Code != "stopping" || a.header.Get("Retry-After") == "" {
		t.Errorf("who came later got %s, Retry-After %q", a.body, a.header.Get("Retry-After"))
	}
	if p := srv.expect(http.StatusServiceUnavailable, "GET", "/readyz", "").problem(t); p.Code != "stopping" {
		t.Errorf("/readyz says %s", p.Code)
	}
	srv.expect(http.StatusOK, "GET", "/healthz", "")
	srv.expect(http.StatusCreated, "PUT", bookPath, half) // what comes is still done
}

func TestChanges_AClientThatLeavesIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	srv := start(t, openSQLite(t))
	cursor := srv.expect(http.StatusOK, "GET", "/v1/changes", "").after(t)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), "GET", srv.url+"/v1/changes?wait=50s&after="+cursor, nil)
	if err != nil {
		t.Fatal(err)
	}
	client.Timeout = 200 * time.Millisecond
	if res, err := client.Do(req); err == nil {
		_ = res.Body.Close()
		t.Errorf("answered with %s", res.Status)
	}
	waitFor(t, "the end of the wait", func() bool { return srv.feed.Waiting() == 0 })
	waitFor(t, "a line in the log", func() bool { return strings.Contains(srv.logs.String(), `"status":499`) })
}

func TestABrokenRecordIsNamedAndDisturbsNoOther(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s store.Store, exec func(string)) {
		srv := start(t, s)
		srv.expect(http.StatusCreated, "PUT", bookPath, half)
		exec(`INSERT INTO routes (service, record) VALUES ('licensingservice', '{"service":"licensingservice","active":true,"colour":"red"}')`)
		const path = "/v1/route/abtesting/licensingservice"
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			body := map[string]string{"PUT": `{"serviceName":"licensingservice","active":"Y","endpoint":"http://a","weight":5}`}[method]
			if p := srv.expect(http.StatusConflict, method, path, body).problem(t); p.Code != "record_broken" || !strings.Contains(p.Detail, "colour") || p.Route != "/v1/routes/licensingservice" {
				t.Errorf("%s = %+v", method, p)
			}
		}
		if a := srv.expect(http.StatusOK, "GET", "/v1/route/abtesting", ""); !sameJSON(t, a.body, `{"records":[`+half+`],"leftOut":1}`) {
			t.Errorf("the list = %s", a.body)
		}
		a := srv.expect(http.StatusOK, "GET", "/v1/changes", "")
		if !strings.Contains(a.body, `"colour":"red"`) || !strings.Contains(a.body, "orgservice-new") {
			t.Errorf("the feed = %s", a.body)
		}
	})
}

// waitFor polls a condition that another goroutine brings about.
func waitFor(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s in vain", what)
		}
	}
}
