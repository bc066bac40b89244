package gateways_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
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
	since  map[string]time.Time
	writes int
	err    error
}

func (t *table) SeeGateway(_ context.Context, g store.Gateway) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes++
	g.Seen = time.Now()
	before, known := t.rows[g.ID]
	g.Follows = before.Follows || !g.Cursor.IsZero()
	if t.since == nil {
		t.since = map[string]time.Time{}
	}
	if !known {
		t.since[g.ID] = g.Seen
	}
	if t.err == nil {
		t.rows[g.ID] = g
	}
	return t.err
}

func (t *table) LeaveGateway(_ context.Context, id string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g, ok := t.rows[id]; ok && t.err == nil {
		g.Left = true
		t.rows[id] = g
	}
	return t.err
}

func (t *table) ListGateways(_ context.Context, within time.Duration) ([]store.Gateway, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []store.Gateway
	for _, g := range t.rows {
		if time.Since(g.Seen) <= within {
			g.KnownFor = time.Since(t.since[g.ID])
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

// peer is where the gateways of most tests are.
var peer = netip.MustParseAddr("192.0.2.1")

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
		tr.Tell(t.Context(), peer, at("gone", 3))
		time.Sleep(gateways.LiveFor + 1)
		tr.Tell(t.Context(), peer, at("gw-1", 9))
		tr.Tell(t.Context(), peer, at("gw-2", 10, "other"))
		go func() {
			time.Sleep(3 * time.Second)
			tr.Tell(context.Background(), peer, at("gw-1", 12, "svc"))
		}()
		got, took := await(t, tr, nil)
		want := gateways.Progress{Of: 2, Now: 2, Behind: []string{}, SetAside: []string{"gw-1"}}
		if !reflect.DeepEqual(got, want) || took < 3*time.Second || took > 3200*time.Millisecond {
			t.Errorf("Await = %+v after %v, want %+v after 3s", got, took, want)
		}
	})
}

func TestAwaitDoesNotWaitForThoseThatLeft(t *testing.T) {
	inBubble(t, func(t *testing.T, tab *table, tr *gateways.Tracker) {
		tr.Tell(t.Context(), peer, at("gw-1", 10))
		tr.Tell(t.Context(), peer, at("gw-2", 9))
		tr.Leave(t.Context(), "gw-2")
		if got, took := await(t, tr, nil); got.Of != 1 || got.Now != 1 || took != 0 {
			t.Errorf("Await = %+v after %v, want gw-1 alone at once", got, took)
		}
		tr.Tell(t.Context(), peer, at("gw-2", 9)) // the same as before, and yet news
		if got, took := await(t, tr, nil); got.Of != 2 || !slices.Equal(got.Behind, []string{"gw-2"}) || took != gateways.Patience {
			t.Errorf("after it came back Await = %+v after %v, want gw-2 behind", got, took)
		}
		tab.err = errors.New("the table is away")
		tr.Leave(t.Context(), "gw-1") // logged
	})
}

func TestAwaitNamesThoseBehindWhenItsTimeIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *table, tr *gateways.Tracker) {
		tr.Tell(t.Context(), peer, at("gw-1", 11))
		tr.Tell(t.Context(), peer, at("gw-2", 10))
		tr.Tell(t.Context(), peer, at("gw-3", 9))
		tr.Tell(t.Context(), peer, at("gw-4", 8))
		tr.Tell(t.Context(), peer, store.Gateway{ID: "gw-4"}) // of another history now
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
		tr.Tell(t.Context(), peer, at("gw-1", 1))
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
			tr.Tell(t.Context(), peer, step.tell)
			if tab.writes != step.writes {
				t.Errorf("%s: %d writes, want %d", step.name, tab.writes, step.writes)
			}
		}
		tab.err = store.ErrUnavailable
		tr.Tell(t.Context(), peer, at("gw-1", 3)) // lost
		tab.err = nil
		tr.Tell(t.Context(), peer, at("gw-1", 3))
		if got := tab.rows["gw-1"].Cursor.Revision; got != 3 {
			t.Errorf("after a write that failed the table says revision %d, want 3", got)
		}
	})
}

func TestAwaitCountsWhoNeverFollowsForAMomentOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, tab *table, tr *gateways.Tracker) {
		tr.Tell(t.Context(), peer, at("gw-1", 10))
		tr.Tell(t.Context(), peer, store.Gateway{ID: "invented"})
		want := gateways.Progress{Of: 1, Now: 1, Behind: []string{}, SetAside: []string{}}
		if got, took := await(t, tr, nil); !reflect.DeepEqual(got, want) || took < gateways.Newcomer || took > gateways.Newcomer+time.Second {
			t.Errorf("Await = %+v after %v, want %+v after %v", got, took, want, gateways.Newcomer)
		}
		tr.Tell(t.Context(), peer, store.Gateway{ID: "invented", Version: "2"}) // again: no newcomer any more
		if got, took := await(t, tr, nil); !reflect.DeepEqual(got, want) || took != 0 {
			t.Errorf("Await = %+v after %v, want %+v at once", got, took, want)
		}
		tr.Tell(t.Context(), peer, at("invented", 9)) // it follows after all
		if got, _ := await(t, tr, nil); len(got.Behind) != 1 {
			t.Errorf("Await = %+v, want the one that follows to be behind", got)
		}
	})
}

func TestOnePeerTellsOfSoManyGatewaysAndOthersOfTheirs(t *testing.T) {
	inBubble(t, func(t *testing.T, tab *table, tr *gateways.Tracker) {
		for i := range 5000 {
			// From one network of IPv6, an address each.
			from := netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", i+1))
			tr.Tell(t.Context(), from, at(fmt.Sprintf("invented-%d", i), 1))
		}
		if len(tab.rows) != gateways.MostOfPeer {
			t.Errorf("%d are kept of one peer, want %d", len(tab.rows), gateways.MostOfPeer)
		}
		tr.Tell(t.Context(), peer, at("gw-1", 1))
		tr.Tell(t.Context(), netip.Addr{}, at("gw-2", 1))
		if len(tab.rows) != gateways.MostOfPeer+2 {
			t.Errorf("%d are kept, want those of other peers too", len(tab.rows))
		}
		tr.Tell(t.Context(), netip.MustParseAddr("2001:db8::1"), at("invented-0", 2))
		if got := tab.rows["invented-0"].Cursor.Revision; got != 2 {
			t.Errorf("who is listened to is at revision %d, want 2", got)
		}
		time.Sleep(gateways.LiveFor + 1)
		tr.Tell(t.Context(), netip.MustParseAddr("2001:db8::1"), at("late", 2))
		if _, ok := tab.rows["late"]; !ok {
			t.Error("when the others are silent a new one is not listened to")
		}
	})
}
