package forward

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// settledFor is how long a connection of HTTP/2 must have been idle before it is
// closed: its last frame may still be in a buffer of net/http's when it becomes idle.
const settledFor = 100 * time.Millisecond

// idleConns are the connections of net/http's server that wait for a request. Its
// methods are safe for concurrent use.
type idleConns struct {
	scarce func() bool // somebody waits for a connection to end

	mu  sync.Mutex
	all map[net.Conn]idleConn
}

// idleConn is a connection that waits for its first request, has had one, or is of
// HTTP/2.
type idleConn struct {
	idle   bool
	silent bool      // nothing is known to have come
	from   time.Time // when it may be closed
}

// note follows a connection's state. While somebody waits, a connection that becomes
// idle is closed; one of HTTP/2 that has not had a request is let alone for a while.
func (i *idleConns) note(c net.Conn, state http.ConnState, frames bool) {
	i.mu.Lock()
	old, known := i.all[c]
	known = known && !old.silent
	switch {
	case state == http.StateNew && !heard(c):
		i.all[c] = idleConn{idle: true, silent: true, from: time.Now().Add(silentFor)}
	case state == http.StateIdle:
		old = idleConn{idle: true, from: time.Now()}
		if frames && known {
			old.from = old.from.Add(settledFor)
		} else if frames {
			old.from = old.from.Add(freshFor)
		}
		i.all[c] = old
	case state == http.StateActive && known && frames:
		old.idle = false
		i.all[c] = old
	default:
		delete(i.all, c)
	}
	i.mu.Unlock()
	if state == http.StateIdle && i.scarce() {
		i.endOne()
	}
}

// endOne closes some idle connection, now or as soon as there is one that may be
// closed, if somebody waits then. It reports whether it has closed one.
func (i *idleConns) endOne() bool {
	c, soonest := i.takeOne(time.Now())
	if c != nil {
		_ = c.Close()
		return true
	}
	if soonest > 0 {
		time.AfterFunc(soonest, func() {
			if i.scarce() {
				i.endOne()
			}
		})
	}
	return false
}

// heard reports whether a connection has sent something, as far as can be known.
func heard(c net.Conn) bool {
	g := gateOf(c)
	return g == nil || g.heard.Load()
}

// takeOne takes a connection that may be closed, a silent one rather than another. Where there is none, it returns how
// long the next one takes, 0 being that none is idle.
func (i *idleConns) takeOne(now time.Time) (c net.Conn, soonest time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	silent := false // there is a connection that will be
	for one, state := range i.all {
		if !state.idle || state.silent && heard(one) {
			continue
		}
		left := state.from.Sub(now)
		switch {
		case left <= 0 && state.silent:
			delete(i.all, one)
			return one, 0
		case left <= 0:
			c = one
		case soonest == 0 || left < soonest:
			soonest = left
		}
		silent = silent || state.silent
	}
	if silent {
		return nil, soonest
	}
	delete(i.all, c)
	return c, soonest
}
