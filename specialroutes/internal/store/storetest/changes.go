package storetest

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"specialroutes.example/services/routing"
	"specialroutes.example/specialroutes/internal/store"
)

// changes: who follows ends with the table.
var changes = map[string]func(t *testing.T, db Database){
	"changes after a place are collapsed by service":           changesAreCollapsed,
	"the empty database is a place to follow from":             followsFromEmpty,
	"a place that is not in history gets everything":           unknownPlaceGetsAll,
	"six writers and three followers end equal to the table":   followersEndEqual,
	"a restore to an earlier revision is noticed and followed": restoreIsFollowed,
	"a restore to the empty database is noticed and followed":  restoreToEmptyIsFollowed,
}

func changesAreCollapsed(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	write(t, s, "stays", put(Record("stays", 1)))
	write(t, s, "changes", put(Record("changes", 1)))
	write(t, s, "goes", put(Record("goes", 1)))
	write(t, s, "returns", put(Record("returns", 1)))
	after := head(t, s)
	write(t, s, "changes", put(Record("changes", 2)))
	write(t, s, "goes", put(Record("goes", 2)))
	write(t, s, "returns", remove)
	write(t, s, "comes", put(Record("comes", 1)))
	write(t, s, "passes", put(Record("passes", 1)))
	changed := write(t, s, "changes", put(Record("changes", 3)))
	returned := write(t, s, "returns", put(Record("returns", 3)))
	write(t, s, "goes", remove)
	write(t, s, "passes", remove)
	got := changesAfter(t, s, after)
	if got.Full || got.Cursor != head(t, s) {
		t.Errorf("Changes: full %v, cursor %v, want what came since, up to %v", got.Full, got.Cursor, head(t, s))
	}
	if want := []string{"changes", "comes", "returns"}; !slices.Equal(names(got.Records), want) {
		t.Fatalf("Records = %v, want %v", names(got.Records), want)
	}
	if want := []string{"goes", "passes"}; !slices.Equal(got.Deleted, want) {
		t.Errorf("Deleted = %v, want %v", got.Deleted, want)
	}
	if got.Records[0].ETag() != changed.ETag() || got.Records[2].ETag() != returned.ETag() {
		t.Errorf("Records = %+v, want %s and %s", got.Records, changed.ETag(), returned.ETag())
	}
	full := changesAfter(t, s, store.Cursor{})
	if !full.Full || !reflect.DeepEqual(full.Records, list(t, s)) || full.Deleted != nil {
		t.Errorf("Changes of nothing = %+v, want the table", full)
	}
}

func followsFromEmpty(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	empty := head(t, s)
	write(t, s, "svc", put(Record("svc", 1)))
	got := changesAfter(t, s, empty)
	if got.Full || !slices.Equal(names(got.Records), []string{"svc"}) {
		t.Errorf("Changes(%v) = %+v, want svc and not full", empty, got)
	}
}

func unknownPlaceGetsAll(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	empty := head(t, s)
	places := tenChanges(t, s, func(int64) {})
	for _, c := range []store.Cursor{
		{Revision: 0, Nonce: "other"},             // another empty database
		{Revision: 5, Nonce: "other"},             // another history
		{Revision: 5, Nonce: places[6].Nonce},     // a pair that never was
		{Revision: 5, Nonce: empty.Nonce},         //
		{Revision: 10, Nonce: "other"},            // the head's number
		{Revision: 1000, Nonce: places[10].Nonce}, // ahead of us
		{Revision: 1<<63 - 1, Nonce: "other"},     //
	} {
		got := changesAfter(t, s, c)
		if !got.Full || got.Cursor != places[10] || !slices.Equal(names(got.Records), []string{"svc"}) {
			t.Errorf("Changes(%v) = %+v, want everything at %v", c, got, places[10])
		}
	}
}

// follower holds what one gateway would, by the rules of the feed.
type follower struct {
	cursor  store.Cursor
	records map[string]string         // ETag by service
	labels  map[store.Instance]string // ETag by instance
	fulls   int
}

// follow asks once and applies the answer.
func (f *follower) follow(t *testing.T, s store.Store) {
	t.Helper()
	c := changesAfter(t, s, f.cursor)
	if c.Full {
		f.fulls++
		f.records, f.labels = map[string]string{}, map[store.Instance]string{}
	} else if c.Cursor.Revision < f.cursor.Revision {
		t.Errorf("a delta leads back from %v to %v", f.cursor, c.Cursor)
	}
	for _, r := range c.Records {
		if r.Revision > c.Cursor.Revision {
			t.Errorf("the answer at %v holds %s of %v", c.Cursor, r.Service, r.Cursor())
		}
		f.records[r.Service] = r.ETag()
	}
	for _, service := range c.Deleted {
		delete(f.records, service)
	}
	for _, l := range c.Labels {
		if l.Revision > c.Cursor.Revision {
			t.Errorf("the answer at %v holds %v of %v", c.Cursor, l.Instance, l.Cursor())
		}
		f.labels[l.Instance] = l.ETag()
	}
	for _, of := range c.LabelsDeleted {
		delete(f.labels, of)
	}
	f.cursor = c.Cursor
}

// wantTable checks that the follower holds what the tables do.
func (f *follower) wantTable(t *testing.T, s store.Store) {
	t.Helper()
	want := map[string]string{}
	for _, r := range list(t, s) {
		want[r.Service] = r.ETag()
	}
	if !reflect.DeepEqual(f.records, want) || f.cursor != head(t, s) {
		t.Errorf("the follower holds %v at %v, want %v at %v", f.records, f.cursor, want, head(t, s))
	}
	wantLabels := map[store.Instance]string{}
	for _, l := range listLabels(t, s) {
		wantLabels[l.Instance] = l.ETag()
	}
	if !reflect.DeepEqual(f.labels, wantLabels) {
		t.Errorf("the follower holds the labels %v, want %v", f.labels, wantLabels)
	}
}

