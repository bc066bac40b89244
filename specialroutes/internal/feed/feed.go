// Package feed lets many followers wait for changes of the route records, and of what
// operators say about labels of instances, at the price of one query. One goroutine
// reads the place of the last change five times a second; a follower that is there
// waits in memory until it moves. Nothing is pushed and nothing is kept, so a
// follower loses nothing when a connection, this process or the database goes away:
// it asks again with the cursor it has.
package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"specialroutes.example/specialroutes/internal/store"
)

const (
	// Interval is the time between two looks at the database.
	Interval = 200 * time.Millisecond

	// headTimeout bounds one look, so that a connection that is silently dead is
	// noticed and replaced; readTimeout bounds the reading of changes.
	headTimeout = 2 * time.Second
	readTimeout = 10 * time.Second

	// patience is how long looks may fail before followers are told. A restart of
	// the database that is over by then disturbs nobody.
	patience = 2 * time.Second
)

// ErrStopped is returned to those who ask after Stop.
var ErrStopped = errors.New("the process is stopping")

// Source is what the feed reads, a part of store.Store.
type Source interface {
	Head(ctx context.Context) (store.Cursor, error)
	Changes(ctx context.Context, after store.Cursor) (store.Changes, error)
}

// Feed is the changes of a source. It is safe for concurrent use.
type Feed struct {
	source Source
	log    *slog.Logger

	wake    chan struct{} // has room for one: a look is wanted now
	stopped chan struct{}
	stop    sync.Once
	waiting atomic.Int64

	mu    sync.Mutex
	state state
}

// state is what the last look at the database showed.
type state struct {
	head    store.Cursor
	known   bool          // head has been read at least once
	failing time.Time     // since when looks fail; zero when they do not
	err     error         // why followers get no answer; nil within patience
	moved   chan struct{} // closed when head or err changes
}

// New returns a feed that knows nothing until Run runs.
func New(source Source, log *slog.Logger) *Feed {
	return &Feed{
		source:  source,
		log:     log,
		wake:    make(chan struct{}, 1),
		stopped: make(chan struct{}),
		state:   state{moved: make(chan struct{})},
	}
}

// Run looks at the database until ctx ends, and returns nil then.
func (f *Feed) Run(ctx context.Context) error {
	ticker := time.NewTicker(Interval)
	defer ticker.Stop()
	for {
		f.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-f.wake:
		case <-ticker.C:
		}
	}
}

// Wake has the database looked at now, because this process has just written.
func (f *Feed) Wake() {
	select {
	case f.wake <- struct{}{}:
	default: // a look is wanted already
	}
}

// Stop answers all who wait, at once, and refuses those who come later.
func (f *Feed) Stop() { f.stop.Do(func() { close(f.stopped) }) }

// Waiting is the number of followers that wait for a change.
func (f *Feed) Waiting() int64 { return f.waiting.Load() }

// Head returns the place of the last change, as far as this process knows. The
// error is why it does not know; the text is for the log.
func (f *Feed) Head() (store.Cursor, error) {
	s := f.current()
	switch {
	case s.err != nil:
		return s.head, s.err
	case !s.known:
		return s.head, fmt.Errorf("%w: it has not been asked yet", store.ErrUnavailable)
	}
	return s.head, nil
}

// Ask is what a follower asks.
type Ask struct {
	// After is the place up to which the follower has everything; zero is nothing.
	After store.Cursor

	// Wait is how long the answer may wait for a change; zero is not at all.
	Wait time.Duration

	// Known is told once, before the wait, whether After is a place in the database's
	// history. Nil is fine.
	Known func(bool)
}

// Changes returns what happened after a place. If nothing did, it waits for it, and
// when the wait is over returns no records and the same place. It does that also
// when Stop is called, and returns ErrStopped if that was before. While the database
// is away the error is a store.ErrUnavailable.
func (f *Feed) Changes(ctx context.Context, ask Ask) (store.Changes, error) {
	select {
	case <-f.stopped:
		return store.Changes{}, ErrStopped
	default:
	}
	over := time.NewTimer(ask.Wait)
	defer over.Stop()
	known := onceKnown(ask.Known)
	for {
		s := f.current()
		if s.err != nil {
			return store.Changes{}, s.err
		}
		// A cursor that differs may be older than what this replica knows, or newer, or
		// of another history: the database knows. Without a wait it is asked in any case.
		if !s.known || s.head != ask.After || ask.After.IsZero() || ask.Wait <= 0 {
			c, err := f.read(ctx, ask.After)
			if err != nil {
				return c, err
			}
			known(!c.Full)
			if isNews(c, ask.After) || ask.Wait <= 0 {
				return c, nil
			}
		}
		known(true)
		if done, err := f.await(ctx, s.moved, over.C); done {
			return store.Changes{Cursor: ask.After}, err
		}
	}
}

// onceKnown returns f for one call; nil is fine.
func onceKnown(f func(bool)) func(bool) {
	return func(known bool) {
		if f != nil {
			f(known)
			f = nil
		}
	}
}

// await waits until head moves (false), or for nothing more (true).
func (f *Feed) await(ctx context.Context, moved <-chan struct{}, over <-chan time.Time) (done bool, err error) {
	f.waiting.Add(1)
	defer f.waiting.Add(-1)
	select {
	case <-moved:
		return false, nil
	case <-over:
		return true, nil
	case <-f.stopped:
		return true, nil
	case <-ctx.Done():
		return true, ctx.Err()
	}
}

func (f *Feed) read(ctx context.Context, after store.Cursor) (store.Changes, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return f.source.Changes(ctx, after)
}

// isNews says whether an answer brings a reader on from after. A replica may look
// later than a reader that was at another one: its head moves then, to where the
// reader already is.
func isNews(c store.Changes, after store.Cursor) bool {
	return c.Full || c.Cursor != after
}

func (f *Feed) current() state {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}
