package balance

import (
	"sync"
	"sync/atomic"
	"time"
)

// The circuit's figures: it opens at the third failure in a row, for ten seconds
// that double with each further failure, thirty at most.
const (
	tripAt   = 3
	openTime = 10 * time.Second
	openMost = 30 * time.Second
)

// circuit is the health of one target, learnt from the requests that go there.
// Failures are connects that fail and answers that do not come in time; any
// answer, a 5xx too, clears the count.
type circuit struct {
	active   atomic.Int64 // requests in flight
	failures atomic.Int32 // in a row

	mu     sync.Mutex
	until  time.Time // open until then; meaningful from tripAt failures on
	slow   bool      // the last failure was an answer that did not come
	probe  int       // the number of the request that finds out; 0: none does
	probes int       // so far
	lease  time.Time // until then the probe goes alone

	seen time.Time // of Sweep: when it last had a reason to be kept
}

// state says whether a request may go to the target.
type state uint8

const (
	closed  state = iota // healthy
	ready                // the time is over: one request may probe
	tripped              // open, or probed right now
)

func (c *circuit) state(now time.Time) state {
	if c.failures.Load() < tripAt {
		return closed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stateLocked(now)
}

func (c *circuit) stateLocked(now time.Time) state {
	switch {
	case c.failures.Load() < tripAt:
		return closed
	case c.probe != 0 && now.Before(c.lease) || now.Before(c.until):
		return tripped
	}
	return ready
}

// enter lets a request in, false when the circuit is open. probe is not 0 for the
// request that finds out; it must end in succeed, fail or abandon. It goes alone for
// a while only: one that takes its time must not keep a healthy target out.
func (c *circuit) enter(now time.Time) (ok bool, probe int) {
	if c.failures.Load() < tripAt {
		return true, 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.stateLocked(now) {
	case closed:
		return true, 0
	case ready:
		c.probes++
		c.probe, c.lease = c.probes, now.Add(openTime)
		return true, c.probe
	}
	return false, 0
}

// connected records that the probe has its connection. Where connects were what
// failed, the next request may come in and find out more; where answers failed to
// come, a connection says nothing about them.
func (c *circuit) connected(probe int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.slow && c.probe == probe {
		c.probe = 0
	}
}

// succeed records an answer.
func (c *circuit) succeed() {
	if c.failures.Load() == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures.Store(0)
	c.probe = 0
}

// fail records a failure; slow says that it was an answer that did not come.
func (c *circuit) fail(now time.Time, slow bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probe, c.slow = 0, slow
	n := c.failures.Add(1)
	if n < tripAt {
		return
	}
	open := openMost
	if n < tripAt+2 {
		open = openTime << (n - tripAt)
	}
	c.until = now.Add(open)
}

// abandon ends a probe that found out nothing.
func (c *circuit) abandon(probe int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.probe == probe {
		c.probe = 0
	}
}

// opensAt returns when the target may be probed again; zero: its circuit is not open.
func (c *circuit) opensAt() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failures.Load() < tripAt {
		return time.Time{}
	}
	return c.until
}
