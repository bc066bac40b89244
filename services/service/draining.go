package service

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Draining says whether the process has begun to stop, and counts the requests
// that it still has to finish. The zero value is ready to use and not draining.
// It is safe for concurrent use and must not be copied.
type Draining struct {
	started  atomic.Bool
	inFlight atomic.Int64

	mu    sync.Mutex
	begun chan struct{} // made when first asked for
}

// Begin marks the process as draining. Further calls do nothing.
func (d *Draining) Begin() {
	begun := d.channel()
	if d.started.CompareAndSwap(false, true) {
		close(begun)
	}
}

// Started reports whether Begin was called.
func (d *Draining) Started() bool { return d.started.Load() }

// Begun is closed when the draining begins. Whoever holds a request open for
// news, as a blocking query, answers then.
func (d *Draining) Begun() <-chan struct{} { return d.channel() }

func (d *Draining) channel() chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.begun == nil {
		d.begun = make(chan struct{})
	}
	return d.begun
}

// InFlight is the number of requests in handlers that Wrap made.
func (d *Draining) InFlight() int64 { return d.inFlight.Load() }

// Wrap counts the requests in next, and has each that arrives while draining
// answered with Connection: close, which net/http turns into GOAWAY on HTTP/2.
func (d *Draining) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		d.inFlight.Add(1)
		defer d.inFlight.Add(-1)
		if d.started.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, req)
	})
}

// wait returns when nothing is in flight, or with an error when ctx ends first.
// It polls, as http.Server.Shutdown does: a stop happens once, a request often,
// and must not pay for a notification.
func (d *Draining) wait(ctx context.Context) error {
	const interval = 10 * time.Millisecond
	for d.InFlight() > 0 {
		if ctx.Err() != nil {
			return fmt.Errorf("%d requests: %w", d.InFlight(), ctx.Err())
		}
		wait(ctx, interval)
	}
	return nil
}
