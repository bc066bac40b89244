// Package retention cuts the history of changes to what the operator wants to keep.
// Records and the counter that orders changes are never touched.
package retention

import (
	"context"
	"log/slog"
	"time"

	"specialroutes.example/specialroutes/internal/store"
)

const (
	// Newest is how many entries stay whatever their age, over all records: what was
	// done last can be seen and undone also where nothing has changed for years, and
	// a gateway that has everything need not be sent everything after the next change.
	Newest = 100

	// Interval is the least time between two cuts.
	Interval = time.Hour

	// spread is what is added to it at most, so that processes which were started
	// together do not cut together for ever.
	spread = 10 * time.Minute
)

// Pruner is the part of store.Store that cuts history.
type Pruner interface {
	Prune(ctx context.Context, p store.Prune) (int64, error)
}

// Options say what is kept. All are needed.
type Options struct {
	Store Pruner

	// Keep is the age that an entry reaches before it may go.
	Keep time.Duration

	// Log gets a line for each cut that removed something or failed.
	Log *slog.Logger

	// Now is the clock that ages are counted by.
	Now func() time.Time

	// Random gives numbers from 0 up to, not including, 1.
	Random func() float64
}

// Retention cuts history. It is immutable.
type Retention struct{ o Options }

// New returns one that has cut nothing yet.
func New(o Options) *Retention { return &Retention{o} }

// Run cuts at once and then about once an hour until ctx ends, and returns nil
// then. A cut that fails is made up for by the next one.
func (r *Retention) Run(ctx context.Context) error {
	for {
		r.cut(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(Interval + time.Duration(r.o.Random()*float64(spread))):
		}
	}
}

func (r *Retention) cut(ctx context.Context) {
	before := r.o.Now().Add(-r.o.Keep)
	removed, err := r.o.Store.Prune(ctx, store.Prune{Before: before, Keep: Newest})
	if removed > 0 {
		r.o.Log.Info("old history was removed", "entries", removed, "before", before.UTC())
	}
	if err != nil && ctx.Err() == nil {
		r.o.Log.Warn("old history was not removed, or not all of it; it is tried again within the next 70 minutes", "error", err)
	}
}
