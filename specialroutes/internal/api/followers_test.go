package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"specialroutes.example/specialroutes/internal/gateways"
	"specialroutes.example/specialroutes/internal/store"
)

// follow is a gateway: it asks, takes what it gets, and asks again, until the test
// ends or pause is closed.
func follow(t *testing.T, srv *server, id, more string, pause <-chan struct{}) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		cursor := ""
		for {
			a := srv.do("GET", "/v1/changes?wait=500ms&gateway="+id+"&after="+cursor+more, "")
			if a.status != http.StatusOK {
				return // the feed has stopped
			}
			cursor = a.after(t)
			select {
			case <-pause:
				return
			default:
			}
		}
	}()
	t.Cleanup(func() { <-done })
}

// knows says whether the gateways at the newest place are those.
func knows(t *testing.T, srv *server, ids ...string) bool {
	t.Helper()
	head, err := srv.store.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var now []string
	for _, g := range decoded[gatewayList](t, srv.expect(http.StatusOK, "GET", "/v1/gateways", "")).Gateways {
		if g.Cursor == feedCursor(head) {
			now = append(now, g.ID)
		}
	}
	return slices.Equal(now, ids)
}

func TestApplied_AnswersWhenAllGatewaysArePast(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		if w := decoded[written](t, srv.expect(http.StatusCreated, "PUT", routePath+"?wait=applied", split)); w.Applied == nil || w.Applied.Of != 0 {
			t.Errorf("without gateways = %+v", w.Applied)
		}
		end := make(chan struct{})
		follow(t, srv, "gw-1", "&version=1.2.3", end)
		follow(t, srv, "gw-2", "&setAside=organizationservice,other", end)
		defer close(end)
		waitFor(t, "both gateways", func() bool { return knows(t, srv, "gw-1", "gw-2") })

		before := time.Now()
		a := srv.expect(http.StatusOK, "PUT", routePath+"/weights?wait=applied", `{"old":1,"new":1}`)
		p := decoded[written](t, a).Applied
		if p == nil || p.Of != 2 || p.Now != 2 || len(p.Behind) != 0 || !slices.Equal(p.SetAside, []string{"gw-2"}) || time.Since(before) > 3*time.Second {
			t.Errorf("applied = %+v after %v", p, time.Since(before))
		}
		if !knows(t, srv, "gw-1", "gw-2") {
			t.Error("after the answer a gateway is behind")
		}
		for method, body := range map[string]string{"DELETE": "", "PUT": full} {
			if w := decoded[written](t, srv.do(method, routePath+"?wait=applied", body)); w.Applied == nil || w.Applied.Now != 2 {
				t.Errorf("%s = %+v", method, w)
			}
		}
		book := srv.expect(http.StatusCreated, "PUT", "/v1/route/abtesting/book?wait=applied", `{"serviceName":"book","active":"Y","endpoint":"http://a","weight":5}`)
		if !strings.Contains(book.body, `"applied":{"of":2,"now":2,"behind":[],"setAside":[]}`) || !strings.Contains(book.body, `"weight":5`) {
			t.Errorf("the book's view = %s", book.body)
		}
		list := decoded[gatewayList](t, srv.expect(http.StatusOK, "GET", "/v1/gateways", ""))
		first := list.Gateways[0]
		if len(list.Gateways) != 2 || first.ID != "gw-1" || first.Version != "1.2.3" || !first.Live || first.Revision == 0 || time.Since(first.Seen) > time.Minute {
			t.Errorf("the gateways = %+v", list)
		}
	})
}

func TestApplied_NamesTheGatewayThatStoppedAfterAWhile(t *testing.T) {
	t.Parallel()
	srv := start(t, openSQLite(t))
	end, stop := make(chan struct{}), make(chan struct{})
	follow(t, srv, "gw-1", "", end)
	follow(t, srv, "gw-2", "", end)
	follow(t, srv, "gw-3", "", stop)
	defer close(end)
	waitFor(t, "all gateways", func() bool { return knows(t, srv, "gw-1", "gw-2", "gw-3") })
	close(stop)
	waitFor(t, "its last question to end", func() bool { return srv.feed.Waiting() <= 2 })
	before := time.Now()
	w := decoded[written](t, srv.expect(http.StatusCreated, "PUT", routePath+"?wait=applied", split))
	if took := time.Since(before); took < gateways.Patience || took > gateways.Patience+5*time.Second {
		t.Errorf("it took %v", took)
	}
	if p := w.Applied; p == nil || p.Of != 3 || p.Now != 2 || !slices.Equal(p.Behind, []string{"gw-3"}) {
		t.Errorf("applied = %+v, want two of three, and gw-3 behind", p)
	}
}

