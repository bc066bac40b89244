package gateways_test

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"specialroutes.example/specialroutes/internal/gateways"
	"specialroutes.example/specialroutes/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// table is the table in memory.
type table struct {
	mu     sync.Mutex
	rows   map[string]store.Gateway
	writes int
	err    error
}

func (t *table) SeeGateway(_ context.Context, g store.Gateway) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes++
	g.Seen = time.Now()
	if t.err == nil {
		t.rows[g.ID] = g
	}
	return t.err
}

func (t *table) ListGateways(_ context.Context, within time.Duration) ([]store.Gateway, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []store.Gateway
	for _, g := range t.rows {
		if time.Since(g.Seen) <= within {
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b store.Gateway) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return list, t.err
}

func at(id string, revision int64, setAside ...string) store.Gateway {
	return store.Gateway{ID: id, Cursor: store.Cursor{Revision: revision, Nonce: "n"}, SetAside: setAside}
}

func inBubble(t *testing.T, test func(t *testing.T, tab *table, tr *gateways.Tracker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tab := &table{rows: map[string]store.Gateway{}}
		test(t, tab, gateways.New(tab, slog.New(slog.DiscardHandler)))
	})
}

var change = store.Cursor{Revision: 10, Nonce: "x"}

func await(t *testing.T, tr *gateways.Tracker, stop <-chan struct{}) (gateways.Progress, time.Duration) {
	t.Helper()
	start := time.Now()
	p, err := tr.Await(t.Context(), "svc", change, stop)
	if err != nil {
		t.Errorf("Await = %v", err)
	}
	return p, time.Since(start)
}

func TestAwaitReturnsWhenAllThatRunArePast(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *table, tr *gateways.Tracker) {
		tr.Tell(t.Context(), at("gone", 3))
		time.Sleep(gateways.LiveFor + 1)
		tr.Tell(t.Context(), at("gw-1", 9))
		tr.Tell(t.Context(), at("gw-2", 10, "other"))
		go func() {
			time.Sleep(3 * time.Second)
			tr.Tell(context.Background(), at("gw-1", 12, "svc"))
		}()
		got, took := await(t, tr, nil)
		want := gateways.Progress{Of: 2, Now: 2, Behind: []string{}, SetAside: []string{"gw-1"}}
		if !reflect.DeepEqual(got, want) || took < 3*time.Second || took > 3200*time.Millisecond {
			t.Errorf("Await = %+v after %v, want %+v after 3s", got, took, want)
		}
	})
}

func TestAwaitNamesThoseBehindWhenItsTimeIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *table, tr *gateways.Tracker) {
		tr.Tell(t.Context(), at("gw-1", 11))
		tr.Tell(t.Context(), at("gw-2", 10))
		tr.Tell(t.Context(), at("gw-3", 9))
		tr.Tell(t.Context(), store.Gateway{ID: "gw-4"}) // of another history
		got, took := await(t, tr, nil)
		want := gateways.Progress{Of: 4, Now: 2, Behind: []string{"gw-3", "gw-4"}, SetAside: []string{}}
		if !reflect.DeepEqual(got, want) || took != gateways.Patience {
			t.Errorf("Await = %+v after %v, want %+v after %v", got, took, want, gateways.Patience)
		}
	})
}

func TestAwaitEndsEarly(t *testing.T) {
	inBubble(t, func(t *testing.T, tab *table, tr *gateways.Tracker) {
		if got, took := await(t, tr, nil); got.Of != 0 || took != 0 {
			t.Errorf("without gateways: Await = %+v after %v", got, took)
		}
		tr.Tell(t.Context(), at("gw-1", 1))
		stop := make(chan struct{})
		close(stop)
		if got, took := await(t, tr, stop); len(got.Behind) != 1 || took != 0 {
			t.Errorf("at a stop: Await = %+v after %v", got, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := tr.Await(ctx, "svc", change, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a context that ends: Await = %v", err)
		}
		tab.err = store.ErrUnavailable
		if _, err := tr.Await(t.Context(), "svc", change, nil); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("without a database: Await = %v", err)
		}
	})
}

func TestTellWritesWhatIsNewOrOld(t *testing.T) {
	inBubble(t, func(t *testing.T, tab *table, tr *gateways.Tracker) {
		steps := []struct {
			name   string
			pass   time.Duration
			tell   store.Gateway
			writes int
		}{
			{"the first time", 0, at("gw-1", 1), 1},
			{"the same again", time.Second, at("gw-1", 1), 1},
			{"another gateway", 0, at("gw-2", 1), 2},
			{"another place", 0, at("gw-1", 2), 3},
			{"something set aside", 0, at("gw-1", 2, "svc"), 4},
			{"the same, much later", time.Minute, at("gw-1", 2, "svc"), 5},
		}
		for _, step := range steps {
			time.Sleep(step.pass)
			tr.Tell(t.Context(), step.tell)
			if tab.writes != step.writes {
				t.Errorf("%s: %d writes, want %d", step.name, tab.writes, step.writes)
			}
		}
		tab.err = store.ErrUnavailable
		tr.Tell(t.Context(), at("gw-1", 3)) // lost
		tab.err = nil
		tr.Tell(t.Context(), at("gw-1", 3))
		if got := tab.rows["gw-1"].Cursor.Revision; got != 3 {
			t.Errorf("after a write that failed the table says revision %d, want 3", got)
		}
	})
}
