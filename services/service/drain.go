package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// cutGrace is the least that is left for closing what is idle, also after a
	// second signal: a process that has answered everything must not claim to have
	// cut something.
	cutGrace = 100 * time.Millisecond

	// leaveLimit bounds Options.Leave.
	leaveLimit = 3 * time.Second

	// backgroundLimit bounds the wait for background functions after their context
	// has ended. They have nothing left to serve then. After a second signal Main
	// does not wait even for that.
	backgroundLimit = 5 * time.Second
)

// drain stops what start has started and returns what went wrong on the way.
func (r *runner) drain() error {
	r.draining.Begin()
	hurry, stop := r.hurry()
	defer stop()
	r.leave(hurry)
	if r.o.WasReady == nil || r.o.WasReady() {
		wait(hurry, r.o.Drain.Delay)
	}

	limit, cancel := context.WithTimeout(context.WithoutCancel(r.requests), max(r.o.Drain.Limit, cutGrace))
	defer cancel()
	defer context.AfterFunc(hurry, func() {
		wait(limit, cutGrace)
		cancel()
	})()
	err := r.shutdown(limit, false)
	if waitErr := r.draining.wait(limit); err == nil && waitErr != nil {
		err = waitErr
	}
	if lateErr := r.shutdown(limit, true); err == nil {
		err = lateErr
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrCut, err)
	}

	r.cut()
	r.stopBackground()
	errs := []error{err, r.join()}
	for {
		select {
		case failure := <-r.failed:
			errs = append(errs, failure)
		default:
			return errors.Join(errs...)
		}
	}
}

// leave calls Options.Leave.
func (r *runner) leave(hurry context.Context) {
	if r.o.Leave == nil {
		return
	}
	ctx, cancel := context.WithTimeout(hurry, leaveLimit)
	defer cancel()
	if err := r.o.Leave(ctx); err != nil {
		r.log.Warn("leaving failed; the stop goes on", "error", err)
	}
}

// hurry returns a context that ends when Options.Force speaks.
func (r *runner) hurry() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.requests))
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case s := <-r.o.Force:
			r.log.Warn("ending at once", "signal", fmt.Sprint(s))
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel()
		watching.Wait()
	}
}

// shutdown ends the servers whose endpoint is late, or those whose is not, all at
// the same time. A server that does not finish is closed, and its error returned.
func (r *runner) shutdown(ctx context.Context, late bool) error {
	var group sync.WaitGroup
	errs := make([]error, len(r.o.Endpoints))
	for i, e := range r.o.Endpoints {
		if e.Late != late {
			continue
		}
		group.Go(func() {
			if err := e.Server.Shutdown(ctx); err != nil {
				_ = e.Server.Close() // what it could say is said by err
				errs[i] = fmt.Errorf("the %s port: %w", e.Name, err)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// join waits for the goroutines of start.
func (r *runner) join() error {
	done := make(chan struct{})
	go func() { // ends with the goroutines that it waits for
		r.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(backgroundLimit):
		return errors.New("a background function did not end")
	}
}

// wait sleeps for d or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
