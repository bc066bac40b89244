package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"specialroutes.example/services/estate"
	"specialroutes.example/services/estate/consulagent"
	"specialroutes.example/services/estate/consulagent/consulagenttest"
)

// consulEstate is an estate whose processes find each other in a real agent.
type consulEstate struct {
	*estate.Estate
	routes
	agent *consulagent.Agent
	ids   map[string][]string // that Consul lists when all is well, by service
}

// startConsulEstate starts one of a test's own, with further organization instances.
func startConsulEstate(t testing.TB, gateways int, instances ...estate.Instance) *consulEstate {
	t.Helper()
	agent := consulagenttest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	est, err := estate.Start(ctx, estate.Options{
		Dir: filepath.Join(t.TempDir(), "estate"), Bin: binaries(t), Gateways: gateways, Consul: agent.Address(), Instances: instances,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		// A process that the test killed for good is no fault of the estate.
		var exit *estate.ExitError
		if err := est.Stop(ctx); err != nil && (!errors.As(err, &exit) || !exit.Asked) {
			t.Error(err)
		}
	})
	e := &consulEstate{Estate: est, agent: agent, routes: routes{url: est.SpecialRoutesURL()}, ids: map[string][]string{
		organization: {estate.OrgServiceOld}, "licensingservice": {estate.LicensingService},
	}}
	for i := range gateways {
		e.admins = append(e.admins, est.GatewayAdminURL(i))
	}
	for _, i := range instances {
		e.ids[i.Service] = append(e.ids[i.Service], i.ID)
	}
	return e
}

// listed returns the IDs that Consul lists as passing for a service, in order.
func (e *consulEstate) listed(service string) ([]string, error) {
	got, err := do("GET", "http://"+e.agent.Address()+"/v1/health/service/"+service+"?passing=1", nil, nil)
	if err != nil {
		return nil, err
	}
	var entries []struct{ Service struct{ ID string } }
	if err := json.Unmarshal(got.body, &entries); err != nil {
		return nil, fmt.Errorf("%w: %.200s", err, got.body)
	}
	var ids []string
	for _, entry := range entries {
		ids = append(ids, entry.Service.ID)
	}
	slices.Sort(ids)
	return ids, nil
}

// awaitAllListed waits until Consul lists every instance again.
func (e *consulEstate) awaitAllListed(t testing.TB) {
	t.Helper()
	for service, ids := range e.ids {
		slices.Sort(ids)
		poll(t, time.Minute, "Consul lists "+service, func() error {
			listed, err := e.listed(service)
			if err == nil && !slices.Equal(listed, ids) {
				err = fmt.Errorf("it lists %v, want %v", listed, ids)
			}
			return err
		})
	}
}

// awaitConfirmed waits until the gateway knows from Consul, and not from before, all
// instances of the organization service.
func (e *consulEstate) awaitConfirmed(t testing.TB) {
	t.Helper()
	poll(t, time.Minute, "the gateway has its instances from Consul", func() error {
		got, err := do("GET", e.GatewayAdminURL(0)+"/readyz", nil, nil)
		if err != nil {
			return err
		}
		var ready struct{ Registry string }
		if err := json.Unmarshal(got.body, &ready); err != nil {
			return err
		}
		if ready.Registry != "live" {
			return fmt.Errorf("registry is %q", ready.Registry)
		}
		return nil
	})
}

// Without registering again and without the instances of before, two well-known
// gateways failed most of the calls of such a drill.
func TestConsulStoppedForAMinuteUnderLoadAndBackEmptyFailsNoCall(t *testing.T) {
	t.Parallel()
	e := startConsulEstate(t, 1, estate.Instance{ID: "org-2", Service: organization}, estate.Instance{ID: "org-3", Service: organization})
	e.put(t, bookRecord(e.Estate, 5))
	const perSecond = 100
	calls := startLoad(t, e.GatewayURL(0)+organizationPath, perSecond)
	away := time.NewTimer(time.Minute)
	defer away.Stop()
	if err := e.agent.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-away.C
	if err := e.agent.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.awaitAllListed(t)
	e.awaitConfirmed(t)

	// Once more, as a crash, and back at once.
	if err := e.agent.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := e.agent.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.awaitAllListed(t)
	e.awaitConfirmed(t)
	calls.wantNoFailure(t, 60*perSecond/2)
}

func TestOneOfThreeInstancesKilledFailsNoCall(t *testing.T) {
	t.Parallel()
	e := startConsulEstate(t, 1, estate.Instance{ID: "org-2", Service: organization}, estate.Instance{ID: "org-3", Service: organization})
	e.put(t, bookRecord(e.Estate, 10))
	const perSecond = 500
	calls := startLoad(t, e.GatewayURL(0)+organizationPath, perSecond)
	poll(t, 30*time.Second, "there is load", func() error {
		if n := calls.seen().old; n < perSecond {
			return fmt.Errorf("%d calls so far", n)
		}
		return nil
	})
	e.Process("org-2").Kill()
	at := calls.seen().old
	poll(t, 30*time.Second, "the load goes on", func() error {
		if n := calls.seen().old - at; n < 3*perSecond {
			return fmt.Errorf("%d calls since the kill", n)
		}
		return nil
	})
	got := calls.stop()
	t.Logf("%d calls, slowest %v", got.old, got.slowest)
	if len(got.failures) > 0 {
		t.Errorf("%d calls failed, the first: %s", len(got.failures), got.failures[0])
	}
}
