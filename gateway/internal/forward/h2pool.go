package forward

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"specialroutes.example/gateway/internal/config"
)

// Bounds of HTTP/2 connections.
const (
	// streamBuffer is how much of one body may wait here for who reads it slowly.
	// net/http's own is 4 MiB for answers and 1 MiB for requests.
	streamBuffer = 256 << 10

	// connBuffer is that for all requests' bodies of one client's connection: while it
	// is full, none of them goes on.
	connBuffer = 4 << 20

	// frameMost is the longest frame that may come, the least that may be asked for: a
	// frame is read whole before any of it goes on.
	frameMost = 16 << 10

	// writeStall ends a connection that has taken no byte for so long: all requests
	// on it wait for the one that is being written.
	writeStall = 10 * time.Second
)

// freshMost is how many new connections may be closed, or take no request at all,
// before a request that waited for them is on one. Those that others have filled
// meanwhile do not count.
const freshMost = 8

// streamsGuess is how many requests a connection is expected to take while none to
// the same upstream has told. net/http supposes as much.
const streamsGuess = 100

var errGoneAtOnce = errors.New("new connections are of no use")

// h2Pool is the HTTP/2 connections to upstreams. net/http's own pool is not used,
// for it sends requests again by itself, also some that the upstream may have
// acted on. It is safe for concurrent use.
type h2Pool struct {
	transport *http.Transport
	context   context.Context // of the dials; ends with close
	cancel    context.CancelFunc
	dials     sync.WaitGroup

	mu    sync.Mutex
	hosts map[h2Key]*h2Host
}

// h2Key names where connections lead: scheme is that of the target, h2c or h2.
type h2Key struct{ scheme, address string }

// h2Host is the connections to one upstream.
type h2Host struct {
	conns   []*http.ClientConn
	dials   []*h2Dial // under way
	streams int       // that a connection was seen to take at once; 0: not known yet
}

// h2Dial is a connect that requests wait for: as many as it is expected to serve.
type h2Dial struct {
	waiting int
	done    chan struct{} // closed when conn or err is set
	conn    *http.ClientConn
	err     error
}

// serverH2 is how HTTP/2 is spoken with clients. One that takes no byte of what is
// written to it for as long as a body may be idle is gone, with all its streams.
func serverH2(t config.Timeouts) *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxReadFrameSize:              frameMost,
		MaxReceiveBufferPerStream:     streamBuffer,
		MaxReceiveBufferPerConnection: connBuffer,
		WriteByteTimeout:              t.Idle,
	}
}

func newH2Pool(o config.Upstream, d *dialer) *h2Pool {
	p := &h2Pool{
		transport: &http.Transport{
			DialContext:            d.bare,
			DialTLSContext:         d.secureH2,
			DisableCompression:     true,
			IdleConnTimeout:        o.IdleTimeout,
			ExpectContinueTimeout:  continueWait,
			MaxResponseHeaderBytes: answerHeadMost,
			Protocols:              new(http.Protocols),
			HTTP2: &http.HTTP2Config{
				MaxReadFrameSize: frameMost, MaxReceiveBufferPerStream: streamBuffer, WriteByteTimeout: writeStall,
			},
		},
		hosts: make(map[h2Key]*h2Host),
	}
	p.transport.Protocols.SetHTTP2(true)
	p.transport.Protocols.SetUnencryptedHTTP2(true)
	p.context, p.cancel = context.WithCancel(context.Background())
	return p
}

// take returns a connection with a stream reserved on it, which RoundTrip uses up.
// The error is ctx's, or one that is errConnect.
func (p *h2Pool) take(ctx context.Context, key h2Key) (*http.ClientConn, error) {
	for useless := 0; ; {
		conn, dial := p.reserve(ctx, key)
		if conn != nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-dial.done:
			if dial.err != nil {
				return nil, dial.err
			}
		}
		if dial.conn.Err() == nil && dial.conn.InFlight() > 0 {
			continue // it is of use, to others
		}
		if useless++; useless > freshMost {
			return nil, &connectError{errGoneAtOnce}
		}
	}
}

