// Package static is the registry of a fixed list: the embedded default, for the
// demo and for estates without a registry.
package static

import (
	"maps"

	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/registry"
)

// Registry lists what it was given. It is safe for concurrent use.
type Registry struct {
	snapshot *registry.Snapshot
	ready    chan struct{}
}

var _ registry.Registry = (*Registry)(nil)

// New returns a registry of the configured instances, by service. It keeps
// nothing of the map.
func New(instances map[string][]config.Instance) *Registry {
	services := make(map[string][]registry.Instance, len(instances))
	for service, list := range instances {
		for _, i := range list {
			services[service] = append(services[service],
				registry.Instance{ID: i.ID, Address: i.Address, Labels: maps.Clone(i.Labels)})
		}
	}
	r := &Registry{snapshot: registry.NewSnapshot(services), ready: make(chan struct{})}
	close(r.ready)
	return r
}

// Load returns the one snapshot.
func (r *Registry) Load() *registry.Snapshot { return r.snapshot }

// Ready is closed from the start.
func (r *Registry) Ready() <-chan struct{} { return r.ready }

// Status says that the list is always right.
func (r *Registry) Status() registry.Status { return registry.Status{Source: registry.Live} }

// ConnectFailed does nothing: the list is always right.
func (r *Registry) ConnectFailed(_, _ string) {}
