// Package endings takes away the labels of instances that have come to their end, with
// an entry in history. Readers leave them out by their clock, and so do the gateways;
// what this adds is that the table does not grow, and that history says when it was
// over.
package endings

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"specialroutes.example/specialroutes/internal/store"
)

const (
	// Interval is the time between two sweeps.
	Interval = 5 * time.Second

	// Who and Why are what history says of an end.
	Who = "specialroutes"
	Why = "ended"

	// most is how many are taken away in one sweep, each in a change of its own.
	most = 500
)

// Store is the part of store.Store that is swept.
type Store interface {
	EndedLabels(ctx context.Context, at time.Time, limit int) ([]store.Instance, error)
	WriteLabels(ctx context.Context, of store.Instance, author store.Author, change store.LabelsFunc) (store.Labels, error)
}

// Options say what is swept. All are needed.
type Options struct {
	Store Store

	// Log gets a line for each end, and for a sweep that fails.
	Log *slog.Logger

	// Now is the clock that ends are compared with.
	Now func() time.Time

	// Ended is called after a sweep that took something away.
	Ended func()
}

// Endings sweeps. It is immutable.
type Endings struct{ o Options }

// New returns one that has swept nothing yet.
func New(o Options) *Endings { return &Endings{o} }

// Run sweeps at once and then every Interval until ctx ends, and returns nil then.
// What a sweep did not get to is left to the next one, as it is while the database is
// away.
func (e *Endings) Run(ctx context.Context) error {
	for {
		if err := e.sweep(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrUnavailable) {
			e.o.Log.Warn("labels that have ended were not taken away, or not all of them; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(Interval):
		}
	}
}

// sweep takes away what has ended.
func (e *Endings) sweep(ctx context.Context) error {
	ended, err := e.o.Store.EndedLabels(ctx, e.o.Now(), most)
	if err != nil {
		return err
	}
	took := false
	for _, of := range ended {
		_, err := e.o.Store.WriteLabels(ctx, of, store.Author{Who: Who, Why: Why}, e.end)
		switch {
		case err == nil:
			took = true
			e.o.Log.Info("labels have ended", "service", of.Service, "instance", of.ID)
		case errors.Is(err, store.ErrNoLabels) || errors.Is(err, errNotEnded):
			// Another process was quicker, or somebody has written them anew.
		default:
			return err
		}
	}
	if took {
		e.o.Ended()
	}
	return nil
}

var errNotEnded = errors.New("the labels have not ended")

// end deletes labels that have ended at the moment of the change.
func (e *Endings) end(before *store.Labels) (*store.NewLabels, error) {
	if before != nil && !before.Ended(e.o.Now()) {
		return nil, errNotEnded
	}
	return nil, nil //nolint:nilnil // nil deletes
}
