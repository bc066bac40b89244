package consul

import (
	"maps"
	"slices"
	"time"

	"specialroutes.example/gateway/internal/registry"
)

// pool is what is known of one service. Registry.mu guards it.
type pool struct {
	service     string
	closed      bool                         // nobody follows the service any more
	asOf        time.Time                    // of the last good answer; zero: there was none
	failing     time.Time                    // since when questions fail; zero: the last did not
	fromFile    bool                         // that answer was given to an earlier process
	listed      []registry.Instance          // of that answer
	unconfirmed map[string]registry.Instance // by ID: not in it, but known from before
	settled     time.Time                    // until then what is missing is unconfirmed
	expiry      *time.Timer                  // runs out at settled; nil: nothing is unconfirmed
}

func (r *Registry) open(service string) *pool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &pool{service: service, unconfirmed: make(map[string]registry.Instance)}
	r.pools[service] = p
	if k, ok := r.restored[service]; ok {
		delete(r.restored, service)
		r.restore(p, k)
	}
	return p
}

// forget ends a pool, and takes its instances out unless they are to be kept.
func (r *Registry) forget(p *pool, keep bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.closed = true
	p.stopExpiry()
	if !keep && r.pools[p.service] == p {
		delete(r.pools, p.service)
		r.swap(p.service, nil)
	}
}

// apply puts an answer in force. Where it is the first one after a break (an error,
// an index that went backwards), Consul may not know yet what it knew before: a
// restarted agent takes the checks of its services for critical until they have
// run, and one that lost its state learns of them when they register again. So from
// then on, until Times.Unconfirmed is over, what is missing stays as unconfirmed.
// Otherwise a shorter or empty list holds at once.
func (r *Registry) apply(p *pool, list []registry.Instance, broken bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.closed {
		return
	}
	now := r.o.Now()
	if p.fromFile || broken && !p.asOf.IsZero() {
		p.settled = now.Add(r.o.Times.Unconfirmed)
	}
	if now.Before(p.settled) {
		for _, i := range p.listed {
			i.Unconfirmed = true
			p.unconfirmed[i.ID] = i
		}
	} else {
		clear(p.unconfirmed)
	}
	for _, i := range list {
		delete(p.unconfirmed, i.ID)
	}
	p.listed, p.asOf, p.failing, p.fromFile = list, now, time.Time{}, false
	r.publish(p)
	r.expire(p, now)
	r.answered(p.service)
}

// publish puts what the pool knows into the snapshot.
func (r *Registry) publish(p *pool) { r.swap(p.service, p.all()) }

// all returns the instances listed and those that are unconfirmed.
func (p *pool) all() []registry.Instance {
	all := make([]registry.Instance, 0, len(p.listed)+len(p.unconfirmed))
	return slices.AppendSeq(append(all, p.listed...), maps.Values(p.unconfirmed))
}

func (r *Registry) swap(service string, instances []registry.Instance) {
	before := r.snapshot.Load()
	after := before.With(service, instances)
	if after == before {
		return
	}
	r.snapshot.Store(after)
	if r.o.Changed != nil {
		r.o.Changed()
	}
	r.log.Info("instances changed", "of", service, "usable", len(after.Instances(service)),
		"setAside", len(after.SetAside()))
}

// expire sees to it that unconfirmed instances go when their time is over, also
// while no answer comes.
func (r *Registry) expire(p *pool, now time.Time) {
	p.stopExpiry()
	if len(p.unconfirmed) == 0 {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(p.settled.Sub(now), func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if p.expiry != timer {
			return // it was stopped too late
		}
		r.log.Warn("instances that were not listed again are given up", "of", p.service, "instances", len(p.unconfirmed))
		clear(p.unconfirmed)
		r.publish(p)
	})
	p.expiry = timer
}

func (p *pool) stopExpiry() {
	if p.expiry != nil {
		p.expiry.Stop()
		p.expiry = nil
	}
}

// interrupted keeps unconfirmed instances while Consul is away: their time begins
// anew with its first answer. It reports whether anything is known of the service.
func (r *Registry) interrupted(p *pool) (known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.stopExpiry()
	if p.failing.IsZero() {
		p.failing = r.o.Now()
	}
	return !p.asOf.IsZero()
}

// ConnectFailed takes an unconfirmed instance out of the snapshot. One that is from
// the file stays until Consul has answered: there is nothing yet that would bring it
// back, and its circuit keeps calls away.
func (r *Registry) ConnectFailed(service, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pools[service]
	if p == nil || p.closed || p.fromFile {
		return
	}
	if _, ok := p.unconfirmed[id]; !ok {
		return
	}
	delete(p.unconfirmed, id)
	r.publish(p)
	r.log.Warn("an unconfirmed instance cannot be connected to and is given up", "of", service, "instance", id)
}

// answered notes a good answer for the readiness.
func (r *Registry) answered(service string) {
	if !r.unready[service] {
		return
	}
	delete(r.unready, service)
	if len(r.unready) == 0 {
		close(r.ready)
	}
}
