package forward

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"specialroutes.example/gateway/internal/config"
)

// Server is the data port's server. It fits service.Server. It looks at each
// connection and gives it to the loop, where one goroutine finishes plain requests
// alone, or to net/http's server, where all others are served.
type Server struct {
	// Observer is told of requests that are refused before they reach a filter,
	// because they are not HTTP; nil: nobody. Set it before Serve.
	Observer Observer

	// NewID makes their correlation IDs; nil: they have none. Set it before Serve.
	NewID func() string

	// Loop serves the requests that the loop takes, with the same filters as the
	// handler; nil: net/http serves all. Set it before Serve. It has no effect where
	// the loop does not run, which is anywhere but on Linux.
	Loop *Gateway

	// Draining says whether connections of the loop are to end with the request that
	// they are in; nil: never. Set it before Serve.
	Draining func() bool

	// InFlight counts the requests of the loop: 1 when one begins, -1 when it is over;
	// nil: nobody counts. Set it before Serve.
	InFlight func(delta int)

	// MaxConnections is how many clients' connections there are at most. Over it an
	// idle one is closed for each new one; while none is idle, new ones wait in the
	// system's queue. 0: no limit. Set it before Serve.
	MaxConnections int

	timeouts config.Timeouts
	limits   config.Limits
	log      *slog.Logger

	http     *http.Server
	requests context.Context // of all requests
	cut      context.CancelFunc
	handed   *handover
	loop     *loop
	idle     idleConns // of http; empty without MaxConnections
	slots    slots

	closing   atomic.Bool
	mu        sync.Mutex
	listeners map[net.Listener]bool
}

// NewServer returns a server for h. It limits heads and idle connections; all
// other limits are kept where the request is known.
func NewServer(h http.Handler, t config.Timeouts, l config.Limits, log *slog.Logger) *Server {
	s := &Server{timeouts: t, limits: l, log: log, handed: newHandover(), listeners: make(map[net.Listener]bool)}
	s.requests, s.cut = context.WithCancel(context.Background())
	s.loop = newLoop(s)
	s.idle = idleConns{scarce: s.slots.scarce.Load, all: make(map[net.Conn]idleConn)}
	s.http = &http.Server{
		Handler:           marked(h),
		ReadHeaderTimeout: t.Header,
		IdleTimeout:       t.KeepAlive,
		// The gate judges the length of a head; this is for HTTP/2.
		MaxHeaderBytes: 2 * int(l.HeaderBytes),
		// OPTIONS * is judged as every other request is.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext:                  func(net.Listener) context.Context { return s.requests },
		ConnContext:                  withConn,
		ConnState:                    s.noteState,
		Protocols:                    new(http.Protocols),
		HTTP2:                        serverH2(t),
	}
	s.http.Protocols.SetHTTP1(true)
	s.http.Protocols.SetHTTP2(true)
	s.http.Protocols.SetUnencryptedHTTP2(true)
	return s
}

// Serve serves the connections of l, which may be TLS's, and closes l. It returns
// http.ErrServerClosed after Shutdown or Close.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	if !s.track(l) {
		return http.ErrServerClosed
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	serving.Go(func() { _ = s.http.Serve(s.handed) }) // until Shutdown or Close
	err := s.accept(l)
	s.untrack(l)
	if s.closing.Load() {
		return http.ErrServerClosed
	}
	s.cut()
	_ = s.Close()
	return err
}

// track remembers a listener, unless the server has ended.
func (s *Server) track(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() {
		return false
	}
	s.listeners[l] = true
	return true
}

// untrack closes a listener and forgets it.
func (s *Server) untrack(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = l.Close()
	delete(s.listeners, l)
}

// lastAccepts is how long connections are still accepted when the server shuts down. A
// connection that is in the system's queue when its listener closes is reset, though
// its client may have sent a request.
const lastAccepts = 10 * time.Millisecond

// acceptLast accepts what has queued, as far as there is room, until a moment when
// nothing does. What comes between that and the close is still reset.
func (s *Server) acceptLast(ctx context.Context) {
	now := time.Now()
	s.mu.Lock()
	s.closing.Store(true)
	for l := range s.listeners {
		timed, ok := l.(interface{ SetDeadline(at time.Time) error })
		if !ok || timed.SetDeadline(now.Add(lastAccepts)) != nil {
			_ = l.Close()
		}
	}
	s.mu.Unlock()
	s.http.SetKeepAlivesEnabled(false) // as the loop has it by closing
	ctx, cancel := context.WithTimeout(ctx, 10*lastAccepts)
	defer cancel()
	_ = poll(ctx, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.listeners) == 0
	})
}

// stopAccepting closes the listeners.
func (s *Server) stopAccepting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing.Store(true)
	for l := range s.listeners {
		_ = l.Close()
		delete(s.listeners, l)
	}
	s.slots.end()
}

// Shutdown stops accepting, ends idle connections and waits for the requests in
// flight. It does not wait for tunnels: they may go on until ctx ends. It returns the
// context's error when that ends before the requests.
func (s *Server) Shutdown(ctx context.Context) error {
	context.AfterFunc(ctx, s.cut)
	s.acceptLast(ctx)
	s.stopAccepting()
	// A connection whose head is being read may still be handed over.
	settled := s.loop.settle(ctx)
	return errors.Join(settled, s.http.Shutdown(ctx), s.loop.wait(ctx))
}

// Close ends all connections, those of tunnels too.
func (s *Server) Close() error {
	s.stopAccepting()
	s.cut()
	s.loop.close()
	return s.http.Close()
}
