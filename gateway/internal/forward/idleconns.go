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

// idleConn is a connection that has had a request, or of HTTP/2.
type idleConn struct {
	idle bool
	from time.Time // when it may be closed
}

// note follows a connection's state. While somebody waits, a connection that becomes
// idle is closed; one of HTTP/2 that has not had a request is let alone for a while.
func (i *idleConns) note(c net.Conn, state http.ConnState, frames bool) {
	i.mu.Lock()
	old, known := i.all[c]
	switch {
	case state == http.StateIdle:
		old.idle, old.from = true, time.Now()
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

// takeOne takes a connection that may be closed. Where there is none, it returns how
// long the next one takes, 0 being that none is idle.
func (i *idleConns) takeOne(now time.Time) (c net.Conn, soonest time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for c, state := range i.all {
		if !state.idle {
			continue
		}
		left := state.from.Sub(now)
		if left <= 0 {
			delete(i.all, c)
			return c, 0
		}
		if soonest == 0 || left < soonest {
			soonest = left
		}
	}
	return nil, soonest
}
