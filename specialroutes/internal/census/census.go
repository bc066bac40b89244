// Package census counts the records, and the changes of instances' labels, that cannot
// be used. A row that was written by hand moves no counter and enters no history, so
// nothing else here would notice it; the census reads the whole tables from time to
// time.
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
	ListLabels(ctx context.Context, service string, after store.Instance, limit int) ([]store.Labels, error)
}

// Census counts records and labels and shows the counts as metrics.
type Census struct {
	store   Lister
	log     *slog.Logger
	records *prometheus.GaugeVec
	labels  *prometheus.GaugeVec
	broken  map[string]string         // reason by service, as of the last count
	unfit   map[store.Instance]string // reason by instance, likewise
}

// New returns a census that has not counted yet; its metrics are added to r.
func New(s Lister, log *slog.Logger, r *prometheus.Registry) *Census {
	records := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "specialroutes_records",
		Help: "Route records by state; a broken one cannot be used. Counted every 30 s.",
	}, []string{"state"})
	labels := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "specialroutes_instance_labels",
		Help: "Instances whose labels are changed, by state; a broken change cannot be used. Counted every 30 s.",
	}, []string{"state"})
	r.MustRegister(records, labels)
	return &Census{store: s, log: log, records: records, labels: labels}
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

// count reads the whole tables.
func (c *Census) count(ctx context.Context) error {
	good, broken, err := tally(func(after string) ([]store.Stored, error) {
		return c.store.List(ctx, after, pageSize)
	}, func(s *store.Stored) (string, string) { return s.Service, s.Broken })
	if err != nil {
		return err
	}
	fit, unfit, err := tally(func(after store.Instance) ([]store.Labels, error) {
		return c.store.ListLabels(ctx, "", after, pageSize)
	}, func(l *store.Labels) (store.Instance, string) { return l.Instance, l.Broken })
	if err != nil {
		return err
	}
	for service, reason := range broken {
		if c.broken[service] != reason { // once for each
			c.log.Error("a stored record cannot be used; its last good version stays in force at the gateways",
				"record", service, "reason", reason)
		}
	}
	for of, reason := range unfit {
		if c.unfit[of] != reason {
			c.log.Error("a stored change of labels cannot be used; the last good one stays in force at the gateways",
				"service", of.Service, "instance", of.ID, "reason", reason)
		}
	}
	c.broken, c.unfit = broken, unfit
	c.records.WithLabelValues("good").Set(float64(good))
	c.records.WithLabelValues("broken").Set(float64(len(broken)))
	c.labels.WithLabelValues("good").Set(float64(fit))
	c.labels.WithLabelValues("broken").Set(float64(len(unfit)))
	return nil
}

// tally reads a table page by page and counts the rows that can be used; broken has
// the reasons of the others by their keys. after is the key of the last row of a page.
func tally[K comparable, T any](page func(after K) ([]T, error), of func(*T) (key K, reason string)) (good int, broken map[K]string, err error) {
	broken = map[K]string{}
	var after K
	for {
		rows, err := page(after)
		if err != nil {
			return 0, nil, err
		}
		for i := range rows {
			key, reason := of(&rows[i])
			if reason != "" {
				broken[key] = reason
			} else {
				good++
			}
			after = key
		}
		if len(rows) < pageSize {
			return good, broken, nil
		}
	}
}
