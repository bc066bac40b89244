//go:build linux

package forward

import (
	"bufio"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/balance"
	"specialroutes.example/gateway/internal/config"
)

// pooled is a pool in front of an upstream that says nothing.
func pooled(t *testing.T, change func(*config.Upstream)) (*links, *linkPool, *scripted) {
	t.Helper()
	up := script(t, func(_ net.Conn, r *bufio.Reader) { _, _ = io.Copy(io.Discard, r) })
	o := config.Default().Upstream
	if change != nil {
		change(&o)
	}
	ls := newLinks(o, nil)
	t.Cleanup(ls.close)
	return ls, ls.of(&balance.Target{Scheme: "http", Address: up.address()}), up
}

func mustDial(t *testing.T, p *linkPool) *link {
	t.Helper()
	l, err := p.dial(time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestPoolGivesWhatWasUsedLast(t *testing.T) {
	t.Parallel()
	_, p, _ := pooled(t, nil)
	a, b := mustDial(t, p), mustDial(t, p)
	p.put(0, a, time.Now())
	p.put(0, b, time.Now())
	for i, want := range []*link{b, a, nil} {
		got := p.get(0, time.Now())
		if got != want {
			t.Errorf("get %d gives another one", i+1)
		}
		if got != nil {
			defer got.close()
		}
	}
}

// What lies on another shelf is found.
func TestPoolLooksOnAllShelves(t *testing.T) {
	t.Parallel()
	_, p, _ := pooled(t, nil)
	p.shelves = make([]shelf, 4)
	l := mustDial(t, p)
	p.put(3, l, time.Now())
	if got := p.get(1, time.Now()); got != l {
		t.Error("the connection is not found")
	}
	l.close()
}

func TestPoolKeepsNoMoreThanItMay(t *testing.T) {
	t.Parallel()
	_, p, _ := pooled(t, func(u *config.Upstream) { u.MaxIdlePerTarget = 2 })
	for range 5 {
		p.put(0, mustDial(t, p), time.Now())
	}
	if n := p.idle.Load(); n != 2 {
		t.Errorf("%d are idle, want 2", n)
	}
}

// Row 87: a connection that was idle for the limit is not given, however the sweep
// stands.
func TestPoolGivesNothingOld(t *testing.T) {
	t.Parallel()
	_, p, _ := pooled(t, func(u *config.Upstream) { u.IdleTimeout = time.Hour })
	l := mustDial(t, p)
	p.put(0, l, time.Now().Add(-time.Hour))
	if got := p.get(0, time.Now()); got != nil {
		t.Error("a connection over the limit is given")
	}
	if err := l.conn.SetDeadline(time.Time{}); err == nil {
		t.Error("it is not closed")
	}
}

func TestPoolGivesNothingThatSpeaksOrHasClosed(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(net.Conn){
		"speaks": func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 408 Too Late\r\n\r\n") },
		"closes": func(c net.Conn) { _ = c.(*net.TCPConn).CloseWrite() },
		"resets": func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); _ = c.Close() },
	} {
		_, p, up := pooled(t, func(u *config.Upstream) { u.IdleTimeout = time.Hour })
		l := mustDial(t, p)
		if !l.quiet() {
			t.Errorf("%s: it is not quiet before", name)
		}
		eventually(t, "accepted", func() bool { return up.accepted.Load() == 1 })
		up.mu.Lock()
		act(up.conns[0])
		up.mu.Unlock()
		eventually(t, name, func() bool { return !l.quiet() })
		p.put(0, l, time.Now())
		if got := p.get(0, time.Now()); got != nil {
			t.Errorf("%s: it is given", name)
		}
	}
}

// What nobody uses goes: connections after their idle time, and then the pools of
// targets that nobody asks for.
func TestPoolsOfVanishedTargetsEnd(t *testing.T) {
	t.Parallel()
	ls, p, up := pooled(t, func(u *config.Upstream) { u.IdleTimeout = 20 * time.Millisecond })
	p.put(0, mustDial(t, p), time.Now())
	for i := range 50 {
		ls.of(&balance.Target{Scheme: "https", Address: net.JoinHostPort("10.0.0.1", string(rune('0'+i%10))+"1")})
	}
	eventually(t, "forgotten", func() bool { return len(*ls.pools.Load()) == 0 })
	if n := p.idle.Load(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
	// One that comes back late is closed, not kept by a pool that nobody sees.
	l := mustDial(t, p)
	p.put(0, l, time.Now())
	if p.idle.Load() != 0 || l.conn.SetDeadline(time.Time{}) == nil {
		t.Error("a forgotten pool keeps a connection")
	}
	if again := ls.of(&balance.Target{Scheme: "http", Address: up.address()}); again == p {
		t.Error("a forgotten pool is given")
	}
}

func TestClosedPoolsKeepNothing(t *testing.T) {
	t.Parallel()
	ls, p, up := pooled(t, nil)
	idle, used := mustDial(t, p), mustDial(t, p)
	p.put(0, idle, time.Now())
	ls.close()
	p.put(0, used, time.Now())
	late := ls.of(&balance.Target{Scheme: "http", Address: up.address()})
	if _, err := late.dial(time.Second); err == nil {
		t.Error("a closed pool dials")
	}
	for i, l := range []*link{idle, used} {
		if l.conn.SetDeadline(time.Time{}) == nil {
			t.Errorf("connection %d is open", i+1)
		}
	}
}

// Whatever happens at the same time, no connection is given to two.
func TestPoolGivesEachConnectionToOne(t *testing.T) {
	t.Parallel()
	ls, p, _ := pooled(t, func(u *config.Upstream) { u.IdleTimeout, u.MaxIdlePerTarget = 50*time.Millisecond, 4 })
	p.shelves = make([]shelf, 3)
	var workers sync.WaitGroup
	for worker := range 8 {
		workers.Go(func() {
			for range 300 {
				l := p.get(worker, time.Now())
				if l == nil {
					var err error
					if l, err = p.dial(5 * time.Second); err != nil {
						t.Error(err)
						return
					}
				}
				l.r++ // the race detector sees two owners
				p.put(worker, l, time.Now())
			}
		})
	}
	workers.Wait()
	if n := p.idle.Load(); n < 0 || n > 4 {
		t.Errorf("%d are idle, want 0 to 4", n)
	}
	ls.close()
	if n := p.idle.Load(); n != 0 {
		t.Errorf("%d are idle after the end", n)
	}
}
