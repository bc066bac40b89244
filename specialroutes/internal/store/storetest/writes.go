package storetest

import (
	"errors"
	"reflect"
	"sync"
	"testing"

	"specialroutes.example/services/routing"
	"specialroutes.example/specialroutes/internal/store"
)

// writes: one change at a time, whole or not at all.
var writes = map[string]func(t *testing.T, db Database){
	"a change sees the record before it":                 changeSeesBefore,
	"an error of the change stores nothing":              errorStoresNothing,
	"a panic of the change stores nothing":               panicStoresNothing,
	"deleting what is not there is not found":            deletesNothing,
	"a record that breaks the rules is refused":          refusesInvalid,
	"no update is lost when all compare revisions":       losesNoUpdate,
	"each change has its own revision without a gap":     revisionsHaveNoGap,
	"the nonce is the one that was handed in, each time": nonceIsHandedIn,
}

func changeSeesBefore(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	var seen *store.Stored
	look := func(next *routing.Record) store.ChangeFunc {
		return func(before *store.Stored) (*routing.Record, error) {
			seen = before
			return next, nil
		}
	}
	first := write(t, s, "svc", look(Record("svc", 1)))
	if seen != nil {
		t.Errorf("the first change saw %+v, want nothing", seen)
	}
	second := write(t, s, "svc", look(Record("svc", 2)))
	if seen == nil || seen.ETag() != first.ETag() || !reflect.DeepEqual(seen.Record, first.Record) {
		t.Errorf("the second change saw %+v, want %+v", seen, first)
	}
	gone := write(t, s, "svc", look(nil))
	if seen == nil || seen.ETag() != second.ETag() {
		t.Errorf("the delete saw %+v, want %+v", seen, second)
	}
	want := store.Stored{Service: "svc", Revision: 3, Nonce: head(t, s).Nonce}
	if !reflect.DeepEqual(gone, want) {
		t.Errorf("the delete gave %+v, want %+v", gone, want)
	}
	_, err := s.Get(t.Context(), "svc")
	wantError(t, err, store.ErrNotFound)
	write(t, s, "svc", look(Record("svc", 4)))
	if seen != nil {
		t.Errorf("after the delete the change saw %+v, want nothing", seen)
	}
}

// unchanged runs a write that must fail and checks that nothing moved.
func unchanged(t *testing.T, s store.Store, try func()) {
	t.Helper()
	recordsBefore, headBefore := list(t, s), head(t, s)
	try()
	if h := head(t, s); h != headBefore {
		t.Errorf("the head moved from %v to %v", headBefore, h)
	}
	if l := list(t, s); !reflect.DeepEqual(l, recordsBefore) {
		t.Errorf("the records are %+v, want %+v", l, recordsBefore)
	}
}

func errorStoresNothing(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	write(t, s, "svc", put(Record("svc", 1)))
	mine := errors.New("the precondition failed")
	unchanged(t, s, func() {
		_, err := s.Write(t.Context(), "svc", author, func(*store.Stored) (*routing.Record, error) {
			return Record("svc", 9), mine
		})
		if err != mine { // as it is, not wrapped
			t.Errorf("Write = %v, want %v itself", err, mine)
		}
	})
	if next := write(t, s, "svc", put(Record("svc", 2))); next.Revision != 2 {
		t.Errorf("the next revision is %d, want 2", next.Revision)
	}
	if l := historyOf(t, s, "svc"); len(l) != 2 {
		t.Errorf("history has %d entries, want 2", len(l))
	}
}

func panicStoresNothing(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	write(t, s, "svc", put(Record("svc", 1)))
	unchanged(t, s, func() {
		defer func() {
			if p := recover(); p != "on purpose" {
				t.Errorf("recovered %v, want the panic of the change", p)
			}
		}()
		_, err := s.Write(t.Context(), "svc", author, func(*store.Stored) (*routing.Record, error) {
			panic("on purpose")
		})
		t.Errorf("Write returned, with %v", err)
	})
	write(t, s, "svc", put(Record("svc", 2))) // the lock was given back
}

