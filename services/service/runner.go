package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// runner is one call of Run.
type runner struct {
	o        Options
	log      *slog.Logger
	draining *Draining
	ports    []net.Listener // by endpoint; nil where Open delays it

	// requests is the context of what is being served; cut ends it.
	requests context.Context
	cut      context.CancelFunc

	background     context.Context
	stopBackground context.CancelFunc

	failed  chan error // has room for everyone who may fail
	running sync.WaitGroup
}

func newRunner(ctx context.Context, o Options) *runner {
	r := &runner{o: o, log: o.Log, draining: o.Draining}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.draining == nil {
		r.draining = new(Draining)
	}
	// Both outlive ctx, whose end only begins the drain.
	lasting := context.WithoutCancel(ctx)
	r.requests, r.cut = context.WithCancel(lasting)
	r.background, r.stopBackground = context.WithCancel(lasting)
	r.failed = make(chan error, len(o.Endpoints)+len(o.Background))
	r.ports = make([]net.Listener, len(o.Endpoints))
	for _, e := range o.Endpoints {
		if s, ok := e.Server.(*http.Server); ok && s.BaseContext == nil {
			s.BaseContext = func(net.Listener) context.Context { return r.requests }
		}
	}
	return r
}

func (r *runner) release() {
	r.cut()
	r.stopBackground()
}

// listen opens every port that need not wait, and tries those that must: a port
// in use stops the start now, not when the wait is over. If one fails, none stays
// open.
func (r *runner) listen(ctx context.Context) error {
	for i, e := range r.o.Endpoints {
		ln, err := open(ctx, e)
		if err == nil && e.Open != nil {
			err = ln.Close()
			ln = nil
		}
		if err != nil {
			for _, opened := range r.ports[:i] {
				if opened != nil {
					_ = opened.Close()
				}
			}
			return err
		}
		r.ports[i] = ln
	}
	return nil
}

// open listens for one endpoint.
func open(ctx context.Context, e Endpoint) (net.Listener, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", e.Address)
	if err != nil {
		return nil, &ListenError{Endpoint: e.Name, Address: e.Address, Err: err}
	}
	if e.TLS != nil {
		c := e.TLS.Clone()
		if len(c.NextProtos) == 0 {
			c.NextProtos = []string{"h2", "http/1.1"}
		}
		ln = securedListener{tls.NewListener(ln, c), ln}
	}
	return ln, nil
}

// securedListener is one for TLS whose Accept can be given a deadline.
type securedListener struct {
	net.Listener
	plain net.Listener
}

// SetDeadline has Accept fail at a moment, as that of net.TCPListener does.
func (s securedListener) SetDeadline(at time.Time) error {
	if timed, ok := s.plain.(interface{ SetDeadline(at time.Time) error }); ok {
		return timed.SetDeadline(at)
	}
	return errors.ErrUnsupported
}

func addressInUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

// start runs the servers and the background functions, each in a goroutine that
// drain waits for.
func (r *runner) start() {
	for i, e := range r.o.Endpoints {
		if ln := r.ports[i]; ln != nil {
			r.announce(e, ln)
		}
		r.running.Go(func() { r.report(r.serve(e, r.ports[i])) })
	}
	for _, f := range r.o.Background {
		r.running.Go(func() {
			err := f(r.background)
			if r.background.Err() != nil && errors.Is(err, context.Canceled) {
				return // it ended because we asked it to
			}
			r.report(err)
		})
	}
}

func (r *runner) report(err error) {
	if err != nil {
		r.failed <- err
	}
}

func (r *runner) announce(e Endpoint, ln net.Listener) {
	r.log.Info("listening", "endpoint", e.Name, "address", ln.Addr().String())
	if r.o.OnListen != nil {
		r.o.OnListen(e.Name, ln.Addr())
	}
}

// serve runs one endpoint until its server is shut down.
func (r *runner) serve(e Endpoint, ln net.Listener) error {
	if ln == nil {
		select {
		case <-r.draining.Begun():
			return nil
		case <-e.Open:
		}
		var err error
		if ln, err = open(r.requests, e); err != nil {
			return err
		}
		r.announce(e, ln)
	}
	err := e.Server.Serve(ln)
	if r.draining.Started() && (err == nil || errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed)) {
		return nil
	}
	if err == nil {
		err = errors.New("the server ended by itself")
	}
	return fmt.Errorf("serving the %s port: %w", e.Name, err)
}