// reserve reserves a stream, or returns the connect to wait for.
func (p *h2Pool) reserve(ctx context.Context, key h2Key) (*http.ClientConn, *h2Dial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.hosts[key]
	if h == nil {
		h = new(h2Host)
		p.hosts[key] = h
	}
	for _, c := range h.conns {
		if c.Reserve() == nil {
			return c, nil
		}
		if n := c.InFlight(); n > 0 && c.Err() == nil {
			h.streams = n
		}
	}
	dial := h.join()
	if dial == nil {
		dial = &h2Dial{waiting: 1, done: make(chan struct{})}
		h.dials = append(h.dials, dial)
		p.sweep()
		limit := ctx.Value(connectLimit{})
		p.dials.Go(func() {
			p.connect(context.WithValue(p.context, connectLimit{}, limit), key, h, dial)
		})
	}
	return nil, dial
}

// join adds a request to those that wait for a connect that is under way, nil where
// enough wait for each. The caller holds the pool's mu.
func (h *h2Host) join() *h2Dial {
	most := h.streams
	if most == 0 {
		most = streamsGuess
	}
	for _, d := range h.dials {
		if d.waiting < most {
			d.waiting++
			return d
		}
	}
	return nil
}

// connect makes a connection that belongs to no request: the one that needed it
// first may leave while others wait.
func (p *h2Pool) connect(ctx context.Context, key h2Key, h *h2Host, dial *h2Dial) {
	conn, err := p.transport.NewClientConn(ctx, h2Schemes[key.scheme], key.address)
	if err == nil {
		awaitSettings(ctx, conn)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(dial.done)
	h.dials = slices.DeleteFunc(h.dials, func(d *h2Dial) bool { return d == dial })
	switch {
	case err != nil:
		dial.err = &connectError{err}
	case ctx.Err() != nil:
		dial.err = &connectError{ctx.Err()}
		retire(conn)
	default:
		dial.conn = conn
		h.conns = append(h.conns, conn)
	}
}

// settingsWait is how long a new connection waits for the upstream's first frame. It
// says how many requests may be under way at once; one too many would be refused.
const settingsWait = 100 * time.Millisecond

// awaitSettings waits until the upstream has said how many requests it takes at once.
// One that says what net/http supposes anyway is not noticed: it costs the wait.
func awaitSettings(ctx context.Context, conn *http.ClientConn) {
	ctx, cancel := context.WithTimeout(ctx, settingsWait)
	defer cancel()
	_ = poll(ctx, func() bool { return conn.Available() != streamsGuess })
}

// h2Schemes are the schemes of targets that HTTP/2 is spoken with, and what they
// are called on the wire.
var h2Schemes = map[string]string{"h2c": "http", "h2": "https"}

// sweep forgets what has been closed. The caller holds mu.
func (p *h2Pool) sweep() {
	for key, h := range p.hosts {
		h.conns = slices.DeleteFunc(h.conns, func(c *http.ClientConn) bool { return c.Err() != nil })
		if len(h.conns) == 0 && len(h.dials) == 0 {
			delete(p.hosts, key)
		}
	}
}

// discard takes a connection that no answer came from in time out of the pool. Its
// other requests go on.
func (p *h2Pool) discard(key h2Key, conn *http.ClientConn) {
	p.mu.Lock()
	if h := p.hosts[key]; h != nil {
		h.conns = slices.DeleteFunc(h.conns, func(c *http.ClientConn) bool { return c == conn })
	}
	p.mu.Unlock()
	retire(conn)
}

// close ends the connects that are under way, and the connections when their
// requests end.
func (p *h2Pool) close() {
	p.cancel()
	p.dials.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.hosts {
		for _, c := range h.conns {
			retire(c)
		}
	}
	clear(p.hosts)
}

// retire closes a connection when nothing is in flight on it.
func retire(c *http.ClientConn) {
	c.SetStateHook(closeUnused)
	closeUnused(c)
}

func closeUnused(c *http.ClientConn) {
	if c.InFlight() == 0 {
		_ = c.Close()
	}
}
