package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"specialroutes.example/gateway/internal/records"
	"specialroutes.example/gateway/internal/records/recordstest"
	"specialroutes.example/gateway/internal/registry/consul"
	"specialroutes.example/gateway/internal/registry/consul/consultest"
	"specialroutes.example/services/estate/consulagent/consulagenttest"
	"specialroutes.example/services/registration"
)

// inConsul are the settings of one route whose instances are in Consul.
func inConsul(feed, address string) string {
	return fmt.Sprintf(`
routes: [{prefix: /api/org, service: org}]
registry: {consul: {address: %q}}
records: {url: %q}
drain: {delay: 0s, limit: 5s}
`, address, feed)
}

// entry is an upstream as an instance in Consul.
func entry(t *testing.T, id string, s *httptest.Server) *api.ServiceEntry {
	t.Helper()
	addr := s.Listener.Addr().(*net.TCPAddr)
	return consultest.Entry(id, addr.IP.String(), addr.Port, consultest.Labels(map[string]string{"version": "1.0.0"}))
}

// instances is a part of /instances.
type instances struct {
	Source     string
	LastError  string
	AgeSeconds float64
	Services   map[string][]struct {
		ID, Address string
		Labels      map[string]string
		Unconfirmed bool
	}
}

func (g *gateway) instances(t *testing.T) instances {
	t.Helper()
	var shown instances
	_, _, body := get(t, g.admin+"/instances")
	if err := json.Unmarshal([]byte(body), &shown); err != nil {
		t.Fatal(err, body)
	}
	return shown
}

func TestInstancesComeFromConsul(t *testing.T) {
	t.Parallel()
	feed, fake := recordstest.NewFeed(t), consultest.NewServer(t)
	before, after := upstream(t, "OLD"), upstream(t, "NEW")
	fake.Set("org", entry(t, "org-1", before))
	fake.Set("org-new", entry(t, "new-1", after))
	g := start(t, inConsul(feed.URL, fake.URL)).open(t)
	if status, _, body := get(t, g.data+"/api/org/x"); status != http.StatusOK || body != "OLD /x" {
		t.Errorf("without a record: %d %q", status, body)
	}
	shown := g.instances(t)
	if org := shown.Services["org"]; shown.Source != "live" || len(shown.Services) != 1 || len(org) != 1 || org[0].ID != "org-1" ||
		org[0].Address != host(before) || org[0].Labels["version"] != "1.0.0" {
		t.Errorf("instances = %+v", shown)
	}
	if _, _, body := get(t, g.admin+"/readyz"); !strings.Contains(body, `"registry": "live"`) {
		t.Errorf("readyz = %s", body)
	}

	// A record names another service: it is followed from then on.
	feed.Put("org", `{"service":"org","active":true,"default":"old","variants":[{"name":"old","weight":0},`+
		`{"name":"new","weight":1,"service":"org-new"}]}`)
	eventually(t, "the other service answers", func() bool {
		status, _, body := get(t, g.data+"/api/org/x")
		return status == http.StatusOK && body == "NEW /x"
	})
	feed.Delete("org")
	eventually(t, "the other service is followed no more", func() bool { return len(g.instances(t).Services) == 1 })
}

// A record whose services Consul has not told of yet would fail every call: it waits
// for them, but not for long.
func TestARecordThatNamesAnotherServiceCostsNoCall(t *testing.T) {
	t.Parallel()
	feed, fake := recordstest.NewFeed(t), consultest.NewServer(t)
	s := upstream(t, "ORG")
	fake.Set("org", entry(t, "org-1", s))
	g := start(t, inConsul(feed.URL, fake.URL)).open(t)
	for i := range 5 {
		name := fmt.Sprintf("org-%d", i)
		fake.Set(name, entry(t, name+"-1", s))
		feed.Put("org", fmt.Sprintf(`{"service":"org","active":true,"default":"v%d","variants":[{"name":"v%d","weight":1,"service":%q}]}`, i, i, name))
		eventually(t, "the record is in force", func() bool {
			status, h, body := get(t, g.data+"/api/org/x")
			if status != http.StatusOK {
				t.Fatalf("record %d: %d %s", i, status, body)
			}
			return h.Get("X-Route-Variant") == fmt.Sprintf("v%d", i)
		})
	}
	fake.Instead(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) })
	feed.Put("org", `{"service":"org","active":true,"default":"away","variants":[{"name":"away","weight":1,"service":"org-away"}]}`)
	eventually(t, "a record is in force though Consul does not answer", func() bool {
		_, h, _ := get(t, g.data+"/api/org/x")
		return h.Get("X-Route-Variant") == "away"
	})
}

