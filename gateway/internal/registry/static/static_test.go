package static

import (
	"testing"

	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/registry"
	"specialroutes.example/gateway/internal/registry/registrytest"
)

func TestRegistry(t *testing.T) {
	t.Parallel()
	registrytest.Exercise(t, func(_ *testing.T, services map[string][]registry.Instance) registry.Registry {
		instances := make(map[string][]config.Instance)
		for service, list := range services {
			for _, i := range list {
				instances[service] = append(instances[service],
					config.Instance{ID: i.ID, Address: i.Address, Labels: i.Labels})
			}
		}
		return New(instances)
	})
}

func TestAnInstanceIsNamedByItsAddress(t *testing.T) {
	t.Parallel()
	r := New(map[string][]config.Instance{"a": {{Address: "10.0.0.1:80"}}})
	if got := r.Load().Instances("a")[0].ID; got != "10.0.0.1:80" {
		t.Errorf("ID = %q, want the address", got)
	}
}
