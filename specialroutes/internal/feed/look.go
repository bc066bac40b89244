package feed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"specialroutes.example/specialroutes/internal/store"
)

// look reads the place of the last change once, and tells those who wait if it has
// moved, or if it cannot be read any more.
func (f *Feed) look(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, headTimeout)
	defer cancel()
	head, err := f.source.Head(limited)
	if ctx.Err() != nil {
		return // the process ends; that says nothing about the database
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.failed(err)
		return
	}
	f.succeeded(head)
}

// failed notes a look without an answer. f.mu is held.
func (f *Feed) failed(err error) {
	s := &f.state
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	if s.failing.IsZero() {
		s.failing = time.Now()
		f.log.Warn("the database does not tell its last change", "error", err)
	}
	if s.err == nil && time.Since(s.failing) >= patience {
		f.log.Error("the database is away; followers are told to keep what they have", "error", err)
		s.err = err
		f.move()
	}
}

// succeeded notes the place of the last change. f.mu is held.
func (f *Feed) succeeded(head store.Cursor) {
	s := &f.state
	if !s.failing.IsZero() {
		f.log.Info("the database answers again", "away", time.Since(s.failing))
	}
	wentBack := head.Revision < s.head.Revision || head.Revision == s.head.Revision && head.Nonce != s.head.Nonce
	if s.known && wentBack {
		f.log.Warn("the database holds another history; followers get all records anew",
			"before", s.head.String(), "now", head.String())
	}
	moved := s.err != nil || !s.known || s.head != head
	s.head, s.known, s.failing, s.err = head, true, time.Time{}, nil
	if moved {
		f.move()
	}
}

// move wakes all who wait. f.mu is held.
func (f *Feed) move() {
	close(f.state.moved)
	f.state.moved = make(chan struct{})
}
