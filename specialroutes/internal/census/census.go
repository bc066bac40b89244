// Package census counts the records that cannot be used. A row that was written by
// hand moves no counter and enters no history, so nothing else here would notice
// it; the census reads the whole table from time to time.
package census

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"specialroutes.example/specialroutes/internal/store"
)

const (
	// Interval is the time between two counts.
	Interval = 30 * time.Second

	// startInterval is that between attempts until the first count succeeds.
	startInterval = time.Second

	pageSize = 1000
)

// Lister is the part of store.Store that the census reads.
type Lister interface {
	List(ctx context.Context, after string, limit int) ([]store.Stored, error)
}

// Census counts records and shows the counts as metrics.
type Census struct {
	store   Lister
	log     *slog.Logger
	records *prometheus.GaugeVec
	broken  map[string]string // reason by service, as of the last count
}

// New returns a census that has not counted yet; its metrics are added to r.
func New(s Lister, log *slog.Logger, r *prometheus.Registry) *Census {
	records := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "specialroutes_records",
		Help: "Route records by state; a broken one cannot be used. Counted every 30 s.",
	}, []string{"state"})
	r.MustRegister(records)
	return &Census{store: s, log: log, records: records}
}

// Run counts until ctx ends, and returns nil then. A count that fails leaves the
// last one in force; others report that the database is away.
func (c *Census) Run(ctx context.Context) error {
	for counted := false; ; {
		if c.count(ctx) == nil {
			counted = true
		}
		interval := startInterval
		if counted {
			interval = Interval
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(interval):
		}
	}
}

// count reads the whole table, page by page.
func (c *Census) count(ctx context.Context) error {
	good := 0
	broken := map[string]string{}
	for after := ""; ; {
		page, err := c.store.List(ctx, after, pageSize)
		if err != nil {
			return err
		}
		for i := range page {
			if reason := page[i].Broken; reason != "" {
				broken[page[i].Service] = reason
			} else {
				good++
			}
		}
		if len(page) < pageSize {
			break
		}
		after = page[len(page)-1].Service
	}
	for service, reason := range broken {
		if c.broken[service] != reason { // once for each
			c.log.Error("a stored record cannot be used; its last good version stays in force at the gateways",
				"record", service, "reason", reason)
		}
	}
	c.broken = broken
	c.records.WithLabelValues("good").Set(float64(good))
	c.records.WithLabelValues("broken").Set(float64(len(broken)))
	return nil
}
