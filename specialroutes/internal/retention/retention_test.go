package retention_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"specialroutes.example/services/routing"
	"specialroutes.example/specialroutes/internal/retention"
	"specialroutes.example/specialroutes/internal/store"
	"specialroutes.example/specialroutes/internal/store/postgres"
	"specialroutes.example/specialroutes/internal/store/postgres/postgrestest"
	"specialroutes.example/specialroutes/internal/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cuts notes what a store is asked to prune, and when.
type cuts struct {
	start time.Time
	mu    sync.Mutex
	at    []time.Duration // since start
	asked []store.Prune
	err   error
}

func (c *cuts) Prune(_ context.Context, p store.Prune) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = append(c.at, time.Since(c.start))
	c.asked = append(c.asked, p)
	return 7, c.err
}

// fail makes every further cut end with an error.
func (c *cuts) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

func TestRun_CutsAtOnceAndThenEveryHourAndABit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var logs bytes.Buffer
		s := &cuts{start: time.Now()}
		random := 0.0
		r := retention.New(retention.Options{
			Store: s, Keep: 48 * time.Hour, Log: slog.New(slog.NewTextHandler(&logs, nil)), Now: time.Now,
			Random: func() float64 { random += 0.25; return random },
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()

		time.Sleep(2 * time.Hour)
		synctest.Wait()
		s.fail(store.ErrUnavailable) // costs one cut, not those after it
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
		want := []time.Duration{0, 62*time.Minute + 30*time.Second, 127*time.Minute + 30*time.Second, 195 * time.Minute}
		if fmt.Sprint(s.at) != fmt.Sprint(want) {
			t.Errorf("cuts at %v, want %v", s.at, want)
		}
		for i, p := range s.asked {
			if before := s.start.Add(s.at[i] - 48*time.Hour); !p.Before.Equal(before) || p.Keep != retention.Newest {
				t.Errorf("cut %d is %+v, want what is older than %v and not among the %d newest", i, p, before, retention.Newest)
			}
		}
		if removed, failed := strings.Count(logs.String(), "entries=7"), strings.Count(logs.String(), "level=WARN"); removed != 4 || failed != 2 {
			t.Errorf("the log has %d cuts and %d failures, want 4 and 2: %s", removed, failed, &logs)
		}
	})
}

// now is the day on which the stores below are cut; their changes are up to three
// years older.
var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func TestRun_CutsRealHistoryAndNothingElse(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		cutsReally(t, func(sources store.Sources) (store.Store, error) {
			o := sqlite.Options{Path: filepath.Join(t.TempDir(), "test.db"), Sources: sources}
			if err := sqlite.Migrate(t.Context(), o); err != nil {
				return nil, err
			}
			return sqlite.Open(t.Context(), o)
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		address := postgrestest.New(t)
		cutsReally(t, func(sources store.Sources) (store.Store, error) {
			return postgres.Open(t.Context(), postgres.Options{URL: address, Sources: sources, PoolSize: 2})
		})
	})
}

// cutsReally makes 300 changes, of which 150 are old, lets a year be kept, and looks
// at what is left.
func cutsReally(t *testing.T, open func(store.Sources) (store.Store, error)) {
	t.Helper()
	clock := now.Add(-3 * 365 * day)
	s, err := open(store.Sources{Now: func() time.Time { return clock }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	var places []store.Cursor
	for i := range 300 {
		if i == 150 {
			clock = now.Add(-30 * day)
		}
		places = append(places, write(t, s, fmt.Sprintf("service-%d", i%2)))
	}
	runOnce(t, s, 365*day)
	expectOldest(t, s, places, 151)
	runOnce(t, s, day) // all are older: the newest stay
	expectOldest(t, s, places, 300-retention.Newest+1)
}

func write(t *testing.T, s store.Store, service string) store.Cursor {
	t.Helper()
	stored, err := s.Write(t.Context(), service, store.Author{Who: "tester"}, func(*store.Stored) (*routing.Record, error) {
		return &routing.Record{Service: service, Active: new(true)}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return stored.Cursor()
}

// runOnce runs until the first cut has been made.
func runOnce(t *testing.T, s store.Store, keep time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := retention.New(retention.Options{
		Store: s, Keep: keep, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
		Random: func() float64 { cancel(); return 0 }, // asked for after a cut
	})
	if err := r.Run(ctx); err != nil {
		t.Fatalf("Run = %v", err)
	}
}

// expectOldest checks that history begins with a revision, that both records are
// there, and which readers get everything anew.
func expectOldest(t *testing.T, s store.Store, places []store.Cursor, oldest int64) {
	t.Helper()
	var got int64
	for _, service := range []string{"service-0", "service-1"} {
		if _, err := s.Get(t.Context(), service); err != nil {
			t.Errorf("Get(%s) = %v", service, err)
		}
		entries, err := s.History(t.Context(), service, 0, 0)
		if err != nil || len(entries) == 0 {
			t.Fatalf("History(%s) = %v, %v", service, entries, err)
		}
		if last := entries[len(entries)-1].Revision; got == 0 || last < got {
			got = last
		}
	}
	if got != oldest {
		t.Errorf("history begins with revision %d, want %d", got, oldest)
	}
	for revision, full := range map[int64]bool{1: true, oldest - 1: true, oldest: false, 300: false} {
		changes, err := s.Changes(t.Context(), places[revision-1])
		if err != nil || changes.Full != full || full && len(changes.Records) != 2 {
			t.Errorf("Changes after revision %d = full %v with %d records, %v, want full %v", revision, changes.Full, len(changes.Records), err, full)
		}
	}
}
