package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"specialroutes.example/services/routing"
	"specialroutes.example/services/strictjson"
)

// Instance names one instance of a service.
type Instance struct{ Service, ID string }

// Name is both, as service/ID. A service has no slash, an ID may.
func (i Instance) Name() string { return i.Service + "/" + i.ID }

// Labels is what an operator says about the labels of an instance, as the store
// holds it.
type Labels struct {
	Instance
	Revision int64  // of the last change of these labels
	Nonce    string // of the same change

	// Raw is the changes as JSON; nil when what the database holds is not even that,
	// and after a delete.
	Raw json.RawMessage

	// Changes is Raw, decoded; nil when Broken is set, and after a delete.
	Changes routing.LabelChanges

	// Ends is the moment from which on they do not hold, in UTC, to the microsecond.
	// A row stays until EndedLabels has told of it and somebody deletes it: whoever
	// reads asks Ended.
	Ends time.Time

	// Broken says why Raw may not be used, as in Stored.
	Broken string
}

// Cursor returns the place of the last change in the order of all changes.
func (l *Labels) Cursor() Cursor { return Cursor{Revision: l.Revision, Nonce: l.Nonce} }

// ETag returns the entity tag; see Cursor.ETag.
func (l *Labels) ETag() string { return l.Cursor().ETag() }

// Ended says whether the labels no longer hold at a moment.
func (l *Labels) Ended(now time.Time) bool { return !l.Ends.After(now) }

// NewLabels is what shall be stored for an instance.
type NewLabels struct {
	Changes routing.LabelChanges
	Ends    time.Time
}

// LabelsFunc is the ChangeFunc of an instance's labels: nil deletes them. before may
// have ended.
type LabelsFunc func(before *Labels) (after *NewLabels, err error)

// LabelsEntry is one change in the history of an instance's labels. Before and After
// are documents as routing.InstanceLabels.
type LabelsEntry struct {
	Revision int64
	Nonce    string
	Instance Instance
	Before   json.RawMessage // nil: there was none
	After    json.RawMessage // nil: the labels were deleted
	Author   Author
	At       time.Time // UTC, to the microsecond
}

// InstanceLabels keeps what operators say about labels of instances. It is a part of
// every Store: its changes have their place in the one order with those of records,
// are told by Changes with them, and cut by Prune with them.
type InstanceLabels interface {
	// GetLabels returns the labels of an instance, or ErrNoLabels; ended and broken
	// ones too.
	GetLabels(ctx context.Context, of Instance) (Labels, error)

	// ListLabels returns up to limit labels of instances that sort after the given
	// one, by service and then by ID; limit 0 means all. A service other than "" has
	// those of others left out. Ended and broken ones are among them.
	ListLabels(ctx context.Context, service string, after Instance, limit int) ([]Labels, error)

	// WriteLabels is Write for the labels of an instance. Deleting what is not there
	// gives ErrNoLabels; what is not valid ErrInvalid.
	WriteLabels(ctx context.Context, of Instance, author Author, change LabelsFunc) (Labels, error)

	// LabelsHistory is History for the labels of an instance.
	LabelsHistory(ctx context.Context, of Instance, before int64, limit int) ([]LabelsEntry, error)

	// EndedLabels returns up to limit instances whose labels end at or before a
	// moment, those that ended first before others.
	EndedLabels(ctx context.Context, at time.Time, limit int) ([]Instance, error)
}

// LabelsFromRow makes labels of what a database holds. It never fails: what may not
// be used is Broken.
func LabelsFromRow(of Instance, at Cursor, raw []byte, ends time.Time) Labels {
	l := Labels{Instance: of, Revision: at.Revision, Nonce: at.Nonce, Ends: ends.UTC()}
	if !json.Valid(raw) {
		l.Broken = "it is not JSON"
		return l
	}
	l.Raw = bytes.Clone(raw)
	var changes routing.LabelChanges
	if err := strictjson.Decode(raw, &changes); err != nil {
		l.Broken = err.Error()
		return l
	}
	if err := checkLabels(of, changes); err != nil {
		l.Broken = err.Error()
		return l
	}
	l.Changes = changes
	return l
}

func checkLabels(of Instance, changes routing.LabelChanges) error {
	if of.Service == routing.Wildcard || !routing.ValidService(of.Service) || !routing.ValidInstance(of.ID) {
		return fmt.Errorf("%q of %q names no instance", of.ID, of.Service)
	}
	return changes.Validate().Err()
}

// labelsRow makes the labels that a change stores; without new ones they are those
// of a deleted row. The error is ErrInvalid.
func labelsRow(of Instance, at Cursor, next *NewLabels) (Labels, error) {
	if next == nil {
		return Labels{Instance: of, Revision: at.Revision, Nonce: at.Nonce}, nil
	}
	if err := checkLabels(of, next.Changes); err != nil {
		return Labels{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	raw, err := json.Marshal(next.Changes)
	if err != nil {
		return Labels{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return LabelsFromRow(of, at, raw, next.Ends.Truncate(time.Microsecond)), nil
}

// Document returns the labels as history keeps them; nil when there are none.
func (l *Labels) Document() json.RawMessage {
	if l == nil || l.Raw == nil {
		return nil
	}
	document, err := json.Marshal(struct {
		Labels json.RawMessage `json:"labels"`
		Ends   time.Time       `json:"ends"`
	}{l.Raw, l.Ends})
	if err != nil { // Raw is JSON, and a column of the database holds no year 10000
		return nil
	}
	return document
}
