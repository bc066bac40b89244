package forward

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// phase of a connection that net/http does not have.
const (
	connFresh   int32 = iota // accepted; no byte of a request has come
	connIdle                 // waits for a further request
	connReading              // reads a head; the connection may still be handed over
	connServing              // a request is under way
)

// freshFor is how long a connection without a byte is taken for one whose first
// request is on its way when the server shuts down. net/http allows as much.
const freshFor = 5 * time.Second

// How long a connection has been silent before it gives way to another one. Its first
// request is on its way with the connection; a handshake takes a few round trips.
const (
	silentFor    = 50 * time.Millisecond
	handshakeFor = time.Second
)

// freshShare is the part of all connections, one in so many, that new ones may take
// from those that wait for a further request. Beyond it they wait for silent ones.
const freshShare = 8

// tracked is a connection that the loop has. Its methods are safe for concurrent
// use.
type tracked struct {
	conn   net.Conn
	since  time.Time
	state  atomic.Int32
	ending atomic.Bool // it is to end rather than wait for a further request
	gone   atomic.Bool // the loop has it no longer
}

// end ends a connection that waits for a request, now or when it comes to that.
func (t *tracked) end() {
	t.ending.Store(true)
	if s := t.state.Load(); s == connIdle || s == connFresh {
		_ = t.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// loop serves connections, each in a goroutine of its own, and keeps account of them.
// The goroutines end with their connections, at the latest with close.
type loop struct {
	server *Server
	dates  dates

	mu      sync.Mutex
	all     map[*tracked]struct{}
	fresh   []*tracked // with MaxConnections: in their order, those that may be silent
	looking bool       // somebody will look for a silent one again
	closed  bool
}

func newLoop(s *Server) *loop { return &loop{server: s, all: make(map[*tracked]struct{})} }

// serve begins with a connection.
func (l *loop) serve(c net.Conn) {
	t := &tracked{conn: c, since: time.Now()}
	l.mu.Lock()
	if !l.closed {
		l.all[t] = struct{}{}
		l.expect(t)
	}
	closed := l.closed
	l.mu.Unlock()
	if closed {
		_ = c.Close()
		l.server.release()
		return
	}
	go l.run(t)
}

// run chooses who serves a connection: the loop, or net/http. HTTP/2 goes there as it
// is, so that net/http can see it for what it is.
func (l *loop) run(t *tracked) {
	if secured, ok := t.conn.(*tls.Conn); ok {
		switch protocol, ok := l.server.handshake(secured); {
		case !ok:
			l.drop(t)
			return
		case protocol == "h2":
			l.handOver(t, t.conn)
			return
		}
	}
	if !l.server.loops() {
		l.handOver(t, l.server.newGate(t.conn, nil))
		return
	}
	runLoop(l, t)
}

// handOver gives a connection to net/http's server; c is how that has it.
func (l *loop) handOver(t *tracked, c net.Conn) {
	l.server.hand(c)
	l.forget(t)
}

// drop closes a connection.
func (l *loop) drop(t *tracked) {
	_ = t.conn.Close()
	l.forget(t)
	l.server.release()
}

func (l *loop) forget(t *tracked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, t)
	t.gone.Store(true)
}

// expect remembers a connection that is silent as yet, and forgets the first ones that
// are not. The caller holds mu.
func (l *loop) expect(t *tracked) {
	if l.server.MaxConnections == 0 {
		return
	}
	l.skipHeard()
	l.fresh = append(l.fresh, t)
}

// skipHeard forgets the first ones that have said something, or have ended. The caller
// holds mu.
func (l *loop) skipHeard() {
	for len(l.fresh) > 0 && !l.fresh[0].silent() {
		l.fresh[0] = nil
		l.fresh = l.fresh[1:]
	}
}

func (t *tracked) silent() bool {
	return t.state.Load() == connFresh && !t.gone.Load() && !t.ending.Load()
}

// endOneSilent ends the connection that has been silent for longest, and reports
// whether there was one. Where its request may still be on its way, somebody will look
// again; soon says that this is worth the wait. The caller holds mu.
func (l *loop) endOneSilent(now time.Time) (ended, soon bool) {
	l.skipHeard()
	if len(l.fresh) == 0 {
		return false, false
	}
	t, patience := l.fresh[0], silentFor
	if _, secured := t.conn.(*tls.Conn); secured {
		patience = handshakeFor
	}
	left := patience - now.Sub(t.since)
	if left <= 0 {
		t.end()
		return true, false
	}
	if !l.looking {
		l.looking = true
		time.AfterFunc(left, l.lookAgain)
	}
	return false, len(l.fresh) > l.server.MaxConnections/freshShare
}

// lookAgain ends a connection if somebody still waits for that.
func (l *loop) lookAgain() {
	l.mu.Lock()
	l.looking = false
	l.mu.Unlock()
	if l.server.slots.scarce.Load() {
		l.server.endOneIdle()
	}
}

// endOneIdle ends some connection that has been silent since it came, or else one that
// waits for a further request, and reports whether there was one, or will be soon.
func (l *loop) endOneIdle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ended, soon := l.endOneSilent(time.Now()); ended || soon {
		return true
	}
	for t := range l.all {
		if t.state.Load() == connIdle && !t.ending.Load() {
			t.end()
			return true
		}
	}
	return false
}

// settle ends the idle connections, and waits until no other may still be handed
// over.
func (l *loop) settle(ctx context.Context) error {
	return poll(ctx, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		settled := true
		for t := range l.all {
			switch t.state.Load() {
			case connIdle:
				t.end()
			case connFresh:
				if time.Since(t.since) > freshFor {
					t.end()
				}
				settled = false
			case connReading:
				settled = false
			}
		}
		return settled
	})
}

// wait waits until all connections have ended.
func (l *loop) wait(ctx context.Context) error {
	return poll(ctx, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		for t := range l.all {
			if t.state.Load() != connServing {
				t.end()
			}
		}
		return len(l.all) == 0
	})
}

// close closes all connections.
func (l *loop) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for t := range l.all {
		_ = t.conn.Close()
	}
}

// poll asks until the answer is yes or ctx ends. A shutdown happens once, a request
// often, and must not pay for a notification.
func poll(ctx context.Context, done func() bool) error {
	const longest = 100 * time.Millisecond
	pause := time.Millisecond
	for !done() {
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		pause = min(2*pause, longest)
	}
	return nil
}
