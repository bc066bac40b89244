package estate_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"specialroutes.example/services/estate"
	"specialroutes.example/services/estate/consulagent/consulagenttest"
)

// inConsul returns the IDs that an agent lists as passing for a service.
func inConsul(t *testing.T, agent, service string) []string {
	t.Helper()
	var entries []struct{ Service struct{ ID string } }
	body := get("http://" + agent + "/v1/health/service/" + service + "?passing=1")
	if err := json.Unmarshal([]byte(body), &entries); err != nil {
		t.Fatalf("%v in %q", err, body)
	}
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.Service.ID)
	}
	return ids
}

// TestEstate_OnConsul builds the real programs and lets them find each other in a
// real agent.
func TestEstate_OnConsul(t *testing.T) {
	t.Parallel()
	agent := consulagenttest.Start(t)
	bin, err := estate.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	e := start(t, estate.Options{Bin: bin, Consul: agent.Address(), Instances: []estate.Instance{
		{ID: "org-2", Service: estate.OrganizationName, Labels: map[string]string{"version": "2.0.0"}, Prefix: "TWO::"},
	}})
	seen := map[string]int{}
	for range 10 {
		seen[contact(t, e)]++
	}
	if seen["OLD::Mark Balster"] != 5 || seen["TWO::Mark Balster"] != 5 {
		t.Errorf("the instances in turn answered %v", seen)
	}
	for service, want := range map[string]int{
		estate.OrganizationName: 2, "orgservice-new": 1, "licensingservice": 1, "specialroutesservice": 1, "gatewayservice": 1,
	} {
		for deadline := time.Now().Add(20 * time.Second); len(inConsul(t, agent.Address(), service)) != want; {
			if time.Now().After(deadline) {
				t.Fatalf("Consul lists %v for %s, want %d", inConsul(t, agent.Address(), service), service, want)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}

	// An agent that comes back empty is told by all again.
	if err := agent.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := contact(t, e); !strings.HasSuffix(got, "Mark Balster") {
		t.Errorf("without Consul a call gives %q", got)
	}
	if err := agent.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); len(inConsul(t, agent.Address(), estate.OrganizationName)) != 2; {
		if time.Now().After(deadline) {
			t.Fatal("the instances do not come back")
		}
		if got := contact(t, e); !strings.HasSuffix(got, "Mark Balster") {
			t.Errorf("before the instances are back a call gives %q", got)
		}
	}
	if err := e.Stop(stopContext(t)); err != nil {
		t.Errorf("Stop = %v", err)
	}
	if left := inConsul(t, agent.Address(), estate.OrganizationName); len(left) != 0 {
		t.Errorf("after Stop Consul lists %v", left)
	}
}

func TestStart_EndsWhenConsulIsAway(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := estate.Start(ctx, estate.Options{Dir: t.TempDir(), Bin: stubs(t), Consul: "127.0.0.1:1"})
	if err == nil || !strings.Contains(err.Error(), "Consul does not list the instances") {
		t.Errorf("Start = %v, want Consul named", err)
	}
}
