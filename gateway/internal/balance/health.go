package balance

import (
	"cmp"
	"slices"
	"time"
)

// The states of a circuit, as operators see them.
const (
	CircuitClosed   = "closed"    // all is well
	CircuitOpen     = "open"      // requests are kept away
	CircuitHalfOpen = "half-open" // the time is over: single requests find out
)

// Health is what is known of a target.
type Health struct {
	Circuit  string
	Failures int       // in a row
	Until    time.Time // when an open circuit becomes half-open
	Active   int64     // requests in flight
}

// Health returns the health of an instance. Of one that was never asked for it is as
// good as can be.
func (b *Balancer) Health(service, id string) Health {
	c, ok := b.circuits.Load(circuitKey{service, id})
	if !ok {
		return Health{Circuit: CircuitClosed}
	}
	return c.(*circuit).health(b.options.Now())
}

// EndpointHealth is the health of an endpoint.
type EndpointHealth struct {
	Endpoint string // as a record has it
	Health
}

// Endpoints returns the endpoints that requests went to lately, in order.
func (b *Balancer) Endpoints() []EndpointHealth {
	var all []EndpointHealth
	now := b.options.Now()
	b.endpoints.Range(func(key, c any) bool {
		all = append(all, EndpointHealth{key.(string), c.(*candidate).circuit.health(now)})
		return true
	})
	slices.SortFunc(all, func(a, b EndpointHealth) int { return cmp.Compare(a.Endpoint, b.Endpoint) })
	return all
}

func (c *circuit) health(now time.Time) Health {
	h := Health{Circuit: CircuitClosed, Active: c.active.Load(), Failures: int(c.failures.Load())}
	if h.Failures < tripAt {
		return h
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h.Circuit = CircuitHalfOpen
	if now.Before(c.until) {
		h.Circuit, h.Until = CircuitOpen, c.until
	}
	return h
}
