package consul

import (
	"cmp"
	"maps"
	"slices"

	"specialroutes.example/gateway/internal/registry"
)

// State returns what is known of each service, in order, for Restore after a
// restart. The instances include those that are unconfirmed and those that are set
// aside.
func (r *Registry) State() []registry.Known {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []registry.Known
	for service, p := range r.pools {
		if !p.asOf.IsZero() {
			all = append(all, registry.Known{Service: service, AsOf: p.asOf, Instances: p.all()})
		}
	}
	all = slices.AppendSeq(all, maps.Values(r.restored))
	slices.SortFunc(all, func(a, b registry.Known) int { return cmp.Compare(a.Service, b.Service) })
	return all
}

// Restore puts in force what an earlier process knew, for the services of which
// Consul has not told yet. The instances are unconfirmed until Consul lists them; its
// first answer begins the time in which those that are missing stay.
func (r *Registry) Restore(known []registry.Known) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range known {
		p := r.pools[k.Service]
		switch {
		case p == nil:
			r.restored[k.Service] = k // its service may be followed later
		case p.asOf.IsZero() && !p.closed:
			r.restore(p, k)
		}
	}
}

// restore fills a pool that knows nothing yet. Only then is the service one that the
// readiness need not wait for.
func (r *Registry) restore(p *pool, k registry.Known) {
	p.asOf, p.fromFile = k.AsOf, true
	for _, i := range k.Instances {
		i.Unconfirmed = true
		p.unconfirmed[i.ID] = i
	}
	r.publish(p)
	r.answered(p.service)
}