// randomChanges makes so many changes to a few services and, a third of them, to the
// labels of a few instances. A third of all are deletes, and half of the rest of those
// to records are made only if nobody changed the record since it was read.
func randomChanges(t *testing.T, s store.Store, n int, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 2))
	errChanged := errors.New("somebody was quicker")
	for done := 0; done < n && !t.Failed(); {
		service := string(rune('a' + random.IntN(7)))
		if random.IntN(3) == 0 {
			if randomLabels(t, s, random, store.Instance{Service: service, ID: "1"}) {
				done++
			}
			continue
		}
		next := Record(service, int64(random.IntN(11)))
		if random.IntN(3) == 0 {
			next = nil
		}
		compares := random.IntN(2) == 0
		read, errRead := s.Get(t.Context(), service)
		_, err := s.Write(t.Context(), service, author, func(before *store.Stored) (*routing.Record, error) {
			if compares && before != nil && (errRead != nil || before.ETag() != read.ETag()) {
				return nil, errChanged
			}
			return next, nil
		})
		switch {
		case err == nil:
			done++
		case !errors.Is(err, errChanged) && !errors.Is(err, store.ErrNotFound):
			t.Error(err)
		}
	}
}

// randomLabels changes the labels of an instance, or deletes them; false when there
// were none to delete.
func randomLabels(t *testing.T, s store.Store, random *rand.Rand, of store.Instance) bool {
	change := putLabels("zone", string(rune('a'+random.IntN(7))))
	if random.IntN(3) == 0 {
		change = removeLabels
	}
	_, err := s.WriteLabels(t.Context(), of, author, change)
	if err != nil && !errors.Is(err, store.ErrNoLabels) {
		t.Error(err)
	}
	return err == nil
}

func followersEndEqual(t *testing.T, db Database) {
	const writers, each, followers = 6, 50, 3
	stores := []store.Store{db.Open(t, store.Sources{})}
	if db.Shared {
		stores = append(stores, db.Open(t, store.Sources{}))
	}
	var writing, following sync.WaitGroup
	done := make(chan struct{})
	for i := range writers {
		writing.Go(func() { randomChanges(t, stores[i%len(stores)], each, uint64(i)) })
	}
	all := make([]follower, followers)
	for i := range all {
		following.Go(func() {
			s := stores[i%len(stores)]
			for stop := false; !stop; {
				select {
				case <-done:
					stop = true // and ask once more
				default:
				}
				all[i].follow(t, s)
			}
		})
	}
	writing.Wait()
	close(done)
	following.Wait()
	if h := head(t, stores[0]); h.Revision != writers*each {
		t.Errorf("the head is at revision %d, want %d", h.Revision, writers*each)
	}
	for i := range all {
		all[i].wantTable(t, stores[0])
		if all[i].fulls != 1 {
			t.Errorf("follower %d got %d full answers, want the first alone", i, all[i].fulls)
		}
	}
}

func restoreIsFollowed(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	write(t, s, "old", put(Record("old", 1)))
	write(t, s, "lost", put(Record("lost", 1)))
	writeLabels(t, s, one, putLabels("zone", "kept"))
	var early follower
	early.follow(t, s)
	backedUp := head(t, s)
	closeStore(t, s)
	restore := db.Backup(t)

	s = db.Open(t, store.Sources{})
	write(t, s, "lost", remove)
	write(t, s, "new", put(Record("new", 1)))
	write(t, s, "old", put(Record("old", 9)))
	writeLabels(t, s, one, removeLabels)
	writeLabels(t, s, two, putLabels("zone", "lost"))
	var late follower
	late.follow(t, s)
	late.wantTable(t, s)
	closeStore(t, s)
	restore(t)

	s = db.Open(t, store.Sources{})
	if got := head(t, s); got != backedUp {
		t.Errorf("after the restore Head() = %v, want %v", got, backedUp)
	}
	// The same numbers are given out again, for other changes.
	write(t, s, "old", put(Record("old", 2)))
	write(t, s, "third", put(Record("third", 2)))
	write(t, s, "third", put(Record("third", 3)))
	writeLabels(t, s, two, putLabels("zone", "other"))
	writeLabels(t, s, two, putLabels("zone", "another"))
	if h := head(t, s); h.Revision != late.cursor.Revision {
		t.Fatalf("the head is at %v, want the revision of %v", h, late.cursor)
	}
	late.follow(t, s)
	late.wantTable(t, s)
	if late.fulls != 2 {
		t.Errorf("who followed past the backup got %d full answers, want 2", late.fulls)
	}
	early.follow(t, s)
	early.wantTable(t, s)
	if early.fulls != 1 {
		t.Errorf("who stood at the backup got %d full answers, want 1", early.fulls)
	}
}

func restoreToEmptyIsFollowed(t *testing.T, db Database) {
	restore := db.Backup(t)
	s := db.Open(t, store.Sources{})
	write(t, s, "svc", put(Record("svc", 1)))
	var f follower
	f.follow(t, s)
	closeStore(t, s)
	restore(t)
	s = db.Open(t, store.Sources{})
	f.follow(t, s)
	f.wantTable(t, s)
	if f.fulls != 2 || f.cursor.Revision != 0 {
		t.Errorf("after the restore the follower is at %v with %d full answers, want revision 0 and 2", f.cursor, f.fulls)
	}
}

func closeStore(t *testing.T, s store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
