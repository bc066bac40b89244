package consul_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"specialroutes.example/gateway/internal/registry"
	"specialroutes.example/gateway/internal/registry/consul"
	"specialroutes.example/gateway/internal/registry/consul/consultest"
)

// known is what an earlier process knew of the service "a".
func known(at time.Time) []registry.Known {
	return []registry.Known{{Service: "a", AsOf: at, Instances: []registry.Instance{
		{ID: "1", Address: "10.0.0.1:80", Labels: map[string]string{"v": "1"}}, {ID: "2", Address: "10.0.0.2:80"}, {ID: "bad", Address: "10.0.0.3:0"},
	}}}
}

// restarted are a server that is away and a registry that starts from a file.
func restarted(t *testing.T, times consul.Times) (*consultest.Server, *consul.Registry, time.Time) {
	t.Helper()
	at := time.Now().Add(-time.Hour)
	s := consultest.NewServer(t)
	s.Instead(status(http.StatusInternalServerError, "No cluster leader"))
	r := follow(t, consul.Options{Address: s.URL, Table: []string{"a"}, Times: times})
	r.Restore(known(at))
	awaitReady(t, r)
	shows(t, r, "1?", "2?")
	return s, r, at
}

func TestARestartWithoutConsulStartsFromTheFile(t *testing.T) {
	t.Parallel()
	s, r, at := restarted(t, quick())
	if st := r.Status(); st.Source != registry.File || !st.Since.Equal(at) {
		t.Errorf("Status = %+v, want the file of %v", st, at)
	}
	if aside := r.Load().SetAside(); len(aside) != 1 || aside[0].ID != "bad" {
		t.Errorf("set aside: %v", aside)
	}
	// Nothing would bring an instance back while Consul is away.
	r.ConnectFailed("a", "1")
	shows(t, r, "1?", "2?")
	eventually(t, "the outage is seen", func() bool { return r.Status().Errors > 1 })

	s.Set("a", consultest.Entry("2", "10.0.0.2", 80), consultest.Entry("3", "10.0.0.4", 80))
	s.Instead(nil)
	shows(t, r, "1?", "2", "3")
	if st := r.Status(); st.Source != registry.Live || time.Since(st.Since) > time.Minute {
		t.Errorf("Status = %+v, want it live", st)
	}
	r.ConnectFailed("a", "1")
	shows(t, r, "2", "3")
}

func TestWhatConsulDoesNotListAfterARestartGoesInTime(t *testing.T) {
	t.Parallel()
	times := quick()
	times.Unconfirmed = 200 * time.Millisecond
	s, r, _ := restarted(t, times)
	s.Set("a", consultest.Entry("2", "10.0.0.2", 80))
	s.Instead(nil)
	shows(t, r, "2")
}

func TestWhatConsulHasToldIsNotOverwrittenByTheFile(t *testing.T) {
	t.Parallel()
	s, r := two(t, quick())
	s.Set("a", consultest.Entry("9", "10.0.0.9", 80))
	shows(t, r, "9")
	r.Restore(known(time.Now()))
	shows(t, r, "9")
}

func TestInstancesOfTheFileWaitForTheirServiceToBeFollowed(t *testing.T) {
	t.Parallel()
	s := consultest.NewServer(t)
	s.Instead(status(http.StatusInternalServerError, "No cluster leader"))
	r := follow(t, consul.Options{Address: s.URL, Table: []string{"b"}})
	r.Restore(known(time.Now()))
	if got := r.State(); len(got) != 1 || got[0].Service != "a" {
		t.Errorf("State = %v, want what was restored", got)
	}
	r.Follow([]string{"a"})
	shows(t, r, "1?", "2?")
	r.Restore([]registry.Known{{Service: "nobody", AsOf: time.Now()}})
	r.Follow([]string{"a"})
	if got := r.State(); len(got) != 1 {
		t.Errorf("State = %v, want what is followed alone", got)
	}
	select {
	case <-r.Ready():
		t.Error("ready, though nothing is known of the table's service")
	default:
	}
}

