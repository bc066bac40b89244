package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"specialroutes.example/services/routing"
	"specialroutes.example/specialroutes/internal/store"
)

// labels: what operators say about labels of instances.
var labels = map[string]func(t *testing.T, db Database){
	"labels are read as they were written":                    labelsAreRead,
	"labels are listed in order, by pages and by service":     labelsInPages,
	"a change of labels sees those before it":                 labelsChangeSeesBefore,
	"labels that break the rules are refused":                 refusesInvalidLabels,
	"an error of a change of labels stores nothing":           labelsErrorStoresNothing,
	"no change of labels is lost when all compare revisions":  losesNoLabels,
	"labels and records have their places in one order":       oneOrder,
	"changes of labels after a place are collapsed":           labelChangesAreCollapsed,
	"the history of labels has each change":                   labelsHistoryTellsAll,
	"pruning cuts both histories at one place":                pruneBoth,
	"pruning by age keeps what follows a young entry of both": pruneBothByAge,
	"labels that have ended are found, the first ones first":  endedLabelsAreFound,
	"a broken row of labels is set aside with its reason":     brokenLabelsAreSetAside,
}

// The instances of the tests, and when what is said of them ends.
var (
	one  = store.Instance{Service: "organizationservice", ID: "org-1"}
	two  = store.Instance{Service: "organizationservice", ID: "org/2?%"}
	ends = time.Date(2099, 12, 20, 12, 0, 0, 123456000, time.UTC)
)

// putLabels returns a change that sets labels, names and values in turn, and hides
// the label "hidden", whatever was there.
func putLabels(pairs ...string) store.LabelsFunc {
	return putLabelsUntil(ends, pairs...)
}

func putLabelsUntil(end time.Time, pairs ...string) store.LabelsFunc {
	changes := routing.LabelChanges{"hidden": nil}
	for i := 0; i+1 < len(pairs); i += 2 {
		changes[pairs[i]] = &pairs[i+1]
	}
	return func(*store.Labels) (*store.NewLabels, error) {
		return &store.NewLabels{Changes: changes, Ends: end}, nil
	}
}

// removeLabels is a change that deletes.
func removeLabels(*store.Labels) (*store.NewLabels, error) { return nil, nil }

// writeLabels makes a change that must succeed.
func writeLabels(t *testing.T, s store.Store, of store.Instance, change store.LabelsFunc) store.Labels {
	t.Helper()
	written, err := s.WriteLabels(t.Context(), of, author, change)
	if err != nil {
		t.Fatalf("WriteLabels(%v) = %v", of, err)
	}
	return written
}

// listLabels returns all labels.
func listLabels(t *testing.T, s store.Store) []store.Labels {
	t.Helper()
	l, err := s.ListLabels(t.Context(), "", store.Instance{}, 0)
	if err != nil {
		t.Fatalf("ListLabels() = %v", err)
	}
	return l
}

func labelsHistoryOf(t *testing.T, s store.Store, of store.Instance) []store.LabelsEntry {
	t.Helper()
	l, err := s.LabelsHistory(t.Context(), of, 0, 0)
	if err != nil {
		t.Fatalf("LabelsHistory(%v) = %v", of, err)
	}
	return l
}

// instances returns whose labels they are, in their order.
func instances(list []store.Labels) []store.Instance {
	var all []store.Instance
	for _, l := range list {
		all = append(all, l.Instance)
	}
	return all
}

