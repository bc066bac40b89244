package forward

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"specialroutes.example/gateway/internal/filter"
)

// accept accepts connections until l is closed, and begins with each of them.
func (s *Server) accept(l net.Listener) error {
	const most = time.Second
	var pause time.Duration
	for {
		if !s.slots.take(s.MaxConnections, s.endOneIdle) {
			return http.ErrServerClosed
		}
		c, err := l.Accept()
		if err == nil {
			pause = 0
			s.begin(c)
			continue
		}
		s.release()
		// Out of descriptors, or the client left again: as net/http does.
		if temporary, ok := errors.AsType[net.Error](err); !ok || !temporary.Temporary() || s.closing.Load() { //nolint:staticcheck // there is no other way to know
			return err
		}
		pause = min(max(2*pause, 5*time.Millisecond), most)
		s.log.Warn("accepting failed", "error", err, "again", pause)
		select {
		case <-time.After(pause):
		case <-s.requests.Done():
		}
	}
}

// endOneIdle ends an idle connection, of the loop or of net/http, if there is one.
func (s *Server) endOneIdle() bool { return s.loop.endOneIdle() || s.idle.endOne() }

// begin gives a connection to who serves it. It does not wait for the client.
func (s *Server) begin(c net.Conn) {
	if _, ok := c.(*tls.Conn); !ok && !s.loops() {
		s.hand(s.newGate(c, nil))
		return
	}
	s.loop.serve(c)
}

// loops reports whether there is a loop to serve requests.
func (s *Server) loops() bool { return loopRuns && s.Loop != nil }

// hand hands a connection over to net/http's server. When that is gone the connection
// ends, with an answer to a request that has come.
func (s *Server) hand(c net.Conn) {
	if s.handed.push(c) {
		return
	}
	g := gateOf(c)
	if g != nil && len(g.buffer) > 0 && !isPreface(g.buffer) {
		s.turnAway(g)
	}
	_ = c.Close()
	if g == nil {
		s.release()
	}
}

// turnAway answers to a request that came behind another one, to which the server's
// end could no longer be told.
func (s *Server) turnAway(g *gate) {
	answer := s.refuseHead(&filter.Refusal{Status: http.StatusServiceUnavailable, Code: "shutting_down",
		Detail: "the gateway is shutting down; the request was not passed on"}, g.buffer, g.RemoteAddr())
	_ = g.Conn.SetWriteDeadline(time.Now().Add(lingering))
	_, err := g.Conn.Write(answer)
	g.lingers.Store(err == nil)
}

// release gives the place of a connection that is closed to another one.
func (s *Server) release() { s.slots.give() }

// handshake completes TLS and returns the protocol that was agreed on.
func (s *Server) handshake(c *tls.Conn) (protocol string, ok bool) {
	ctx, cancel := context.WithTimeout(s.requests, s.timeouts.Header)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		s.log.Debug("TLS handshake failed", "client", c.RemoteAddr().String(), "error", err)
		return "", false
	}
	return c.ConnectionState().NegotiatedProtocol, true
}

// slots counts connections.
type slots struct {
	mu    sync.Mutex
	used  int
	ended bool
	free  *sync.Cond // nil until somebody waits

	scarce atomic.Bool // somebody waits
}

// take takes a place among most, 0 being without limit; false says that the server
// ends. While there is none it has endOne end an idle connection, and waits.
func (s *slots) take(most int, endOne func() bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for most > 0 && s.used >= most && !s.ended {
		if s.free == nil {
			s.free = sync.NewCond(&s.mu)
		}
		s.scarce.Store(true) // who becomes idle from now on ends
		s.mu.Unlock()
		endOne()
		s.mu.Lock()
		if s.used >= most && !s.ended {
			s.free.Wait()
		}
	}
	s.scarce.Store(false)
	s.used++
	return !s.ended
}

func (s *slots) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	s.wake()
}

// end lets nobody wait any more.
func (s *slots) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.wake()
}

func (s *slots) wake() {
	if s.free != nil {
		s.free.Broadcast()
	}
}