func TestWhatIsKnownIsToldForTheFile(t *testing.T) {
	t.Parallel()
	s := consultest.NewServer(t)
	s.Set("a", consultest.Entry("2", "10.0.0.2", 80, consultest.Labels(map[string]string{"zone": "m"}, "zone=t", "v=1")),
		consultest.Entry("bad", "10.0.0.1", 0))
	var changes atomic.Int64
	r := follow(t, consul.Options{Address: s.URL, Table: []string{"a"}, Changed: func() { changes.Add(1) }})
	shows(t, r, "2")
	got := r.State()
	if len(got) != 1 || len(got[0].Instances) != 2 || time.Since(got[0].AsOf) > time.Minute || changes.Load() != 1 {
		t.Fatalf("State = %+v after %d changes", got, changes.Load())
	}
	i := got[0].Instances[slices.IndexFunc(got[0].Instances, func(i registry.Instance) bool { return i.ID == "2" })]
	if i.Labels["zone"] != "m" || !slices.Equal(i.FromMeta, []string{"zone"}) || len(i.Warnings) != 1 {
		t.Errorf("instance = %+v", i)
	}
}

func TestMetaThatContradictsATagIsTold(t *testing.T) {
	t.Parallel()
	s := consultest.NewServer(t)
	s.Set("a",
		consultest.Entry("1", "10.0.0.1", 80, consultest.Labels(map[string]string{"version": "2", "zone": "a"}, "version=1", "zone=a")),
		consultest.Entry("2", "10.0.0.2", 80, consultest.Labels(nil, "version=1", "long="+strings.Repeat("x", 256))),
	)
	r := follow(t, consul.Options{Address: s.URL, Table: []string{"a"}})
	shows(t, r, "1", "2")
	list := r.Load().Instances("a")
	if w := list[0].Warnings; list[0].Labels["version"] != "2" || len(w) != 1 || !strings.Contains(w[0], `"version" contradicts the tag: "2" and "1"`) {
		t.Errorf("labels %v, warnings %q", list[0].Labels, w)
	}
	if w := list[1].Warnings; len(list[1].Labels) != 1 || len(w) != 1 || !strings.Contains(w[0], `"long" is left out`) {
		t.Errorf("labels %v, warnings %q", list[1].Labels, w)
	}
}

func TestAnInstanceWithoutACheckOfItsOwnMayBeLeftOut(t *testing.T) {
	t.Parallel()
	s := consultest.NewServer(t)
	s.Set("a",
		consultest.Entry("1", "10.0.0.1", 80, func(e *api.ServiceEntry) {
			e.Checks = api.HealthChecks{{CheckID: "serfHealth", Status: "passing"}, {CheckID: "service:1", ServiceID: "1", Status: "passing"}}
		}),
		consultest.Entry("2", "10.0.0.2", 80, func(e *api.ServiceEntry) {
			e.Checks = api.HealthChecks{{CheckID: "serfHealth", Status: "passing"}}
		}),
	)
	shows(t, follow(t, consul.Options{Address: s.URL, Table: []string{"a"}}), "1", "2")
	shows(t, follow(t, consul.Options{Address: s.URL, Table: []string{"a"}, RequireServiceCheck: true}), "1")
}

func TestOnARealAgentAnInstanceWaitsForItsCheck(t *testing.T) {
	t.Parallel()
	a := startAgent(t)
	plain := api.AgentServiceRegistration{
		ID: "1", Name: "a", Address: "10.0.0.1", Port: 80, Tags: []string{"version=1"}, Meta: map[string]string{"version": "2"},
	}
	a.register(plain)
	r := follow(t, consul.Options{Address: a.Address(), Table: []string{"a"}})
	strict := follow(t, consul.Options{Address: a.Address(), Table: []string{"a"}, RequireServiceCheck: true})
	shows(t, r, "1")
	if i := r.Load().Instances("a")[0]; i.Labels["version"] != "2" || len(i.Warnings) != 1 {
		t.Errorf("labels %v, warnings %q", i.Labels, i.Warnings)
	}
	awaitReady(t, strict)
	shows(t, strict)
	plain.Check = &api.AgentServiceCheck{CheckID: "c", TTL: "1h", Status: api.HealthPassing}
	a.register(plain)
	shows(t, strict, "1")
}

// Instances of the file are in force when the registry says that it is ready, also
// where they come before it runs.
func TestWhatIsRestoredIsInForceBeforeItIsReady(t *testing.T) {
	t.Parallel()
	r, err := consul.New(consul.Options{Address: "127.0.0.1:1", Table: []string{"a"}, Times: quick()})
	if err != nil {
		t.Fatal(err)
	}
	r.Restore(known(time.Now()))
	select {
	case <-r.Ready():
		t.Errorf("ready with %v", shown(r))
	default:
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = r.Run(ctx) })
	defer running.Wait()
	defer cancel()
	awaitReady(t, r)
	if got := shown(r); !slices.Equal(got, []string{"1?", "2?"}) {
		t.Errorf("ready with %v", got)
	}
}