func labelsAreRead(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	_, err := s.GetLabels(t.Context(), one)
	wantError(t, err, store.ErrNoLabels)
	write(t, s, one.Service, put(Record(one.Service, 1)))
	written := writeLabels(t, s, one, putLabels("zone", "alice", "ü", "é\"\\"))
	got, err := s.GetLabels(t.Context(), one)
	if err != nil || !sameJSON(t, got.Raw, []byte(`{"hidden":null,"zone":"alice","ü":"é\"\\"}`)) {
		t.Fatalf("GetLabels = %s, %v", got.Raw, err)
	}
	if got.ETag() != written.ETag() || got.Revision != 2 || got.Ends != ends || got.Broken != "" || *got.Changes["zone"] != "alice" || got.Changes["hidden"] != nil {
		t.Errorf("GetLabels = %+v, want what was written, %+v", got, written)
	}
	// An ID has no pattern but that of visible ASCII, and nothing in it is SQL.
	odd := store.Instance{Service: one.Service, ID: `a'"/\%_;--`}
	writeLabels(t, s, odd, putLabels("zone", "b"))
	if got, err := s.GetLabels(t.Context(), odd); err != nil || *got.Changes["zone"] != "b" {
		t.Errorf("GetLabels(%v) = %+v, %v", odd, got, err)
	}
	_, err = s.GetLabels(t.Context(), store.Instance{Service: one.Service, ID: "a\x00"})
	wantError(t, err, store.ErrNoLabels)
}

func labelsInPages(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	var want []store.Instance
	for _, service := range []string{"a", "a-b", "b"} {
		for _, id := range []string{"B", "a", "a-1", "b"} {
			want = append(want, store.Instance{Service: service, ID: id})
		}
	}
	for i := range want { // written in another order
		writeLabels(t, s, want[(i*5)%len(want)], putLabels("zone", "a"))
	}
	if got := instances(listLabels(t, s)); !slices.Equal(got, want) {
		t.Errorf("ListLabels = %v, want %v", got, want)
	}
	var paged []store.Instance
	for after := (store.Instance{}); ; {
		page, err := s.ListLabels(t.Context(), "", after, 5)
		if err != nil {
			t.Fatal(err)
		}
		paged = append(paged, instances(page)...)
		if len(page) < 5 {
			break
		}
		after = page[4].Instance
	}
	if !slices.Equal(paged, want) {
		t.Errorf("in pages ListLabels = %v, want %v", paged, want)
	}
	page, err := s.ListLabels(t.Context(), "a-b", store.Instance{Service: "a-b", ID: "a"}, 0)
	if err != nil || !slices.Equal(instances(page), want[6:8]) {
		t.Errorf("ListLabels of a-b after a = %v, %v, want %v", instances(page), err, want[6:8])
	}
}

func labelsChangeSeesBefore(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	var seen *store.Labels
	look := func(next *store.NewLabels) store.LabelsFunc {
		return func(before *store.Labels) (*store.NewLabels, error) {
			seen = before
			return next, nil
		}
	}
	past := &store.NewLabels{Changes: routing.LabelChanges{"zone": nil}, Ends: epoch}
	first := writeLabels(t, s, one, look(past))
	if seen != nil {
		t.Errorf("the first change saw %+v, want nothing", seen)
	}
	writeLabels(t, s, one, look(past))
	if seen == nil || seen.ETag() != first.ETag() || !seen.Ended(epoch) || seen.Ended(epoch.Add(-time.Microsecond)) {
		t.Errorf("the second change saw %+v, want %+v though it has ended", seen, first)
	}
	gone := writeLabels(t, s, one, look(nil))
	if want := (store.Labels{Instance: one, Revision: 3, Nonce: head(t, s).Nonce}); !reflect.DeepEqual(gone, want) {
		t.Errorf("the delete gave %+v, want %+v", gone, want)
	}
	_, err := s.WriteLabels(t.Context(), one, author, removeLabels)
	wantError(t, err, store.ErrNoLabels)
	if h := head(t, s); h.Revision != 3 {
		t.Errorf("the head is at %v, want revision 3", h)
	}
}

func refusesInvalidLabels(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	for name, test := range map[string]struct {
		of     store.Instance
		change store.LabelsFunc
	}{
		"no label":          {one, func(*store.Labels) (*store.NewLabels, error) { return &store.NewLabels{Ends: ends}, nil }},
		"a control":         {one, putLabels("zone", "a\x00")},
		"an equals sign":    {one, putLabels("zone=a", "a")},
		"an ID with spaces": {store.Instance{Service: "svc", ID: "a b"}, putLabels("zone", "a")},
		"no service":        {store.Instance{Service: "*", ID: "a"}, putLabels("zone", "a")},
	} {
		_, err := s.WriteLabels(t.Context(), test.of, author, test.change)
		if !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: WriteLabels = %v, want ErrInvalid", name, err)
		}
	}
	if h := head(t, s); h.Revision != 0 {
		t.Errorf("the head has moved to %v", h)
	}
}