func TestApplied_AGatewayThatLeftIsNotWaitedFor(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		ask := func(id, after, more string) string {
			return srv.expect(http.StatusOK, "GET", "/v1/changes?gateway="+id+"&after="+after+more, "").after(t)
		}
		cursor := ask("gw-1", "", "")
		ask("gw-1", cursor, "")
		before := time.Now()
		ask("gw-1", cursor, "&wait=20s&leaving=true")
		ask("gw-2", cursor, "&leaving=true") // nobody knows it
		w := decoded[written](t, srv.expect(http.StatusCreated, "PUT", routePath+"?wait=applied", split))
		if took := time.Since(before); w.Applied == nil || w.Applied.Of != 0 || took > gateways.Patience/2 {
			t.Errorf("applied = %+v after %v, want to wait for nobody", w.Applied, took)
		}
		show := func() gatewayEntry {
			t.Helper()
			list := decoded[gatewayList](t, srv.expect(http.StatusOK, "GET", "/v1/gateways", "")).Gateways
			if len(list) != 1 {
				t.Fatalf("the gateways = %+v, want one", list)
			}
			return list[0]
		}
		if g := show(); !g.Left || g.Live {
			t.Errorf("the gateway = %+v, want left and not live", g)
		}
		ask("gw-1", cursor, "&leaving=false")
		if g := show(); g.Left || !g.Live {
			t.Errorf("after it came back the gateway = %+v", g)
		}
	})
}

func TestApplied_AStopIsNotHeldUp(t *testing.T) {
	t.Parallel()
	srv := start(t, openSQLite(t))
	if err := srv.store.SeeGateway(t.Context(), store.Gateway{ID: "gw-1", Cursor: store.Cursor{Nonce: "x"}}); err != nil {
		t.Fatal(err)
	}
	srv.drain.Begin()
	before := time.Now()
	w := decoded[written](t, srv.expect(http.StatusCreated, "PUT", routePath+"?wait=applied", split))
	if w.Applied == nil || len(w.Applied.Behind) != 1 || time.Since(before) > 5*time.Second {
		t.Errorf("applied = %+v after %v", w.Applied, time.Since(before))
	}
}

func TestAGatewayOfAnotherHistoryHasNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		srv.expect(http.StatusCreated, "PUT", routePath, split)
		srv.expect(http.StatusOK, "GET", "/v1/changes?gateway=gw-1&after=99.other", "")
		srv.expect(http.StatusOK, "GET", "/v1/changes?after=1.nobody", "")
		list := decoded[gatewayList](t, srv.expect(http.StatusOK, "GET", "/v1/gateways", ""))
		if len(list.Gateways) != 1 || list.Gateways[0].Cursor != "" || list.Gateways[0].Revision != 0 {
			t.Errorf("the gateways = %+v", list)
		}
	})
}

func TestWhatAGatewayHasSetAsideIsReadAsNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                                      nil,
		"b,a,*":                                 {"*", "a", "b"},
		"org/1,org,a/x%2Fy%2C%25,a/x/y":         {"a/x/y", "a/x/y,%", "org", "org/1"},
		"*/1,Org/1,org/,/1,org/a%20b,org/%zz,/": nil,
		"org/" + strings.Repeat("x", 256):       nil,
	} {
		if got := readSetAside(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := readSetAside(strings.Repeat("org/1,org,", 100)); len(got) != 2*maxSetAside {
		t.Errorf("%d names are kept, want %d of each kind", len(got), maxSetAside)
	}
}

func TestWhatAGatewaySaysForPeopleIsNeverRefused(t *testing.T) {
	t.Parallel()
	srv := start(t, openSQLite(t))
	srv.expect(http.StatusOK, "GET", "/v1/changes?gateway=gw-1&version=%00%FF&setAside=,a,B,*,%00,"+strings.Repeat("x,", 100), "")
	list := decoded[gatewayList](t, srv.expect(http.StatusOK, "GET", "/v1/gateways", ""))
	if g := list.Gateways[0]; g.Version != "" || len(g.SetAside) != maxSetAside || g.SetAside[0] != "*" || g.SetAside[1] != "a" {
		t.Errorf("the gateway = %+v", g)
	}
}