// Only what is named for the first time is waited for: a service that Consul does not
// tell of would otherwise delay every change after it.
func TestAServiceThatConsulDoesNotTellOfDelaysOneRecordAlone(t *testing.T) {
	t.Parallel()
	r, err := consul.New(consul.Options{Address: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	naming := func(service string) *records.Store {
		feed, store := recordstest.NewFeed(t), new(records.Store)
		feed.Put("org", fmt.Sprintf(`{"service":"org","active":true,"default":"v","variants":[{"name":"v","weight":1,"service":%q}]}`, service))
		f, err := records.NewFollower(records.Options{URLs: []string{feed.URL}}, store)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = f.Run(ctx) })
		<-f.Ready()
		cancel()
		running.Wait()
		return store
	}
	over, cancel := context.WithCancel(t.Context())
	cancel() // nothing is waited for in this test
	store := naming("away")
	v := &variants{registry: r, store: store, table: []string{"org"}}
	v.prepare(over, store.Load())
	if v.next != nil {
		t.Error("a service that is named already is waited for")
	}
	v.prepare(over, naming("new").Load())
	if v.next == nil || !slices.Equal(v.followed, []string{"away", "new"}) {
		t.Errorf("followed %v, want what is named and what is about to be", v.followed)
	}
	// Others are in force before anybody has looked.
	v.prepare(over, store.Load())
	v.seen = nil
	v.look()
	if !slices.Equal(v.followed, []string{"away"}) {
		t.Errorf("followed %v, want what is named alone", v.followed)
	}
}

func TestConsulThatComesBackEmptyCostsNoCallAndDeadInstancesGo(t *testing.T) {
	t.Parallel()
	feed, fake := recordstest.NewFeed(t), consultest.NewServer(t)
	one, two := upstream(t, "ONE"), upstream(t, "TWO")
	fake.Set("org", entry(t, "1", one), entry(t, "2", two))
	g := start(t, inConsul(feed.URL, fake.URL)).open(t)
	call := func() {
		t.Helper()
		if status, _, body := get(t, g.data+"/api/org/x"); status != http.StatusOK {
			t.Fatalf("a call failed: %d %s", status, body)
		}
	}
	fake.Instead(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "No cluster leader", http.StatusInternalServerError)
	})
	eventually(t, "the error is shown", func() bool { call(); return strings.Contains(g.instances(t).LastError, "No cluster leader") })
	fake.Set("org")
	fake.Instead(nil)
	eventually(t, "the instances are unconfirmed", func() bool {
		call()
		org := g.instances(t).Services["org"]
		return len(org) == 2 && org[0].Unconfirmed && org[1].Unconfirmed
	})
	two.Close()
	eventually(t, "the dead one is gone", func() bool { call(); return len(g.instances(t).Services["org"]) == 1 })
	if body := bodyOf(get(t, g.data+"/api/org/x")); body != "ONE /x" {
		t.Errorf("got %q", body)
	}
}

func bodyOf(_ int, _ http.Header, body string) string { return body }

// A real agent is killed under load and comes back empty. The services register
// again by themselves, and no call fails.
func TestARealAgentThatIsKilledCostsNoCall(t *testing.T) {
	t.Parallel()
	agent, feed := consulagenttest.Start(t), recordstest.NewFeed(t)
	for _, id := range []string{"1", "2"} {
		registered(t, agent.Address(), id, upstream(t, id))
	}
	g := start(t, inConsul(feed.URL, agent.Address())).open(t)
	eventually(t, "both are known", func() bool { return len(g.instances(t).Services["org"]) == 2 })

	ctx, stop := context.WithCancel(t.Context())
	var calling sync.WaitGroup
	calls := 0
	calling.Go(func() {
		for ticker := time.NewTicker(10 * time.Millisecond); ctx.Err() == nil; <-ticker.C {
			calls++
			if res, err := client.Get(g.data + "/api/org/x"); err != nil {
				t.Errorf("call %d: %v", calls, err)
			} else if res.Body.Close(); res.StatusCode != http.StatusOK {
				t.Errorf("call %d: %s", calls, res.Status)
			}
		}
	})
	defer calling.Wait()
	defer stop()
	if err := agent.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the outage is noticed", func() bool { return g.instances(t).LastError != "" })
	if err := agent.Start(ctx); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	eventually(t, "both are registered in the new agent", func() bool {
		shown := g.instances(t)
		org := shown.Services["org"]
		heard := time.Duration(shown.AgeSeconds*float64(time.Second)) < time.Since(back)
		return heard && len(org) == 2 && !org[0].Unconfirmed && !org[1].Unconfirmed
	})
	stop()
	calling.Wait()
	t.Logf("%d calls", calls)
	if calls < 50 {
		t.Errorf("only %d calls were made", calls)
	}
}

// registered keeps an upstream registered as an instance of org until the test
// ends. It comes back half a second after it is forgotten.
func registered(t *testing.T, agent, id string, s *httptest.Server) {
	t.Helper()
	r, err := registration.New(registration.Options{
		Agent: agent, Service: "org", ID: id, Passing: true, Check: "/",
		Times: registration.Times{Watch: 500 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := r.Run(ctx, s.Listener.Addr(), s.Listener.Addr()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}
