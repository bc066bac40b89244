package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"specialroutes.example/specialroutes/internal/store"
)

// selectLabels is what scanLabels reads.
const selectLabels = `SELECT service, instance, revision, nonce, labels::text, ends FROM instance_labels`

// GetLabels implements store.InstanceLabels.
func (s *Store) GetLabels(ctx context.Context, of store.Instance) (found store.Labels, err error) {
	if store.CheckText(of.Service, of.ID) != nil {
		return store.Labels{}, store.ErrNoLabels
	}
	err = s.with(ctx, "get labels", s.limits.Read, func(ctx context.Context, c *pgxpool.Conn) error {
		found, err = scanLabels(c.QueryRow(ctx, selectLabels+` WHERE service = $1 AND instance = $2`, of.Service, of.ID))
		return orMissing(err, store.ErrNoLabels)
	})
	return found, err
}

// ListLabels implements store.InstanceLabels.
func (s *Store) ListLabels(ctx context.Context, service string, after store.Instance, limit int) (list []store.Labels, err error) {
	if err := store.CheckText(service, after.Service, after.ID); err != nil {
		return nil, err
	}
	err = s.with(ctx, "list labels", s.limits.Bulk, func(ctx context.Context, c *pgxpool.Conn) error {
		list, err = collect(scanLabels)(c.Query(ctx, selectLabels+`
			WHERE (service, instance) > ($1, $2) AND ($3::text = '' OR service = $3)
			ORDER BY service, instance LIMIT NULLIF($4::bigint, 0)`, after.Service, after.ID, service, limit))
		return err
	})
	return list, err
}

// WriteLabels implements store.InstanceLabels.
func (s *Store) WriteLabels(ctx context.Context, of store.Instance, author store.Author, change store.LabelsFunc) (written store.Labels, err error) {
	if err := store.CheckText(of.Service, of.ID, author.Who, author.Why); err != nil {
		return store.Labels{}, err
	}
	err = s.inTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		written, err = store.ChangeLabels(of, change, s.labelsSteps(ctx, tx, of, author))
		return err
	})
	if err != nil {
		return store.Labels{}, err
	}
	return written, nil
}

// labelsSteps are those of a change of an instance's labels.
func (s *Store) labelsSteps(ctx context.Context, tx pgx.Tx, of store.Instance, author store.Author) store.Steps[store.Labels] {
	return store.Steps[store.Labels]{
		Begin: func() (store.Cursor, *store.Labels, error) {
			return begin(ctx, tx, s, scanLabels, selectLabels+` WHERE service = $1 AND instance = $2`, of.Service, of.ID)
		},
		Save: func(before *store.Labels, written store.Labels) error {
			var b pgx.Batch
			if written.Raw == nil {
				b.Queue(`DELETE FROM instance_labels WHERE service = $1 AND instance = $2`, of.Service, of.ID)
			} else {
				b.Queue(`
					INSERT INTO instance_labels (service, instance, revision, nonce, labels, ends)
					VALUES ($1, $2, $3, $4, $5::jsonb, $6)
					ON CONFLICT (service, instance) DO UPDATE SET revision = excluded.revision,
						nonce = excluded.nonce, labels = excluded.labels, ends = excluded.ends`,
					of.Service, of.ID, written.Revision, written.Nonce, string(written.Raw), written.Ends)
			}
			b.Queue(`
				INSERT INTO instance_labels_history (revision, nonce, service, instance, before, after, who, why, at)
				VALUES ($1, $2, $3, $4, $5::jsonb, $6::jsonb, $7, $8, $9)`,
				written.Revision, written.Nonce, of.Service, of.ID, text(before.Document()), text(written.Document()),
				author.Who, author.Why, s.sources.Now().UTC())
			return tx.SendBatch(ctx, &b).Close()
		},
	}
}

// LabelsHistory implements store.InstanceLabels.
func (s *Store) LabelsHistory(ctx context.Context, of store.Instance, before int64, limit int) (list []store.LabelsEntry, err error) {
	if store.CheckText(of.Service, of.ID) != nil {
		return nil, nil
	}
	err = s.with(ctx, "history of labels", s.limits.Bulk, func(ctx context.Context, c *pgxpool.Conn) error {
		list, err = collect(scanLabelsEntry)(c.Query(ctx, `
			SELECT revision, nonce, service, instance, before::text, after::text, who, why, at
			FROM instance_labels_history
			WHERE service = $1 AND instance = $2 AND ($3::bigint = 0 OR revision < $3)
			ORDER BY revision DESC LIMIT NULLIF($4::bigint, 0)`, of.Service, of.ID, before, limit))
		return err
	})
	return list, err
}

// EndedLabels implements store.InstanceLabels.
func (s *Store) EndedLabels(ctx context.Context, at time.Time, limit int) (list []store.Instance, err error) {
	err = s.with(ctx, "ended labels", s.limits.Read, func(ctx context.Context, c *pgxpool.Conn) error {
		list, err = collect(scanInstance)(c.Query(ctx, `
			SELECT service, instance FROM instance_labels
			WHERE ends <= $1 ORDER BY ends LIMIT NULLIF($2::bigint, 0)`, at, limit))
		return err
	})
	return list, err
}

func scanInstance(row pgx.Row) (of store.Instance, err error) {
	err = row.Scan(&of.Service, &of.ID)
	return of, err
}

func scanLabels(row pgx.Row) (store.Labels, error) {
	var of store.Instance
	var at store.Cursor
	var raw string
	var ends time.Time
	if err := row.Scan(&of.Service, &of.ID, &at.Revision, &at.Nonce, &raw, &ends); err != nil {
		return store.Labels{}, err
	}
	return store.LabelsFromRow(of, at, []byte(raw), ends), nil
}

func scanLabelsEntry(row pgx.Row) (store.LabelsEntry, error) {
	var e store.LabelsEntry
	var before, after *string
	err := row.Scan(&e.Revision, &e.Nonce, &e.Instance.Service, &e.Instance.ID, &before, &after, &e.Author.Who, &e.Author.Why, &e.At)
	e.Before, e.After = document(before), document(after)
	e.At = e.At.UTC()
	return e, err
}

// document returns JSON that was read; null is none.
func document(text *string) []byte {
	if text == nil {
		return nil
	}
	return []byte(*text)
}
