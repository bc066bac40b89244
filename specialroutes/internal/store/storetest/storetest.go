// Package storetest holds what every store.Store must do. An implementation's own
// tests call Exercise; what only one database can do is tested beside it.
package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"specialroutes.example/services/routing"
	"specialroutes.example/specialroutes/internal/store"
)

// Database is a new, empty, migrated database and the ways to reach it.
type Database struct {
	// Open opens a store on it, which is closed at the end of the test if the test
	// has not done so. When Shared is false, only one can be open at a time.
	Open func(t *testing.T, sources store.Sources) store.Store

	// Shared says that several stores can be open at once, as those of several
	// processes are.
	Shared bool

	// Exec runs SQL by hand while a store may be open.
	Exec func(t *testing.T, sql string)

	// Backup takes a copy and returns a function that puts it back in the place of
	// the database. No store is open during either.
	Backup func(t *testing.T) (restore func(t *testing.T))
}

// Exercise runs the suite. create makes a new database, which is gone after the
// test; it is called by several tests at once.
func Exercise(t *testing.T, create func(t *testing.T) Database) {
	for _, group := range []map[string]func(t *testing.T, db Database){
		records, writes, changes, history, labels, damage, gateways,
	} {
		for name, test := range group {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, create(t))
			})
		}
	}
}

// author is who makes the changes of tests that do not care.
var author = store.Author{Who: "tester", Why: "a test"}

// Record returns a valid record of a service, as of the book: so much of its weight
// of ten stays on the default.
func Record(service string, weight int64) *routing.Record {
	return &routing.Record{
		Service: service,
		Active:  new(true),
		Variants: []routing.Variant{
			{Name: "default", Weight: new(weight)},
			{Name: "alternate", Weight: new(10 - weight), Endpoint: new("http://new.example:8087")},
		},
		Default: new("default"),
	}
}

// put returns a change that stores a record whatever was there.
func put(r *routing.Record) store.ChangeFunc {
	return func(*store.Stored) (*routing.Record, error) { return r, nil }
}

// remove is a change that deletes the record.
func remove(*store.Stored) (*routing.Record, error) { return nil, nil }

// write makes a change that must succeed.
func write(t *testing.T, s store.Store, service string, change store.ChangeFunc) store.Stored {
	t.Helper()
	written, err := s.Write(t.Context(), service, author, change)
	if err != nil {
		t.Fatalf("Write(%q) = %v", service, err)
	}
	return written
}

// head returns the place of the last change.
func head(t *testing.T, s store.Store) store.Cursor {
	t.Helper()
	c, err := s.Head(t.Context())
	if err != nil {
		t.Fatalf("Head() = %v", err)
	}
	return c
}

// changesAfter returns what happened after a cursor.
func changesAfter(t *testing.T, s store.Store, after store.Cursor) store.Changes {
	t.Helper()
	c, err := s.Changes(t.Context(), after)
	if err != nil {
		t.Fatalf("Changes(%v) = %v", after, err)
	}
	return c
}

// list returns all records.
func list(t *testing.T, s store.Store) []store.Stored {
	t.Helper()
	l, err := s.List(t.Context(), "", 0)
	if err != nil {
		t.Fatalf("List() = %v", err)
	}
	return l
}

func historyOf(t *testing.T, s store.Store, service string) []store.Entry {
	t.Helper()
	l, err := s.History(t.Context(), service, 0, 0)
	if err != nil {
		t.Fatalf("History(%q) = %v", service, err)
	}
	return l
}

// wantError checks an error and that the table is as it was before.
func wantError(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("error is %v, want %v", got, want)
	}
}

// sameJSON says whether two texts mean the same. Numbers are compared as written,
// so that one which lost a digit is seen.
func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	return reflect.DeepEqual(decode(t, a), decode(t, b))
}

func decode(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return v
}

// names returns the services of records, in their order.
func names(records []store.Stored) []string {
	list := []string{}
	for _, r := range records {
		list = append(list, r.Service)
	}
	return list
}

// cancelled returns a context that is over.
func cancelled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
