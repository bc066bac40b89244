package balance

import (
	"slices"
	"testing"

	"specialroutes.example/gateway/internal/registry"
)

func TestTheRegistryIsToldOfFailedConnectsToUnconfirmedInstances(t *testing.T) {
	t.Parallel()
	e := newEstate(t, map[string][]registry.Instance{"a": {
		{ID: "listed", Address: "10.0.0.1:80"}, {ID: "unconfirmed", Address: "10.0.0.2:80", Unconfirmed: true},
	}})
	var told []string
	e.balancer = New(Options{Now: e.clock.Now, ConnectFailed: func(service, id string) { told = append(told, service+"/"+id) }})
	s := e.balancer.Select(Want{Service: "a", Instances: e.instances})
	for range 2 {
		p := s.Next()
		p.ConnectFailed()
		p.Release()
	}
	if want := []string{"a/unconfirmed"}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	p := e.balancer.Select(Want{Service: "a", Instances: e.instances}).Next()
	p.Answered()
	p.Release()
	if len(told) != 1 {
		t.Errorf("told %v of an answer", told)
	}
}
