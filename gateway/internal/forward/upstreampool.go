//go:build linux

package forward

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"specialroutes.example/gateway/internal/balance"
	"specialroutes.example/gateway/internal/config"
)

// origin is what connections may be shared for.
type origin struct{ scheme, address string }

// links is the connections to all upstreams. It is safe for concurrent use.
type links struct {
	upstream config.Upstream
	dialer   *dialer
	buffers  linkBuffers

	pools    atomic.Pointer[map[origin]*linkPool] // replaced, never changed
	changing sync.Mutex                           // held while pools is replaced
	closed   bool                                 // by changing

	ctx  context.Context // of dials; ends with close
	stop context.CancelFunc
	done sync.WaitGroup
}

// newLinks starts the goroutine that closes connections which have been idle for
// too long. close ends it.
func newLinks(o config.Upstream, t *trust) *links {
	ls := &links{upstream: o, dialer: newDialer(o, t, nil)}
	ls.pools.Store(&map[origin]*linkPool{})
	ls.ctx, ls.stop = context.WithCancel(context.Background())
	ls.done.Go(ls.sweep)
	return ls
}

// close closes what is idle. What is in use is closed when it comes back.
func (ls *links) close() {
	ls.stop()
	ls.done.Wait()
	ls.changing.Lock()
	defer ls.changing.Unlock()
	ls.closed = true
	for _, p := range *ls.pools.Load() {
		p.retire()
	}
	ls.pools.Store(&map[origin]*linkPool{})
}

// of returns the pool for a target.
func (ls *links) of(t *balance.Target) *linkPool {
	key := origin{t.Scheme, t.Address}
	if p, ok := (*ls.pools.Load())[key]; ok {
		return p
	}
	return ls.add(key)
}

func (ls *links) add(key origin) *linkPool {
	ls.changing.Lock()
	defer ls.changing.Unlock()
	pools := *ls.pools.Load()
	if p, ok := pools[key]; ok {
		return p
	}
	p := newLinkPool(ls, key)
	if ls.closed {
		p.retire()
		return p
	}
	pools = maps.Clone(pools)
	pools[key] = p
	ls.pools.Store(&pools)
	return p
}

// sweepEvery is how soon a connection is closed that the upstream has closed while
// it was idle.
const sweepEvery = 250 * time.Millisecond

// sweep closes, now and then, what has been idle for too long and what the upstream
// has closed, and forgets targets that nobody has asked for in a while: endpoints and
// instances come and go.
func (ls *links) sweep() {
	every := max(min(ls.upstream.IdleTimeout/4, sweepEvery), time.Millisecond)
	forgotten := int64(2*ls.upstream.IdleTimeout/every) + 1
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ls.ctx.Done():
			return
		case now := <-tick.C:
			for key, p := range *ls.pools.Load() {
				p.sweep(now)
				if p.unused.Add(1) > forgotten && p.idle.Load() == 0 {
					ls.forget(key, p)
				}
			}
		}
	}
}

func (ls *links) forget(key origin, p *linkPool) {
	ls.changing.Lock()
	defer ls.changing.Unlock()
	pools := maps.Clone(*ls.pools.Load())
	delete(pools, key)
	ls.pools.Store(&pools)
	p.retire()
}

// linkPool is the idle connections to one target. They lie on several shelves, so
// that requests on many cores need not wait for one another; on a shelf the one that
// was used last is taken first.
type linkPool struct {
	links   *links
	origin  origin
	idle    atomic.Int64
	unused  atomic.Int64 // sweeps since the last request
	shelves []shelf
}

type shelf struct {
	mu      sync.Mutex
	retired bool // nothing may be put here any more
	links   []*link
	count   atomic.Int64 // of links, to look without the lock
	_       [64]byte     // a cache line of its own
}

// shelvesMost is where more shelves bring nothing.
const shelvesMost = 32

func newLinkPool(ls *links, key origin) *linkPool {
	return &linkPool{links: ls, origin: key, shelves: make([]shelf, min(runtime.GOMAXPROCS(0), shelvesMost))}
}

// get takes an idle connection that can be used, nil when there is none. at says
// which shelf is looked at first.
func (p *linkPool) get(at int, now time.Time) *link {
	if p.unused.Load() != 0 {
		p.unused.Store(0)
	}
	for {
		l := p.take(at)
		if l == nil {
			return nil
		}
		if now.Sub(l.idleSince) < p.links.upstream.IdleTimeout && l.quiet() {
			return l
		}
		l.close()
	}
}

// take takes a link from the first shelf that has one and is free, and waits for
// none that is not.
func (p *linkPool) take(at int) *link {
	if p.idle.Load() == 0 {
		return nil
	}
	for i := range p.shelves {
		s := &p.shelves[(at+i)%len(p.shelves)]
		if s.count.Load() == 0 || !s.mu.TryLock() {
			continue
		}
		l := s.pop()
		s.mu.Unlock()
		if l != nil {
			p.idle.Add(-1)
			return l
		}
	}
	return nil
}

func (s *shelf) pop() *link {
	n := len(s.links) - 1
	if n < 0 {
		return nil
	}
	l := s.links[n]
	s.links[n] = nil
	s.links = s.links[:n]
	s.count.Store(int64(n))
	return l
}

// put keeps a connection for the next request, or closes it where there are enough.
func (p *linkPool) put(at int, l *link, now time.Time) {
	l.rest(&p.links.buffers)
	l.idleSince = now
	if p.idle.Add(1) > int64(p.links.upstream.MaxIdlePerTarget) || !p.shelve(at, l) {
		p.idle.Add(-1)
		l.close()
	}
}

// shelve puts a link on the first shelf that is free; false: the pool has retired.
func (p *linkPool) shelve(at int, l *link) bool {
	for i := range p.shelves {
		if s := &p.shelves[(at+i)%len(p.shelves)]; s.mu.TryLock() {
			kept := s.push(l)
			s.mu.Unlock()
			return kept
		}
	}
	s := &p.shelves[at%len(p.shelves)]
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.push(l)
}

func (s *shelf) push(l *link) bool {
	if s.retired {
		return false
	}
	s.links = append(s.links, l)
	s.count.Store(int64(len(s.links)))
	return true
}

// sweep closes the idle connections that no request may use.
func (p *linkPool) sweep(now time.Time) {
	for i := range p.shelves {
		p.shelves[i].clear(p, func(l *link) bool {
			return now.Sub(l.idleSince) >= p.links.upstream.IdleTimeout || !l.quiet()
		})
	}
}

// retire closes all and takes no more.
func (p *linkPool) retire() {
	for i := range p.shelves {
		s := &p.shelves[i]
		s.mu.Lock()
		s.retired = true
		s.mu.Unlock()
		s.clear(p, func(*link) bool { return true })
	}
}

// clear closes those links of a shelf for which over holds.
func (s *shelf) clear(p *linkPool, over func(*link) bool) {
	if s.count.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.links)
	s.links = slices.DeleteFunc(s.links, func(l *link) bool {
		gone := over(l)
		if gone {
			l.close()
		}
		return gone
	})
	s.count.Store(int64(len(s.links)))
	p.idle.Add(int64(len(s.links) - before))
}
