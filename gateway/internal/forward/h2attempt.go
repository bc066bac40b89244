package forward

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"specialroutes.example/gateway/internal/balance"
)

// h2Attempt is what an attempt over HTTP/2 knows instead of what the connection
// tells over HTTP/1: it is shared with other requests.
type h2Attempt struct {
	key     h2Key
	conn    *http.ClientConn // nil: there is none yet
	written atomic.Bool      // the head has been written
	heard   atomic.Bool      // a 1xx answer has come

	informed int // 1xx answers, counted by who reads the connection
	relay    relay
}

// overH2 reports whether a target is spoken to in HTTP/2.
func overH2(t *balance.Target) bool { return h2Schemes[t.Scheme] != "" }

// roundTrip sends the request over the protocol that the target speaks.
func (at *attempt) roundTrip(req *http.Request) (*http.Response, error) {
	if at.h2 == nil {
		return at.proxy.transport.RoundTrip(req)
	}
	conn, err := at.proxy.h2.take(at.ctx, at.h2.key)
	if err != nil {
		return nil, err
	}
	at.h2.conn = conn
	at.ex.Pick.Connected()
	return conn.RoundTrip(req)
}

// fitH2 makes the attempt's request one for HTTP/2. A wish for an upgrade is left
// out, as one for anything but a WebSocket is: there is no such thing here.
func (at *attempt) fitH2(req *http.Request) {
	req.URL.Scheme = h2Schemes[req.URL.Scheme]
	// The only form that passes a path of several slashes through net/url: what
	// stands before it is cut off by the transport.
	req.URL.Opaque = "//" + req.Host + at.insert + req.URL.Opaque
	at.insert = ""
	if len(req.Header["Upgrade"]) > 0 {
		req.Header = req.Header.Clone()
		delete(req.Header, "Upgrade")
		delete(req.Header, "Connection")
	}
	req.TransferEncoding = nil
	if at.body == nil { // nobody repeats it but we
		req.Body, req.ContentLength = nil, 0
		return
	}
	if at.feed == nil {
		at.call.feed = newFeed(at.body)
	}
	req.Body = at.feed.reader()
}

// nextH2 is next for an attempt over HTTP/2 that had a connection.
func (c *call) nextH2(at *attempt, err error) error {
	switch {
	case !at.h2.written.Load() && at.h2.conn.Err() == nil && !unprocessed(err):
		return fmt.Errorf("%w: %w", errUnsendable, err)
	case (!at.h2.written.Load() || unprocessed(err)) && !c.bodyTouched():
		return c.tries.stillborn(err)
	case !at.h2.heard.Load() && !malformed(err) && c.tries.resend(c.body != nil):
		return nil
	}
	return fmt.Errorf("%w: %w", errBadAnswer, err)
}

// streamError is net/http's error for one stream; its As fills in any struct with
// these fields.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

// Error is there so that errors.As takes it.
func (e streamError) Error() string {
	return fmt.Sprintf("stream %d ended with code %d", e.StreamID, e.Code)
}

const (
	codeRefused = 7 // REFUSED_STREAM (RFC 9113, 7)
	fromPeer    = "received from peer"
)

// notTaken begins the texts of net/http's errors, which have no names, for requests
// that the upstream has not looked at: it had said before that it takes no more
// (RFC 9113, 6.8), or the connection was over.
var notTaken = []string{
	"http2: Transport received Server's graceful shutdown GOAWAY",
	"http2: Transport received GOAWAY from server",
	"http2: client conn not usable",
	"http2: client conn could not be established",
	"http2: client conn is closed",
}

// unprocessed reports whether the upstream has said, or cannot but mean, that it has
// done nothing with a request (RFC 9113, 8.7).
func unprocessed(err error) bool {
	if se, ok := errors.AsType[streamError](err); ok {
		return se.Code == codeRefused && se.Cause != nil && se.Cause.Error() == fromPeer
	}
	text := err.Error()
	for _, begin := range notTaken {
		if strings.HasPrefix(text, begin) {
			return true
		}
	}
	return false
}

// malformed reports whether an answer came that is none: the transport has ended
// the stream, not the upstream.
func malformed(err error) bool {
	se, ok := errors.AsType[streamError](err)
	return ok && (se.Cause == nil || se.Cause.Error() != fromPeer)
}

// relay does one thing after the other, without keeping who asks for it waiting. The
// zero value is ready.
type relay struct {
	mu      sync.Mutex
	queue   []func()
	running chan struct{} // closed when all is done; nil: nothing is
}

func (r *relay) do(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, f)
	if r.running == nil {
		r.running = make(chan struct{})
		go r.run(r.running)
	}
}

func (r *relay) run(done chan struct{}) {
	defer close(done)
	for {
		r.mu.Lock()
		if len(r.queue) == 0 {
			r.running = nil
			r.mu.Unlock()
			return
		}
		f := r.queue[0]
		r.queue = r.queue[1:]
		r.mu.Unlock()
		f()
	}
}

// wait waits until all that was asked for is done.
func (r *relay) wait() {
	r.mu.Lock()
	running := r.running
	r.mu.Unlock()
	if running != nil {
		<-running
	}
}
