package balance

import (
	"sync/atomic"
	"time"

	"specialroutes.example/gateway/internal/registry"
)

// forgetAfter is how long what nobody needs any more is kept: the health of an
// instance that is gone, and may be back in a moment, and the counters of variants
// and endpoints that no request asks for.
const forgetAfter = 10 * time.Minute

// usage notes that something is in use. Requests write to it seldom, so that they do
// not fight for it.
type usage struct {
	used atomic.Bool
	last time.Time // of Sweep
}

func (u *usage) use() {
	if !u.used.Load() {
		u.used.Store(true)
	}
}

// idle reports whether it has not been used for forgetAfter.
func (u *usage) idle(now time.Time) bool {
	if u.used.Swap(false) || u.last.IsZero() {
		u.last = now
	}
	return now.Sub(u.last) >= forgetAfter
}

// Sweep forgets what has not been needed for ten minutes: circuits of instances that
// the snapshot does not list, endpoints and variants that no request has asked for.
// It is to be called every minute or so.
func (b *Balancer) Sweep(s *registry.Snapshot) {
	b.sweeping.Lock()
	defer b.sweeping.Unlock()
	now := b.options.Now()
	b.pools.Range(func(key, p any) bool {
		if p.(*pool).idle(now) {
			b.pools.Delete(key)
		}
		return true
	})
	needed := make(map[*circuit]bool)
	b.endpoints.Range(func(key, c any) bool {
		if c.(*candidate).idle(now) {
			b.endpoints.Delete(key)
		} else {
			needed[c.(*candidate).circuit] = true
		}
		return true
	})
	b.circuits.Range(func(key, c any) bool {
		k, c2 := key.(circuitKey), c.(*circuit)
		_, listed := registry.Find(s.Instances(k.service), k.id)
		if listed || needed[c2] || c2.active.Load() > 0 || c2.seen.IsZero() {
			c2.seen = now
		} else if now.Sub(c2.seen) >= forgetAfter {
			b.circuits.Delete(key)
		}
		return true
	})
}