func deletesNothing(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	write(t, s, "svc", put(Record("svc", 1)))
	unchanged(t, s, func() {
		_, err := s.Write(t.Context(), "other", author, remove)
		wantError(t, err, store.ErrNotFound)
	})
}

func refusesInvalid(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	write(t, s, "svc", put(Record("svc", 1)))
	noActive := Record("svc", 5)
	noActive.Active = nil
	for name, r := range map[string]*routing.Record{
		"another service's": Record("other", 5),
		"without active":    noActive,
	} {
		unchanged(t, s, func() {
			_, err := s.Write(t.Context(), "svc", author, put(r))
			if err == nil {
				t.Errorf("%s: no error", name)
			}
			wantError(t, err, store.ErrInvalid)
		})
	}
}

// errChanged says that somebody has written since the reading.
var errChanged = errors.New("somebody was quicker")

// insist runs writers at the same time, each of which does what it does so many times,
// and again for each time that somebody was quicker.
func insist(t *testing.T, writers, each int, do func() error) {
	t.Helper()
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for done := 0; done < each; {
				switch err := do(); {
				case err == nil:
					done++
				case !errors.Is(err, errChanged):
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// losesNoUpdate lets writers read, and write only what has not changed since, as a
// client does with If-Match.
func losesNoUpdate(t *testing.T, db Database) {
	const writers, each = 5, 8
	s := db.Open(t, store.Sources{})
	r := Record("svc", 0)
	r.Variants[0].Weight = new(int64(1))
	write(t, s, "svc", put(r))
	addOne := func() error {
		read, err := s.Get(t.Context(), "svc")
		if err != nil {
			return err
		}
		next := Record("svc", 0)
		next.Variants[0].Weight = new(*read.Record.Variants[0].Weight + 1)
		_, err = s.Write(t.Context(), "svc", author, func(before *store.Stored) (*routing.Record, error) {
			if before.ETag() != read.ETag() {
				return nil, errChanged
			}
			return next, nil
		})
		return err
	}
	insist(t, writers, each, addOne)
	got, err := s.Get(t.Context(), "svc")
	if err != nil {
		t.Fatal(err)
	}
	if n := *got.Record.Variants[0].Weight; n != 1+writers*each {
		t.Errorf("the counter in the record is %d, want %d", n, 1+writers*each)
	}
}

func revisionsHaveNoGap(t *testing.T, db Database) {
	const writers, each = 4, 10
	s := db.Open(t, store.Sources{})
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for i := range int64(each) {
				if _, err := s.Write(t.Context(), "svc", author, put(Record("svc", i))); err != nil {
					t.Error(err)
				}
				// One that fails in between must not use a number up.
				_, err := s.Write(t.Context(), "nobody", author, remove)
				wantError(t, err, store.ErrNotFound)
			}
		})
	}
	wg.Wait()
	entries := historyOf(t, s, "svc")
	nonces := map[string]bool{}
	for i, e := range entries {
		if want := int64(writers*each - i); e.Revision != want {
			t.Errorf("entry %d has revision %d, want %d", i, e.Revision, want)
		}
		nonces[e.Nonce] = true
	}
	if len(entries) != writers*each || len(nonces) != writers*each {
		t.Errorf("%d entries with %d nonces, want %d of each", len(entries), len(nonces), writers*each)
	}
}

func nonceIsHandedIn(t *testing.T, db Database) {
	left := []string{"first", "second"}
	s := db.Open(t, store.Sources{Nonce: func() string {
		next := left[0]
		left = left[1:]
		return next
	}})
	for _, want := range []string{`"1.first"`, `"2.second"`} {
		written := write(t, s, "svc", put(Record("svc", 5)))
		if got := head(t, s); written.ETag() != want || got != written.Cursor() {
			t.Errorf("ETag %s, head %v, want %s", written.ETag(), got, want)
		}
	}
}
