// Package store is the port behind which specialroutes keeps its route records and
// what operators say about labels of instances, with the history of both and the
// counter that orders all changes. It knows no
// database: packages postgres and sqlite implement it, and storetest.Exercise is
// what both of them, and any further one, must pass.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"specialroutes.example/services/routing"
)

// The errors of a store. They are matched with errors.Is; the text of the
// database's own error follows them and belongs into the log, not to a client.
var (
	// ErrNotFound: there is no record of that service.
	ErrNotFound = errors.New("no such record")

	// ErrNoLabels: nothing is said about the labels of that instance.
	ErrNoLabels = errors.New("no labels of such an instance")

	// ErrInvalid: the record handed to Write can not be stored, because it breaks
	// the rules of record.md or holds a character that a database refuses (NUL).
	ErrInvalid = errors.New("the record cannot be stored")

	// ErrUnavailable: the database cannot be reached, has no free connection or
	// did not answer in time. Nothing is known about the records; trying again
	// later may help. Nothing was stored, unless it is ErrUncertain.
	ErrUnavailable = errors.New("the database is not available")

	// ErrReadOnly: the database answers but takes no writes, as during a failover.
	// It is an ErrUnavailable.
	ErrReadOnly = fmt.Errorf("%w: it accepts no writes", ErrUnavailable)

	// ErrUncertain: the connection was lost while a write was being committed, so
	// that it may or may not have been stored. It is an ErrUnavailable.
	ErrUncertain = fmt.Errorf("%w: the write may or may not have been stored", ErrUnavailable)
)

// Stored is one route record as the store holds it.
type Stored struct {
	Service  string
	Revision int64  // of the last change of this record
	Nonce    string // of the same change

	// Raw is the record's JSON. It is always valid JSON, also when Broken is set;
	// nil when what the database holds is not even that, and after a delete.
	Raw json.RawMessage

	// Record is Raw, decoded; nil when Broken is set, and after a delete.
	Record *routing.Record

	// Broken says why Raw may not be used: the row was written by hand, or by a
	// newer version. "" when there is nothing wrong.
	Broken string
}

// Cursor returns the place of the record's last change in the order of changes.
func (s *Stored) Cursor() Cursor { return Cursor{Revision: s.Revision, Nonce: s.Nonce} }

// ETag returns the record's entity tag; see Cursor.ETag.
func (s *Stored) ETag() string { return s.Cursor().ETag() }

// Author says who makes a change, and why. Both are kept in history as they are.
type Author struct {
	Who string // the name of the token
	Why string // may be empty
}

// Changes is what happened after a cursor.
type Changes struct {
	// Cursor is the place that the answer brings its reader to.
	Cursor Cursor

	// Full means that Records and Labels are the whole tables and replace all that the
	// reader holds, also when Cursor is at a lower revision than his own. Deleted and
	// LabelsDeleted are empty then.
	Full bool

	// Records are the records that were written and still exist, once each, by
	// service name. Some may be Broken.
	Records []Stored

	// Deleted names the services whose record is gone, in order.
	Deleted []string

	// Labels are the labels of instances that were written and still exist, once each,
	// by service and ID. Some may be broken, and some may have ended.
	Labels []Labels

	// LabelsDeleted names the instances whose labels are gone, in order.
	LabelsDeleted []Instance
}

// Entry is one change in a record's history.
type Entry struct {
	Revision int64
	Nonce    string
	Service  string
	Before   json.RawMessage // nil: there was none
	After    json.RawMessage // nil: the record was deleted
	Author   Author
	At       time.Time // UTC, to the microsecond
}

// Prune says how much history to cut, of records and of labels together. An entry
// goes when it is older than Before and not among the Keep newest; the zero value of
// either does not protect anything. What goes is always the oldest part without a
// gap, because readers of Changes rely on that.
type Prune struct {
	Before time.Time // the zero time: age does not protect
	Keep   int64     // 0: number does not protect
}

// ChangeFunc decides about a change while it holds the only right to write. It is
// given the record as it is now, nil when there is none, and returns the record
// that shall replace it, nil to delete it. What it is given it may read but not
// modify. It is called at most once per Write, must be quick and must not use the
// store. An error stores nothing and is what Write returns.
type ChangeFunc func(before *Stored) (after *routing.Record, err error)

// Tables is a query for one row, the counter's, that fails when a table, or a column,
// is missing that the implementations use: what Ping asks. It reads no other row.
const Tables = `
	SELECT n,
		(SELECT count(*) FROM (SELECT record FROM routes LIMIT 0) AS a),
		(SELECT count(*) FROM (SELECT after FROM history LIMIT 0) AS b),
		(SELECT count(*) FROM (SELECT ends FROM instance_labels LIMIT 0) AS c),
		(SELECT count(*) FROM (SELECT after FROM instance_labels_history LIMIT 0) AS d),
		(SELECT count(*) FROM (SELECT follows, left_at FROM gateways LIMIT 0) AS e)
	FROM counter`

// Store keeps route records. Implementations are safe for concurrent use. Every
// method ends when its context does, with the context's error; a store that does
// not answer within its own limits gives ErrUnavailable.
type Store interface {
	// Get returns the record of a service, or ErrNotFound. A broken record is
	// returned with its reason, without error.
	Get(ctx context.Context, service string) (Stored, error)

	// List returns up to limit records whose service name sorts after the given
	// one, ordered by the bytes of the name; limit 0 means all. A broken record is
	// among them with its reason.
	List(ctx context.Context, after string, limit int) ([]Stored, error)

	// Write makes one change in one transaction: it moves the counter on, which
	// orders all writers, calls change, and stores what that returned together with
	// its entry in history. It returns the record as it is now; after a delete only
	// Service, Revision and Nonce are set. Deleting what is not there gives
	// ErrNotFound; a record that names another service, or is not valid, ErrInvalid.
	Write(ctx context.Context, service string, author Author, change ChangeFunc) (Stored, error)

	// Head returns the place of the last change. It reads one row.
	Head(ctx context.Context) (Cursor, error)

	// Changes returns what happened after a cursor, as of one moment. The answer is
	// full when the cursor is zero or is not a place in this database's history,
	// because that was cut, or the database was restored or replaced.
	Changes(ctx context.Context, after Cursor) (Changes, error)

	// History returns up to limit changes of a service's record, newest first, that
	// lie before a revision; 0 means from the newest on, limit 0 means all. A
	// service that never had a record has an empty history.
	History(ctx context.Context, service string, before int64, limit int) ([]Entry, error)

	// Prune cuts history and returns the number of entries removed. Records and the
	// counter stay; a reader whose place was cut gets a full answer.
	Prune(ctx context.Context, p Prune) (int64, error)

	InstanceLabels
	Gateways

	// Ping asks whether the database answers and holds the tables, those of the newest
	// step too.
	Ping(ctx context.Context) error

	// Close releases all connections. Calls that are under way may fail.
	Close() error
}