func labelsErrorStoresNothing(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	before := writeLabels(t, s, one, putLabels("zone", "a"))
	mine := errors.New("the precondition failed")
	_, err := s.WriteLabels(t.Context(), one, author, func(*store.Labels) (*store.NewLabels, error) { return nil, mine })
	if err != mine { // as it is, not wrapped
		t.Errorf("WriteLabels = %v, want %v itself", err, mine)
	}
	if l := listLabels(t, s); len(l) != 1 || l[0].ETag() != before.ETag() || head(t, s) != before.Cursor() {
		t.Errorf("the labels are %+v at %v, want %+v", l, head(t, s), before)
	}
}

// losesNoLabels lets writers read, and write only what has not changed since.
func losesNoLabels(t *testing.T, db Database) {
	const writers, each = 5, 6
	s := db.Open(t, store.Sources{})
	writeLabels(t, s, one, putLabels("n", ""))
	addOne := func() error {
		read, err := s.GetLabels(t.Context(), one)
		if err != nil {
			return err
		}
		_, err = s.WriteLabels(t.Context(), one, author, func(before *store.Labels) (*store.NewLabels, error) {
			if before.ETag() != read.ETag() {
				return nil, errChanged
			}
			return putLabels("n", *read.Changes["n"]+"i")(before)
		})
		return err
	}
	insist(t, writers, each, addOne)
	if got := *listLabels(t, s)[0].Changes["n"]; len(got) != writers*each {
		t.Errorf("%d changes are left, want %d", len(got), writers*each)
	}
}

func oneOrder(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	places := []store.Cursor{head(t, s)}
	for i := range int64(4) {
		places = append(places, cursorOf(write(t, s, "svc", put(Record("svc", i)))))
		labels := writeLabels(t, s, one, putLabels("zone", fmt.Sprint(i)))
		places = append(places, labels.Cursor())
	}
	for i, place := range places {
		if place.Revision != int64(i) {
			t.Errorf("change %d has revision %d", i, place.Revision)
		}
		got := changesAfter(t, s, place)
		wantRecords, wantLabels := 1, 1 // the last change of the record has revision 7
		if i >= 7 {
			wantRecords = 0
		}
		if i == 8 {
			wantLabels = 0
		}
		if got.Full || len(got.Records) != wantRecords || len(got.Labels) != wantLabels || got.Cursor != places[8] {
			t.Errorf("Changes(%v) = %+v, want %d record and %d labels at %v", place, got, wantRecords, wantLabels, places[8])
		}
	}
	// A pair of one history's revision and the other's nonce is none.
	if got := changesAfter(t, s, store.Cursor{Revision: 4, Nonce: places[5].Nonce}); !got.Full || len(got.Labels) != 1 || len(got.Records) != 1 {
		t.Errorf("after a pair that never was Changes = %+v, want everything", got)
	}
}

func cursorOf(s store.Stored) store.Cursor { return s.Cursor() }

