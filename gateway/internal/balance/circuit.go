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
	trips    *atomic.Int64 // shared: how many circuits are not closed
	active   atomic.Int64  // requests in flight
	failures atomic.Int32  // in a row

	mu      sync.Mutex
	until   time.Time // open until then; meaningful from tripAt failures on
	probing bool      // a request has been let through to find out
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
	case c.probing || now.Before(c.until):
		return tripped
	}
	return ready
}

// enter lets a request in, false when the circuit is open. probe says that the
// request is the one that finds out; it must end in succeed, fail or abandon.
func (c *circuit) enter(now time.Time) (ok, probe bool) {
	if c.failures.Load() < tripAt {
		return true, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.stateLocked(now) {
	case closed:
		return true, false
	case ready:
		c.probing = true
		return true, true
	}
	return false, false
}

// succeed records an answer.
func (c *circuit) succeed() {
	if c.failures.Load() == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failures.Swap(0) >= tripAt {
		c.trips.Add(-1)
	}
	c.probing = false
}

// fail records a failure.
func (c *circuit) fail(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probing = false
	n := c.failures.Add(1)
	if n < tripAt {
		return
	}
	if n == tripAt {
		c.trips.Add(1)
	}
	open := openMost
	if n < tripAt+2 {
		open = openTime << (n - tripAt)
	}
	c.until = now.Add(open)
}

// abandon ends a probe that found out nothing.
func (c *circuit) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probing = false
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
