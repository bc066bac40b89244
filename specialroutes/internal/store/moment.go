package store

// Moment is a database as it is at one moment, however long it is read: what
// ReadChanges asks an implementation.
type Moment interface {
	// Place reads the counter, and how much of history lies after a cursor.
	Place(after Cursor) (Place, error)

	// Records returns all records, by service.
	Records() ([]Stored, error)

	// Labels returns all labels of instances, by service and ID.
	Labels() ([]Labels, error)

	// ChangedRecords returns the records that were changed after a revision, as they
	// are now, and the services of those that are gone, both in order.
	ChangedRecords(after int64) (records []Stored, deleted []string, err error)

	// ChangedLabels is ChangedRecords for labels of instances.
	ChangedLabels(after int64) (labels []Labels, deleted []Instance, err error)
}

// Place is what a database knows of a cursor.
type Place struct {
	Head  Cursor // of the last change
	Known bool   // the cursor is that of an entry in one of the histories, or of the empty database

	// Records and Labels are the entries with a higher revision in each history.
	Records, Labels int64
}

// follows says whether all changes since a cursor are in history: it is known there,
// and as many entries follow as the counter has moved on. The last is not so when
// history was cut, or when a hand moved the counter after an edit.
func (p Place) follows(after Cursor) bool {
	return p.Known && p.Records+p.Labels == p.Head.Revision-after.Revision
}

// ReadChanges is Store.Changes on a moment.
func ReadChanges(m Moment, after Cursor) (changes Changes, err error) {
	place, err := m.Place(after)
	if err != nil {
		return Changes{}, err
	}
	changes.Cursor = place.Head
	switch {
	case after == place.Head:
		return changes, nil
	case !place.follows(after):
		changes.Full = true
		if changes.Records, err = m.Records(); err == nil {
			changes.Labels, err = m.Labels()
		}
		return changes, err
	}
	if place.Records > 0 {
		changes.Records, changes.Deleted, err = m.ChangedRecords(after.Revision)
	}
	if err == nil && place.Labels > 0 {
		changes.Labels, changes.LabelsDeleted, err = m.ChangedLabels(after.Revision)
	}
	return changes, err
}
