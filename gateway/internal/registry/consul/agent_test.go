package consul_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"specialroutes.example/gateway/internal/registry"
	"specialroutes.example/gateway/internal/registry/consul"
	"specialroutes.example/gateway/internal/registry/registrytest"
	"specialroutes.example/services/estate/consulagent"
	"specialroutes.example/services/estate/consulagent/consulagenttest"
)

// agent is a real Consul.
type agent struct {
	*consulagent.Agent
	t      *testing.T
	client *api.Client
}

func startAgent(t *testing.T) *agent {
	t.Helper()
	a := &agent{Agent: consulagenttest.Start(t), t: t}
	config := api.DefaultNonPooledConfig()
	config.Address = a.Address()
	var err error
	if a.client, err = api.NewClient(config); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *agent) register(s api.AgentServiceRegistration) {
	a.t.Helper()
	if err := a.client.Agent().ServiceRegister(&s); err != nil {
		a.t.Fatal(err)
	}
}

// passing lists the IDs that Consul gives for a service.
func (a *agent) passing(service string) []string {
	a.t.Helper()
	entries, _, err := a.client.Health().Service(service, "", true, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	ids := []string{}
	for _, e := range entries {
		ids = append(ids, e.Service.ID)
	}
	slices.Sort(ids)
	return ids
}

func TestRegistryOnARealAgent(t *testing.T) {
	t.Parallel()
	a := startAgent(t)
	registrytest.Exercise(t, func(t *testing.T, services map[string][]registry.Instance) registry.Registry {
		known, err := a.client.Agent().Services()
		if err != nil {
			t.Fatal(err)
		}
		for id := range known {
			if err := a.client.Agent().ServiceDeregister(id); err != nil {
				t.Fatal(err)
			}
		}
		// An agent knows an ID once, Exercise has one in two services.
		unique := make(map[string]string)
		var table []string
		for service, list := range services {
			table = append(table, service)
			for _, i := range list {
				if unique[i.ID] != "" {
					a.elsewhere(service, i)
					continue
				}
				unique[i.ID] = service
				host, port := split(t, i.Address)
				a.register(api.AgentServiceRegistration{Name: service, ID: i.ID, Address: host, Port: port, Meta: i.Labels})
			}
		}
		for service, list := range services {
			eventually(t, "Consul lists "+service, func() bool { return len(a.passing(service)) == len(list) })
		}
		return follow(t, consul.Options{Address: a.Address(), Table: table})
	})
}

// elsewhere registers an instance on a node without an agent, until the test ends.
func (a *agent) elsewhere(service string, i registry.Instance) {
	a.t.Helper()
	host, port := split(a.t, i.Address)
	_, err := a.client.Catalog().Register(&api.CatalogRegistration{
		Node: "elsewhere", Address: "10.0.0.99",
		Service: &api.AgentService{ID: i.ID, Service: service, Address: host, Port: port, Meta: i.Labels},
	}, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() {
		_, _ = a.client.Catalog().Deregister(&api.CatalogDeregistration{Node: "elsewhere"}, nil) // the agent goes too
	})
}

func TestARealAgentsTagsMetaAndAddress(t *testing.T) {
	t.Parallel()
	a := startAgent(t)
	a.register(api.AgentServiceRegistration{
		Name: "a", ID: "1", Port: 80, Tags: []string{"version=1.0.0", "primary", "zone=x=y"}, Meta: map[string]string{"version": "2.0.0"},
	})
	a.register(api.AgentServiceRegistration{Name: "a", ID: "2", Address: "2001:db8::1", Port: 81})
	eventually(t, "both are listed", func() bool { return len(a.passing("a")) == 2 })
	r := follow(t, consul.Options{Address: a.Address(), Table: []string{"a"}})
	shows(t, r, "1", "2")
	got := r.Load().Instances("a")
	if fmt.Sprint(got[0].Labels) != "map[primary:primary version:2.0.0 zone:x=y]" {
		t.Errorf("labels = %v", got[0].Labels)
	}
	if got[0].Address != "127.0.0.1:80" || got[1].Address != "[2001:db8::1]:81" {
		t.Errorf("addresses = %s, %s", got[0].Address, got[1].Address)
	}
}

func TestARealAgentInMaintenance(t *testing.T) {
	t.Parallel()
	a := startAgent(t)
	a.register(api.AgentServiceRegistration{Name: "a", ID: "1", Port: 80})
	r := follow(t, consul.Options{Address: a.Address(), Table: []string{"a"}})
	shows(t, r, "1")
	for range 2 {
		if err := a.client.Agent().EnableServiceMaintenance("1", "work"); err != nil {
			t.Fatal(err)
		}
		shows(t, r)
		if err := a.client.Agent().DisableServiceMaintenance("1"); err != nil {
			t.Fatal(err)
		}
		shows(t, r, "1")
	}
	if err := a.client.Agent().ServiceDeregister("1"); err != nil {
		t.Fatal(err)
	}
	shows(t, r)
	a.register(api.AgentServiceRegistration{Name: "a", ID: "1", Port: 80})
	shows(t, r, "1")
}

func TestARealAgentThatComesBackEmptyTakesNothing(t *testing.T) {
	t.Parallel()
	a := startAgent(t)
	for _, id := range []string{"1", "2"} {
		a.register(api.AgentServiceRegistration{Name: "a", ID: id, Port: 80})
	}
	r := follow(t, consul.Options{Address: a.Address(), Table: []string{"a"}})
	shows(t, r, "1", "2")
	if err := a.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an error", func() bool { return r.Status().Errors > 0 })
	shows(t, r, "1", "2")
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	shows(t, r, "1?", "2?")
	a.register(api.AgentServiceRegistration{Name: "a", ID: "2", Port: 80})
	shows(t, r, "1?", "2")
	r.ConnectFailed("a", "1")
	shows(t, r, "2")
}

// After 1,000 random changes of health the pool is Consul's, and each change that
// stays is seen soon.
func TestAThousandFlipsLeaveThePoolAsConsulSeesIt(t *testing.T) {
	t.Parallel()
	const instances, flips = 10, 1000
	a := startAgent(t)
	for n := range instances {
		a.register(api.AgentServiceRegistration{
			Name: "a", ID: fmt.Sprint(n), Port: 80 + n,
			Check: &api.AgentServiceCheck{CheckID: fmt.Sprint("check-", n), TTL: "10m", Status: api.HealthPassing},
		})
	}
	r := follow(t, consul.Options{Address: a.Address(), Table: []string{"a"}, Times: consul.DefaultTimes()})
	eventually(t, "all are seen", func() bool { return len(shown(r)) == instances })
	random := rand.New(rand.NewPCG(4, 1000))
	states := []string{api.HealthPassing, api.HealthWarning, api.HealthCritical}
	for range flips {
		check := fmt.Sprint("check-", random.IntN(instances))
		if err := a.client.Agent().UpdateTTL(check, "", states[random.IntN(len(states))]); err != nil {
			t.Fatal(err)
		}
	}
	flipped := time.Now()
	var want []string
	eventually(t, "the pool is Consul's", func() bool { want = a.passing("a"); return slices.Equal(shown(r), want) })
	if took := time.Since(flipped); took > 5*time.Second {
		t.Errorf("the last change was seen after %s", took)
	}
	t.Logf("%d of %d pass; seen after %s", len(want), instances, time.Since(flipped))
	time.Sleep(time.Second) // Consul's own news may have been under way
	if want, got := a.passing("a"), shown(r); !slices.Equal(got, want) {
		t.Errorf("instances = %v, Consul has %v", got, want)
	}
}
