package cli_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"
)

// asGateway asks for changes as a gateway does, until the returned function is called.
// The first question with a cursor has been asked when it returns. setAside are the services whose
// record it says it cannot use.
func (s *server) asGateway(id, setAside string) (leave func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	var ended sync.WaitGroup
	first := make(chan struct{})
	ended.Go(func() {
		told := sync.OnceFunc(func() { close(first) })
		query := url.Values{"gateway": {id}, "version": {"1.2.3"}, "setAside": {setAside}}
		for ctx.Err() == nil {
			cursor, err := s.changes(ctx, query)
			if err != nil {
				continue // the test is over
			}
			if query.Has("after") { // so it has told what it has
				told()
				query.Set("wait", "20s")
			}
			query.Set("after", cursor)
		}
	})
	leave = sync.OnceFunc(func() { cancel(); ended.Wait() })
	s.t.Cleanup(leave)
	select {
	case <-first:
	case <-time.After(20 * time.Second):
		s.t.Fatalf("%s is not answered", id)
	}
	return leave
}

func (s *server) changes(ctx context.Context, query url.Values) (cursor string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/changes?"+query.Encode(), nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var envelope struct{ Cursor string }
	err = json.NewDecoder(res.Body).Decode(&envelope)
	return envelope.Cursor, err
}

func TestWaitTellsWhoIsBehind(t *testing.T) {
	t.Parallel()
	s := serve(t, admin)
	s.put(orga, half, "--wait").expect(t, 0).says(t, "created", "no gateway has asked for changes")
	s.asGateway("gw-1", "")
	leave := s.asGateway("gw-2", "")
	s.put(orga, tenth, "--wait=applied").expect(t, 0).says(t, "changed", "applied on 2 of 2 gateways")
	s.run("gateways").expect(t, 0).says(t, "gw-1", "gw-2", "live", "1.2.3")

	var answer struct {
		Applied struct {
			Of, Now int
			Behind  []string
		}
	}
	s.run("routes", "active", orga, "true", "--wait", "--output=json").expect(t, 0).json(t, &answer)
	if a := answer.Applied; a.Of != 2 || a.Now != 2 || a.Behind == nil {
		t.Errorf("--wait --output json = %+v", answer)
	}

	leave()
	o := s.run("routes", "weights", orga, "old=1", "new=1", "--wait").expect(t, 7)
	o.says(t, "changed, revision 4", "applied on 1 of 2 gateways").complains(t, "written, but 1 of 2 gateways have not applied it", "behind: gw-2")
	s.run("routes", "get", orga).expect(t, 0).says(t, "50 %") // it is written

	var all struct {
		Gateways []struct {
			ID   string
			Live bool
		}
	}
	s.run("gateways", "--output=json").expect(t, 0).json(t, &all)
	if len(all.Gateways) != 2 || all.Gateways[0].ID != "gw-1" || !all.Gateways[1].Live {
		t.Errorf("gateways --output json = %+v", all)
	}
}

func TestWaitTellsWhoCannotUseTheRecord(t *testing.T) {
	t.Parallel()
	s := serve(t, admin)
	s.put(orga, half).expect(t, 0)
	s.asGateway("gw-1", "")
	s.asGateway("gw-old", orga)
	s.put(orga, tenth, "--wait").expect(t, 7).complains(t, "cannot use it, and keep what was before: gw-old")
	s.run("gateways").expect(t, 0).says(t, orga)
}
