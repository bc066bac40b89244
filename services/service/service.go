// Package service runs a process of the estate: it opens the ports, serves until
// it is told to stop, drains, and says with its exit code whether anything was
// cut. What the process does is handed in; when it starts and ends is decided
// here, once for all binaries.
package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"
)

// ErrCut says that the drain limit was over, or a second signal came, while
// something was still in flight.
var ErrCut = errors.New("requests in flight were cut")

// Server is what Run needs of a server; *http.Server is one. Serve returns when
// Shutdown or Close was called, at once if that was before, and closes the
// listener. Shutdown stops accepting, waits for what is in flight, and returns
// the context's error when that ends first.
type Server interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
	Close() error
}

// Endpoint is one port of the process.
type Endpoint struct {
	Name    string // for logs and errors, as "data" or "admin"
	Address string // host:port; port 0 takes a free one
	Server  Server
	TLS     *tls.Config // nil serves plain text

	// Open delays the listening until it is closed. Nil listens at once. Run fails
	// at its start when the port cannot be opened, also one that is to wait.
	Open <-chan struct{}

	// Late keeps the endpoint open until all others have finished. An admin port
	// is late: it answers /readyz and /metrics as long as there is work.
	Late bool
}

// DrainTimes are the two waits of a stop.
type DrainTimes struct {
	// Delay is how long connections are still accepted after readiness has been
	// given up, so that whoever balances over this process can notice. 0 is none.
	Delay time.Duration

	// Limit is how long requests in flight may take after that. 0 cuts them at
	// once.
	Limit time.Duration
}

// DefaultDrain returns the waits of a process that is not told otherwise.
func DefaultDrain() DrainTimes {
	return DrainTimes{Delay: 5 * time.Second, Limit: 30 * time.Second}
}

// Options is what Run runs.
type Options struct {
	Name      string
	Log       *slog.Logger // nil discards
	Endpoints []Endpoint

	// Background functions live as long as the process. Their context ends when
	// the last request is done, not when the drain begins: what is in flight may
	// need them. Returning nil early is fine; an error stops the process.
	Background []func(context.Context) error

	// Draining is marked when the stop begins. Handlers that Draining.Wrap
	// counts are waited for even after their connection was taken over, as a
	// WebSocket's is. Nil makes one that only Run knows.
	Draining *Draining
	Drain    DrainTimes

	// WasReady says whether the process has ever been ready. One that was not is sent
	// nothing by whoever balances, and stops without Drain.Delay. Nil is one that was.
	WasReady func() bool

	// Leave is called once, when the stop has begun and readiness was given up, and
	// before Drain.Delay: a process that others find in a registry deregisters. Its
	// context ends soon, or with Force; an error is logged. Nil is fine.
	Leave func(context.Context) error

	// Force ends the delay and the limit at once. Main hands in the second signal.
	Force <-chan os.Signal

	// OnListen is told the address of every port that was opened, before a
	// connection is accepted there. Nil is fine. Calls may be concurrent.
	OnListen func(name string, addr net.Addr)
}

// Run serves until ctx ends, a server stops or a background function fails; then
// it drains: readiness is given up, connections are accepted for Drain.Delay and
// answered with Connection: close, and what is in flight has Drain.Limit to
// finish. It returns nil after a clean stop, an error that wraps ErrCut if
// something had to be cut, a *ListenError if a port could not be opened, and
// otherwise the error that stopped it. When it returns, the ports are closed.
//
// An *http.Server without a BaseContext is given one that ends at the cut, so
// that handlers notice it.
func Run(ctx context.Context, o Options) error {
	r := newRunner(ctx, o)
	defer r.release()
	if err := r.listen(ctx); err != nil {
		return err
	}
	r.start()

	var cause error
	select {
	case <-ctx.Done():
		r.log.Info("stopping", "delay", o.Drain.Delay, "limit", o.Drain.Limit)
	case cause = <-r.failed:
		r.log.Error("stopping after a failure", "error", cause)
	}
	err := errors.Join(cause, r.drain())
	r.log.Info("stopped", "cut", errors.Is(err, ErrCut))
	return err
}

// ListenError is a port that could not be opened.
type ListenError struct {
	Endpoint string // Endpoint.Name
	Address  string // as configured
	Err      error
}

func (e *ListenError) Error() string {
	if addressInUse(e.Err) {
		return fmt.Sprintf("the %s port cannot be opened: %s is in use by another process", e.Endpoint, e.Address)
	}
	return fmt.Sprintf("the %s port cannot be opened on %s: %v", e.Endpoint, e.Address, e.Err)
}

// Unwrap returns the cause, for errors.Is with syscall.EADDRINUSE.
func (e *ListenError) Unwrap() error { return e.Err }
