package store

import (
	"errors"

	"specialroutes.example/services/routing"
)

// This file is what the implementations share of a change: its order, whatever is
// changed and wherever it is stored.

// OwnError carries an error of the store's own, or of the function that decides about
// a change, past what gives the database's errors their meaning.
type OwnError struct{ Err error }

func (e *OwnError) Error() string { return e.Err.Error() }

// Own returns the error that err carries as an OwnError; false when it carries none.
func Own(err error) (error, bool) {
	var own *OwnError
	if errors.As(err, &own) {
		return own.Err, true
	}
	return nil, false
}

// Steps are the two dealings with the database, in one transaction, that a change of
// a row of type T is made of.
type Steps[T any] struct {
	// Begin moves the counter on, which is the right to write, and reads the row as
	// it is now; nil when there is none.
	Begin func() (at Cursor, before *T, err error)

	// Save puts the row there, or takes it away when its Raw is nil, and adds the entry
	// to history.
	Save func(before *T, written T) error
}

// ChangeRecord makes one change of a record in a transaction, up to its commit.
func ChangeRecord(service string, decide ChangeFunc, steps Steps[Stored]) (Stored, error) {
	return change(steps, decide, ErrNotFound, func(at Cursor, next *routing.Record) (Stored, error) {
		return recordRow(service, at, next)
	})
}

// ChangeLabels is ChangeRecord for the labels of an instance.
func ChangeLabels(of Instance, decide LabelsFunc, steps Steps[Labels]) (Labels, error) {
	return change(steps, decide, ErrNoLabels, func(at Cursor, next *NewLabels) (Labels, error) {
		return labelsRow(of, at, next)
	})
}

// change has the new value D of a row T decided, makes the row of it, and saves it.
// missing is the error of deleting what is not there.
func change[T, D any, F ~func(*T) (*D, error)](steps Steps[T], decide F, missing error, row func(Cursor, *D) (T, error)) (none T, err error) {
	at, before, err := steps.Begin()
	if err != nil {
		return none, err
	}
	next, err := decide(before)
	if err == nil && next == nil && before == nil {
		err = missing
	}
	if err != nil {
		return none, &OwnError{err}
	}
	written, err := row(at, next)
	if err != nil {
		return none, &OwnError{err}
	}
	return written, steps.Save(before, written)
}