func labelChangesAreCollapsed(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	svc := func(id string) store.Instance { return store.Instance{Service: "svc", ID: id} }
	for _, id := range []string{"stays", "changes", "goes", "returns"} {
		writeLabels(t, s, svc(id), putLabels("zone", "a"))
	}
	after := head(t, s)
	writeLabels(t, s, svc("changes"), putLabels("zone", "b"))
	writeLabels(t, s, svc("returns"), removeLabels)
	writeLabels(t, s, svc("comes"), putLabels("zone", "b"))
	writeLabels(t, s, svc("passes"), putLabels("zone", "b"))
	last := writeLabels(t, s, svc("changes"), putLabels("zone", "c"))
	writeLabels(t, s, svc("returns"), putLabels("zone", "c"))
	writeLabels(t, s, svc("goes"), removeLabels)
	writeLabels(t, s, svc("passes"), removeLabels)
	got := changesAfter(t, s, after)
	if got.Full || got.Records != nil || got.Deleted != nil || got.Cursor != head(t, s) {
		t.Errorf("Changes = %+v, want labels alone", got)
	}
	if want := []store.Instance{svc("changes"), svc("comes"), svc("returns")}; !slices.Equal(instances(got.Labels), want) {
		t.Fatalf("Labels = %v, want %v", instances(got.Labels), want)
	}
	if first := got.Labels[0]; first.ETag() != last.ETag() || !sameJSON(t, first.Raw, last.Raw) || first.Ends != ends {
		t.Errorf("Labels[0] = %+v, want %+v", first, last)
	}
	if want := []store.Instance{svc("goes"), svc("passes")}; !slices.Equal(got.LabelsDeleted, want) {
		t.Errorf("LabelsDeleted = %v, want %v", got.LabelsDeleted, want)
	}
	full := changesAfter(t, s, store.Cursor{})
	if !full.Full || !reflect.DeepEqual(full.Labels, listLabels(t, s)) || full.LabelsDeleted != nil {
		t.Errorf("Changes of nothing = %+v, want the table", full)
	}
}

func labelsHistoryTellsAll(t *testing.T, db Database) {
	var c clock
	s := db.Open(t, store.Sources{Now: c.now})
	first := writeLabels(t, s, one, putLabels("zone", "alice"))
	writeLabels(t, s, two, putLabels("zone", "bob"))
	c.minutes.Store(1)
	who := store.Author{Who: "ops", Why: "the lane is closed"}
	second, err := s.WriteLabels(t.Context(), one, who, removeLabels)
	if err != nil {
		t.Fatal(err)
	}
	got := labelsHistoryOf(t, s, one)
	if len(got) != 2 {
		t.Fatalf("history has %d entries, want 2: %+v", len(got), got)
	}
	document := []byte(`{"labels":{"zone":"alice","hidden":null},"ends":"2099-12-20T12:00:00.123456Z"}`)
	if !sameJSON(t, got[0].Before, document) || !sameJSON(t, got[1].After, document) {
		t.Errorf("before is %s, after was %s, want %s", got[0].Before, got[1].After, document)
	}
	got[0].Before, got[1].After = nil, nil
	want := []store.LabelsEntry{
		{Revision: 3, Nonce: second.Nonce, Instance: one, Author: who, At: epoch.Add(time.Minute)},
		{Revision: 1, Nonce: first.Nonce, Instance: one, Author: author, At: epoch},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("history without its labels is\n%+v, want\n%+v", got, want)
	}
	page, err := s.LabelsHistory(t.Context(), one, 3, 5)
	if err != nil || len(page) != 1 || page[0].Revision != 1 {
		t.Errorf("before revision 3 the history is %+v, %v, want the first change", page, err)
	}
	if len(historyOf(t, s, one.Service)) != 0 {
		t.Error("the history of the record has entries")
	}
}

// tenOfBoth makes ten changes, of a record and of labels in turn, and returns the
// eleven places between them.
func tenOfBoth(t *testing.T, s store.Store, before func(i int64)) []store.Cursor {
	t.Helper()
	places := []store.Cursor{head(t, s)}
	for i := range int64(10) {
		before(i)
		if i%2 == 0 {
			places = append(places, cursorOf(write(t, s, "svc", put(Record("svc", i)))))
			continue
		}
		l := writeLabels(t, s, one, putLabels("zone", fmt.Sprint(i)))
		places = append(places, l.Cursor())
	}
	return places
}

func pruneBoth(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	places := tenOfBoth(t, s, func(int64) {})
	prune(t, s, store.Prune{Keep: 10}, 0)
	wantFull(t, s, places, make([]bool, 11)...)
	prune(t, s, store.Prune{Keep: 3}, 7)
	wantFull(t, s, places, true, true, true, true, true, true, true, true, false, false, false)
	if r, l := len(historyOf(t, s, "svc")), len(labelsHistoryOf(t, s, one)); r != 1 || l != 2 {
		t.Errorf("%d entries of records and %d of labels are left, want 1 and 2", r, l)
	}
	prune(t, s, store.Prune{}, 3)
	if l := listLabels(t, s); len(l) != 1 {
		t.Errorf("the labels are %+v, want those that were there", l)
	}
	wantFull(t, s, places, true, true, true, true, true, true, true, true, true, true, false)
}

