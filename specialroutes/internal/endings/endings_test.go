package endings_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"specialroutes.example/services/routing"
	"specialroutes.example/specialroutes/internal/endings"
	"specialroutes.example/specialroutes/internal/store"
	"specialroutes.example/specialroutes/internal/store/postgres"
	"specialroutes.example/specialroutes/internal/store/postgres/postgrestest"
	"specialroutes.example/specialroutes/internal/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func instance(id string) store.Instance { return store.Instance{Service: "svc", ID: id} }

// put sets a label of an instance until an end.
func put(t *testing.T, s endings.Store, id string, ends time.Time) {
	t.Helper()
	next := &store.NewLabels{Changes: routing.LabelChanges{"zone": nil}, Ends: ends}
	_, err := s.WriteLabels(t.Context(), instance(id), store.Author{Who: "tester"}, func(*store.Labels) (*store.NewLabels, error) { return next, nil })
	if err != nil {
		t.Fatal(err)
	}
}

// onStores runs a test on an empty database of each kind, opened by two processes
// where that is possible.
func onStores(t *testing.T, test func(t *testing.T, s, other store.Store)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		o := sqlite.Options{Path: filepath.Join(t.TempDir(), "test.db")}
		if err := sqlite.Migrate(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		s, err := sqlite.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		test(t, s, s)
	})
	t.Run("postgres", func(t *testing.T) {
		o := postgres.Options{URL: postgrestest.New(t), PoolSize: 4}
		s, err := postgres.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		other, err := postgres.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		test(t, s, other)
	})
}

func TestWhatHasEndedIsTakenAwayOnceWithAnEntryInHistory(t *testing.T) {
	onStores(t, func(t *testing.T, s, other store.Store) {
		now := time.Now()
		put(t, s, "ended", now.Add(-time.Minute))
		put(t, s, "ends-now", now)
		put(t, s, "stays", now.Add(time.Minute))
		before, err := s.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var running sync.WaitGroup
		told := make(chan struct{}, 2)
		for _, store := range []endings.Store{s, other} {
			running.Go(func() {
				_ = endings.New(endings.Options{
					Store: store, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
					Ended: func() { told <- struct{}{} },
				}).Run(ctx)
			})
		}
		<-told
		left := func() []string {
			list, err := s.ListLabels(t.Context(), "", store.Instance{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, l := range list {
				ids = append(ids, l.ID)
			}
			return ids
		}
		for deadline := time.Now().Add(10 * time.Second); !slices.Equal(left(), []string{"stays"}); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%q are left", left())
			}
		}
		cancel()
		running.Wait()
		changes, err := s.Changes(t.Context(), before)
		if err != nil || changes.Full || !slices.Equal(changes.LabelsDeleted, []store.Instance{instance("ended"), instance("ends-now")}) {
			t.Errorf("Changes = %+v, %v, want both to be gone", changes, err)
		}
		if changes.Cursor.Revision != before.Revision+2 {
			t.Errorf("the head is at %v, want two changes after %v", changes.Cursor, before)
		}
		history, err := s.LabelsHistory(t.Context(), instance("ended"), 0, 1)
		if err != nil || len(history) != 1 || history[0].After != nil || history[0].Author != (store.Author{Who: "specialroutes", Why: "ended"}) {
			t.Errorf("history = %+v, %v", history, err)
		}
	})
}

// table is a store that fails, or whose labels are written anew in between.
type table struct {
	ended  []store.Instance
	err    error
	before *store.Labels
	asked  int
	writes []error
}

func (t *table) EndedLabels(context.Context, time.Time, int) ([]store.Instance, error) {
	t.asked++
	return t.ended, t.err
}

func (t *table) WriteLabels(_ context.Context, _ store.Instance, _ store.Author, change store.LabelsFunc) (store.Labels, error) {
	_, err := change(t.before)
	t.writes = append(t.writes, err)
	return store.Labels{}, err
}

// sweep runs for a while and returns what was logged.
func sweep(t *testing.T, tab *table, ended func()) string {
	t.Helper()
	var logs bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), endings.Interval+time.Second)
		defer cancel()
		o := endings.Options{Store: tab, Log: slog.New(slog.NewTextHandler(&logs, nil)), Now: time.Now, Ended: ended}
		if err := endings.New(o).Run(ctx); err != nil {
			t.Errorf("Run = %v", err)
		}
	})
	return logs.String()
}

func TestLabelsThatWereWrittenAnewStay(t *testing.T) {
	tab := &table{
		ended:  []store.Instance{instance("1")},
		before: &store.Labels{Ends: time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)},
	}
	logs := sweep(t, tab, func() { t.Error("something has ended") })
	if len(tab.writes) != 2 || tab.writes[0] == nil || logs != "" {
		t.Errorf("writes %v, log %s", tab.writes, logs)
	}
}

func TestAFailureIsToldAndMadeUpFor(t *testing.T) {
	tab := &table{err: errors.New("a fault")}
	if logs := sweep(t, tab, nil); tab.asked != 2 || strings.Count(logs, "a fault") != 2 {
		t.Errorf("asked %d times, log %s", tab.asked, logs)
	}
	tab = &table{err: store.ErrUnavailable} // others report that
	if logs := sweep(t, tab, nil); tab.asked != 2 || logs != "" {
		t.Errorf("asked %d times, log %s", tab.asked, logs)
	}
}
