// Package opening lets the process start before its database: a store that is not
// open yet answers, as one that is away does, that it is not available.
package opening

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"specialroutes.example/specialroutes/internal/store"
)

// The wait between two attempts to open grows from the first to the second.
const (
	firstWait = 200 * time.Millisecond
	lastWait  = 5 * time.Second
)

var errNotOpen = fmt.Errorf("%w: it has not been opened yet", store.ErrUnavailable)

var _ store.Store = (*Store)(nil)

// Store is the store that open returns, once it does. It is safe for concurrent
// use.
type Store struct {
	log    *slog.Logger
	open   func(context.Context) (store.Store, error)
	opened atomic.Pointer[store.Store]
	isOpen chan struct{} // closed when it is
}

// New returns a store that Run opens. What open returns is closed by Close.
func New(log *slog.Logger, open func(context.Context) (store.Store, error)) *Store {
	return &Store{log: log, open: open, isOpen: make(chan struct{})}
}

// Opened returns a channel that is closed when the store is open.
func (s *Store) Opened() <-chan struct{} { return s.isOpen }

// WasOpened says whether the store is open, or was until Close.
func (s *Store) WasOpened() bool { return s.opened.Load() != nil }

// Run opens the store and returns nil. While the database is not available it tries
// again; any other error is returned, because no waiting will mend it. It returns
// nil too when ctx ends.
func (s *Store) Run(ctx context.Context) error {
	wait := firstWait
	for {
		opened, err := s.open(ctx)
		if err == nil {
			s.opened.Store(&opened)
			close(s.isOpen)
			s.log.Info("the database is open")
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		if !errors.Is(err, store.ErrUnavailable) {
			return fmt.Errorf("opening the database: %w", err)
		}
		s.log.Warn("the database is not available; trying again", "wait", wait, "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		wait = min(2*wait, lastWait)
	}
}

// get returns the store, if it is open.
func (s *Store) get() (store.Store, error) {
	if p := s.opened.Load(); p != nil {
		return *p, nil
	}
	return nil, errNotOpen
}

// Get is store.Store's.
func (s *Store) Get(ctx context.Context, service string) (store.Stored, error) {
	o, err := s.get()
	if err != nil {
		return store.Stored{}, err
	}
	return o.Get(ctx, service)
}

// List is store.Store's.
func (s *Store) List(ctx context.Context, after string, limit int) ([]store.Stored, error) {
	o, err := s.get()
	if err != nil {
		return nil, err
	}
	return o.List(ctx, after, limit)
}

// Write is store.Store's.
func (s *Store) Write(ctx context.Context, service string, author store.Author, change store.ChangeFunc) (store.Stored, error) {
	o, err := s.get()
	if err != nil {
		return store.Stored{}, err
	}
	return o.Write(ctx, service, author, change)
}

// Head is store.Store's.
func (s *Store) Head(ctx context.Context) (store.Cursor, error) {
	o, err := s.get()
	if err != nil {
		return store.Cursor{}, err
	}
	return o.Head(ctx)
}

// Changes is store.Store's.
func (s *Store) Changes(ctx context.Context, after store.Cursor) (store.Changes, error) {
	o, err := s.get()
	if err != nil {
		return store.Changes{}, err
	}
	return o.Changes(ctx, after)
}

// History is store.Store's.
func (s *Store) History(ctx context.Context, service string, before int64, limit int) ([]store.Entry, error) {
	o, err := s.get()
	if err != nil {
		return nil, err
	}
	return o.History(ctx, service, before, limit)
}

// Prune is store.Store's.
func (s *Store) Prune(ctx context.Context, p store.Prune) (int64, error) {
	o, err := s.get()
	if err != nil {
		return 0, err
	}
	return o.Prune(ctx, p)
}

// GetLabels is store.Store's.
func (s *Store) GetLabels(ctx context.Context, of store.Instance) (store.Labels, error) {
	o, err := s.get()
	if err != nil {
		return store.Labels{}, err
	}
	return o.GetLabels(ctx, of)
}

// ListLabels is store.Store's.
func (s *Store) ListLabels(ctx context.Context, service string, after store.Instance, limit int) ([]store.Labels, error) {
	o, err := s.get()
	if err != nil {
		return nil, err
	}
	return o.ListLabels(ctx, service, after, limit)
}

// WriteLabels is store.Store's.
func (s *Store) WriteLabels(ctx context.Context, of store.Instance, author store.Author, change store.LabelsFunc) (store.Labels, error) {
	o, err := s.get()
	if err != nil {
		return store.Labels{}, err
	}
	return o.WriteLabels(ctx, of, author, change)
}

// LabelsHistory is store.Store's.
func (s *Store) LabelsHistory(ctx context.Context, of store.Instance, before int64, limit int) ([]store.LabelsEntry, error) {
	o, err := s.get()
	if err != nil {
		return nil, err
	}
	return o.LabelsHistory(ctx, of, before, limit)
}

// EndedLabels is store.Store's.
func (s *Store) EndedLabels(ctx context.Context, at time.Time, limit int) ([]store.Instance, error) {
	o, err := s.get()
	if err != nil {
		return nil, err
	}
	return o.EndedLabels(ctx, at, limit)
}

// SeeGateway is store.Store's.
func (s *Store) SeeGateway(ctx context.Context, g store.Gateway) error {
	o, err := s.get()
	if err != nil {
		return err
	}
	return o.SeeGateway(ctx, g)
}

// LeaveGateway is store.Store's.
func (s *Store) LeaveGateway(ctx context.Context, id string) error {
	o, err := s.get()
	if err != nil {
		return err
	}
	return o.LeaveGateway(ctx, id)
}

// ListGateways is store.Store's.
func (s *Store) ListGateways(ctx context.Context, within time.Duration) ([]store.Gateway, error) {
	o, err := s.get()
	if err != nil {
		return nil, err
	}
	return o.ListGateways(ctx, within)
}

// Ping is store.Store's.
func (s *Store) Ping(ctx context.Context) error {
	o, err := s.get()
	if err != nil {
		return err
	}
	return o.Ping(ctx)
}

// Close closes the store if it is open. It is called when Run has returned.
func (s *Store) Close() error {
	o, err := s.get()
	if err != nil {
		return nil //nolint:nilerr // there is nothing to close
	}
	return o.Close()
}