func pruneBothByAge(t *testing.T, db Database) {
	var c clock
	s := db.Open(t, store.Sources{Now: c.now})
	// The fourth change, of labels, came from a process whose clock is ahead.
	tenOfBoth(t, s, func(i int64) {
		c.minutes.Store(i)
		if i == 3 {
			c.minutes.Store(60 + i)
		}
	})
	prune(t, s, store.Prune{Before: epoch.Add(8 * time.Minute)}, 3)
	if l := labelsHistoryOf(t, s, one); len(l) != 4 || l[3].Revision != 4 {
		t.Errorf("the history of labels is %+v, want four entries from revision 4 on", l)
	}
}

func endedLabelsAreFound(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	for i, minutes := range []int{3, 1, 2, 4} {
		of := store.Instance{Service: "svc", ID: fmt.Sprint(i)}
		writeLabels(t, s, of, putLabelsUntil(epoch.Add(time.Duration(minutes)*time.Minute), "zone", "a"))
	}
	at := epoch.Add(3 * time.Minute)
	got, err := s.EndedLabels(t.Context(), at, 10)
	if want := []store.Instance{{Service: "svc", ID: "1"}, {Service: "svc", ID: "2"}, {Service: "svc", ID: "0"}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("EndedLabels = %v, %v, want %v", got, err, want)
	}
	if got, err := s.EndedLabels(t.Context(), at, 2); err != nil || len(got) != 2 {
		t.Errorf("EndedLabels with a limit of 2 = %v, %v", got, err)
	}
	if got, err := s.EndedLabels(t.Context(), epoch, 10); err != nil || len(got) != 0 {
		t.Errorf("EndedLabels before the first end = %v, %v, want none", got, err)
	}
}

func brokenLabelsAreSetAside(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	good := writeLabels(t, s, one, putLabels("zone", "a"))
	for _, row := range []struct{ service, instance, labels, reason string }{
		{"svc", "array", `[]`, "object"},
		{"svc", "empty", `{}`, "/labels"},
		{"svc", "number", `{"zone":1}`, "/zone"},
		{"svc", "equals", `{"a=b":"c"}`, "a=b"},
		{"svc", "with space", `{"zone":"a"}`, "names no instance"},
		{"*", "wildcard", `{"zone":"a"}`, "names no instance"},
	} {
		db.Exec(t, fmt.Sprintf(`INSERT INTO instance_labels (service, instance, labels, ends)
			VALUES ('%s', '%s', '%s', '2099-12-20T12:00:00.000000Z')`, row.service, row.instance, row.labels))
		of := store.Instance{Service: row.service, ID: row.instance}
		got, err := s.GetLabels(t.Context(), of)
		if err != nil || !strings.Contains(got.Broken, row.reason) || got.Changes != nil || !sameJSON(t, got.Raw, []byte(row.labels)) {
			t.Errorf("%s: %+v, %v, want the reason %q", row.instance, got, err, row.reason)
		}
	}
	full := changesAfter(t, s, store.Cursor{})
	if len(full.Labels) != 7 || !slices.ContainsFunc(full.Labels, func(l store.Labels) bool { return l.ETag() == good.ETag() && l.Broken == "" }) {
		t.Errorf("Changes gives %+v, want all seven", full.Labels)
	}
	writeLabels(t, s, store.Instance{Service: "svc", ID: "array"}, putLabels("zone", "a"))
	writeLabels(t, s, store.Instance{Service: "svc", ID: "with space"}, removeLabels)
	if entry := labelsHistoryOf(t, s, store.Instance{Service: "svc", ID: "array"})[0]; !sameJSON(t, entry.Before, []byte(`{"labels":[],"ends":"2099-12-20T12:00:00Z"}`)) {
		t.Errorf("before the repair was %s", entry.Before)
	}
}
