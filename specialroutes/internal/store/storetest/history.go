package storetest

import (
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"specialroutes.example/specialroutes/internal/store"
)

// history: every change is there, until it is cut.
var history = map[string]func(t *testing.T, db Database){
	"history has each change with before, after, who, why and when":   historyTellsAll,
	"history is read in pages":                                        historyInPages,
	"pruning keeps the newest entries":                                pruneByNumber,
	"pruning keeps what is young, without a gap when a clock is slow": pruneByAge,
	"pruning everything leaves the records and the counter":           pruneAll,
	"pruning removes more than one step at a time":                    pruneMany,
}

// epoch is where the clocks of these tests begin.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// clock is a time that a test sets, as minutes after epoch.
type clock struct{ minutes atomic.Int64 }

func (c *clock) now() time.Time { return epoch.Add(time.Duration(c.minutes.Load()) * time.Minute) }

func historyTellsAll(t *testing.T, db Database) {
	var c clock
	s := db.Open(t, store.Sources{Now: c.now})
	first := write(t, s, "svc", put(Record("svc", 1)))
	write(t, s, "other", put(Record("other", 1)))
	c.minutes.Store(1)
	who := store.Author{Who: "ops", Why: "a bad release"}
	second, err := s.Write(t.Context(), "svc", who, remove)
	if err != nil {
		t.Fatal(err)
	}
	got := historyOf(t, s, "svc")
	if len(got) != 2 {
		t.Fatalf("history has %d entries, want 2: %+v", len(got), got)
	}
	if !sameJSON(t, got[0].Before, first.Raw) || !sameJSON(t, got[1].After, first.Raw) {
		t.Errorf("before is %s, after was %s, want %s", got[0].Before, got[1].After, first.Raw)
	}
	got[0].Before, got[1].After = nil, nil
	want := []store.Entry{
		{Revision: 3, Nonce: second.Nonce, Service: "svc", Author: who, At: epoch.Add(time.Minute)},
		{Revision: 1, Nonce: first.Nonce, Service: "svc", Author: author, At: epoch},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("history without its records is\n%+v, want\n%+v", got, want)
	}
}

func historyInPages(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	for i := range int64(7) {
		write(t, s, "svc", put(Record("svc", i)))
		write(t, s, "other", put(Record("other", i)))
	}
	want := historyOf(t, s, "svc")
	if len(want) != 7 {
		t.Fatalf("history has %d entries, want 7", len(want))
	}
	var got []store.Entry
	before := int64(0)
	for range want {
		page, err := s.History(t.Context(), "svc", before, 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
		before = page[len(page)-1].Revision
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("pages of three give\n%+v, want\n%+v", got, want)
	}
}

// prune cuts history and checks how much went.
func prune(t *testing.T, s store.Store, p store.Prune, want int64) {
	t.Helper()
	if n, err := s.Prune(t.Context(), p); err != nil || n != want {
		t.Fatalf("Prune(%+v) = %d, %v, want %d", p, n, err, want)
	}
}

// wantFull checks which cursors get a full answer.
func wantFull(t *testing.T, s store.Store, places []store.Cursor, want ...bool) {
	t.Helper()
	for i, c := range places {
		if got := changesAfter(t, s, c).Full; got != want[i] {
			t.Errorf("the answer after %v is full: %v, want %v", c, got, want[i])
		}
	}
}

// tenChanges makes ten changes and returns the eleven places between them.
func tenChanges(t *testing.T, s store.Store, before func(i int64)) []store.Cursor {
	t.Helper()
	places := []store.Cursor{head(t, s)}
	for i := range int64(10) {
		before(i)
		r := write(t, s, "svc", put(Record("svc", i)))
		places = append(places, r.Cursor())
	}
	return places
}

func pruneByNumber(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	places := tenChanges(t, s, func(int64) {})
	prune(t, s, store.Prune{Keep: 10}, 0)
	wantFull(t, s, places, make([]bool, 11)...)
	prune(t, s, store.Prune{Keep: 3}, 7)
	// The entry of revision 8 is the first that is left, so what came after it is known.
	wantFull(t, s, places, true, true, true, true, true, true, true, true, false, false, false)
	if n := len(historyOf(t, s, "svc")); n != 3 {
		t.Errorf("history has %d entries, want 3", n)
	}
}

func pruneByAge(t *testing.T, db Database) {
	var c clock
	s := db.Open(t, store.Sources{Now: c.now})
	// The fifth change came from a process whose clock is ahead by an hour.
	tenChanges(t, s, func(i int64) {
		c.minutes.Store(i)
		if i == 4 {
			c.minutes.Store(60 + i)
		}
	})
	// Changes 1 to 8 are older than minute 8 by their clocks, but for 5: what is kept
	// begins with it, or change 6 would be missing for a reader who stands at 5.
	prune(t, s, store.Prune{Before: epoch.Add(8 * time.Minute)}, 4)
	entries := historyOf(t, s, "svc")
	if len(entries) != 6 || entries[5].Revision != 5 {
		t.Errorf("history has %d entries, the oldest of revision %d, want 6 and 5", len(entries), entries[len(entries)-1].Revision)
	}
	prune(t, s, store.Prune{Before: epoch.Add(24 * time.Hour), Keep: 2}, 4)
}

func pruneAll(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	places := tenChanges(t, s, func(int64) {})
	before := list(t, s)
	prune(t, s, store.Prune{}, 10)
	if got := head(t, s); got != places[10] {
		t.Errorf("Head() = %v, want %v", got, places[10])
	}
	if got := list(t, s); !reflect.DeepEqual(got, before) {
		t.Errorf("records are %+v, want %+v", got, before)
	}
	if got, want := changesAfter(t, s, places[10]), (store.Changes{Cursor: places[10]}); !reflect.DeepEqual(got, want) {
		t.Errorf("Changes after the head = %+v, want %+v", got, want)
	}
	if next := write(t, s, "svc", remove); next.Revision != 11 {
		t.Errorf("the next revision is %d, want 11", next.Revision)
	}
	// Nobody can say what came between the cut places and now; also not for the
	// reader of the empty database, and for the last place, whose entry is gone.
	wantFull(t, s, places, true, true, true, true, true, true, true, true, true, true, true)
}

func pruneMany(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	write(t, s, "svc", put(Record("svc", 1)))
	db.Exec(t, `INSERT INTO history (revision, nonce, service, who, why, at)
		WITH RECURSIVE c(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM c WHERE n < 12000)
		SELECT n, 'n' || n, 'svc', 'tester', '', '2026-03-01T12:00:00.000000Z' FROM c`)
	db.Exec(t, `UPDATE counter SET n = 12000, nonce = 'n12000'`)
	prune(t, s, store.Prune{Keep: 7}, 11_993)
	if entries := historyOf(t, s, "svc"); len(entries) != 7 || entries[6].Revision != 11_994 {
		t.Errorf("history has %d entries, want the 7 from revision 11994 on", len(entries))
	}
}
