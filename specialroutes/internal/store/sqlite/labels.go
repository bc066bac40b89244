package sqlite

import (
	"context"
	"database/sql"
	"time"

	"specialroutes.example/specialroutes/internal/store"
)

// selectLabels is what scanLabels reads.
const selectLabels = `SELECT service, instance, revision, nonce, labels, ends FROM instance_labels`

// GetLabels implements store.InstanceLabels.
func (s *Store) GetLabels(ctx context.Context, of store.Instance) (store.Labels, error) {
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	found, err := getLabels(limited, s.reader, of)
	if err == nil && found == nil {
		return store.Labels{}, store.ErrNoLabels
	}
	if err != nil {
		return store.Labels{}, meaning(ctx, "get labels", err)
	}
	return *found, nil
}

// getLabels returns the labels of an instance, nil when there are none.
func getLabels(ctx context.Context, q querier, of store.Instance) (*store.Labels, error) {
	return first(query(ctx, q, scanLabels, selectLabels+` WHERE service = ? AND instance = ?`, of.Service, of.ID))
}

// ListLabels implements store.InstanceLabels.
func (s *Store) ListLabels(ctx context.Context, service string, after store.Instance, limit int) ([]store.Labels, error) {
	if err := store.CheckText(service, after.Service, after.ID); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	list, err := query(limited, s.reader, scanLabels, selectLabels+`
		WHERE (service, instance) > (?1, ?2) AND (?3 = '' OR service = ?3)
		ORDER BY service, instance LIMIT ?4`, after.Service, after.ID, service, orAll(limit))
	return list, meaning(ctx, "list labels", err)
}

// WriteLabels implements store.InstanceLabels.
func (s *Store) WriteLabels(ctx context.Context, of store.Instance, author store.Author, change store.LabelsFunc) (written store.Labels, err error) {
	if err := store.CheckText(of.Service, of.ID, author.Who, author.Why); err != nil {
		return store.Labels{}, err
	}
	err = s.inTx(ctx, "write", func(ctx context.Context, tx *sql.Tx) error {
		written, err = store.ChangeLabels(of, change, s.labelsSteps(ctx, tx, of, author))
		return err
	})
	if err != nil {
		return store.Labels{}, err
	}
	return written, nil
}

// labelsSteps are those of a change of an instance's labels.
func (s *Store) labelsSteps(ctx context.Context, tx *sql.Tx, of store.Instance, author store.Author) store.Steps[store.Labels] {
	return store.Steps[store.Labels]{
		Begin: func() (at store.Cursor, before *store.Labels, err error) {
			if at, err = s.begin(ctx, tx); err == nil {
				before, err = getLabels(ctx, tx, of)
			}
			return at, before, err
		},
		Save: func(before *store.Labels, written store.Labels) error {
			if written.Raw == nil {
				if _, err := tx.ExecContext(ctx, `DELETE FROM instance_labels WHERE service = ? AND instance = ?`, of.Service, of.ID); err != nil {
					return err
				}
			} else if _, err := tx.ExecContext(ctx, `
				INSERT INTO instance_labels (service, instance, revision, nonce, labels, ends) VALUES (?, ?, ?, ?, ?, ?)
				ON CONFLICT (service, instance) DO UPDATE SET revision = excluded.revision,
					nonce = excluded.nonce, labels = excluded.labels, ends = excluded.ends`,
				of.Service, of.ID, written.Revision, written.Nonce, string(written.Raw), written.Ends.Format(timeLayout)); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, `
				INSERT INTO instance_labels_history (revision, nonce, service, instance, before, after, who, why, at)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
				written.Revision, written.Nonce, of.Service, of.ID, text(before.Document()), text(written.Document()),
				author.Who, author.Why, s.sources.Now().UTC().Format(timeLayout))
			return err
		},
	}
}

// LabelsHistory implements store.InstanceLabels.
func (s *Store) LabelsHistory(ctx context.Context, of store.Instance, before int64, limit int) ([]store.LabelsEntry, error) {
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	list, err := query(limited, s.reader, scanLabelsEntry, `
		SELECT revision, nonce, service, instance, before, after, who, why, at FROM instance_labels_history
		WHERE service = ?1 AND instance = ?2 AND (?3 = 0 OR revision < ?3)
		ORDER BY revision DESC LIMIT ?4`, of.Service, of.ID, before, orAll(limit))
	return list, meaning(ctx, "history of labels", err)
}

// EndedLabels implements store.InstanceLabels.
func (s *Store) EndedLabels(ctx context.Context, at time.Time, limit int) ([]store.Instance, error) {
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	list, err := query(limited, s.reader, scanInstance, `
		SELECT service, instance FROM instance_labels
		WHERE ends <= ? ORDER BY ends LIMIT ?`, at.UTC().Format(timeLayout), orAll(limit))
	return list, meaning(ctx, "ended labels", err)
}

func scanInstance(rows *sql.Rows) (of store.Instance, err error) {
	err = rows.Scan(&of.Service, &of.ID)
	return of, err
}

func scanLabels(rows *sql.Rows) (store.Labels, error) {
	var of store.Instance
	var at store.Cursor
	var raw []byte
	var ends string
	if err := rows.Scan(&of.Service, &of.ID, &at.Revision, &at.Nonce, &raw, &ends); err != nil {
		return store.Labels{}, err
	}
	return labelsOf(of, at, raw, ends), nil
}

// labelsOf makes labels of a row. An end that somebody wrote by hand so that it is no
// time is the zero time, long ago: one such row must not keep the others from being
// read.
func labelsOf(of store.Instance, at store.Cursor, raw []byte, ends string) store.Labels {
	end, _ := time.Parse(timeLayout, ends)
	return store.LabelsFromRow(of, at, raw, end)
}

func scanLabelsEntry(rows *sql.Rows) (store.LabelsEntry, error) {
	var e store.LabelsEntry
	var before, after []byte
	var at string
	err := rows.Scan(&e.Revision, &e.Nonce, &e.Instance.Service, &e.Instance.ID, &before, &after, &e.Author.Who, &e.Author.Why, &at)
	if err != nil {
		return e, err
	}
	e.Before, e.After = before, after
	e.At, err = time.Parse(timeLayout, at)
	return e, err
}
