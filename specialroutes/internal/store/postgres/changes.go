package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"specialroutes.example/specialroutes/internal/store"
)

// Changes implements store.Store. Counter, histories and tables are read in one
// REPEATABLE READ transaction: of one moment, or changes between two of the
// queries would be lost.
func (s *Store) Changes(ctx context.Context, after store.Cursor) (changes store.Changes, err error) {
	err = s.with(ctx, "changes", s.limits.Bulk, func(ctx context.Context, c *pgxpool.Conn) error {
		options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
		return pgx.BeginTxFunc(ctx, c, options, func(tx pgx.Tx) error {
			changes, err = store.ReadChanges(moment{ctx, tx}, after)
			return err
		})
	})
	if err != nil {
		return store.Changes{}, err
	}
	return changes, nil
}

// moment is what a transaction sees.
type moment struct {
	ctx context.Context //nolint:containedctx // it lives as long as the transaction
	tx  pgx.Tx
}

// Place implements store.Moment.
func (m moment) Place(after store.Cursor) (p store.Place, err error) {
	err = m.tx.QueryRow(m.ctx, `
		SELECT n, nonce,
			EXISTS (SELECT FROM history WHERE revision = $1 AND nonce = $2)
			OR EXISTS (SELECT FROM instance_labels_history WHERE revision = $1 AND nonce = $2)
			OR $1 = 0 AND origin = $2,
			(SELECT count(*) FROM history WHERE revision > $1),
			(SELECT count(*) FROM instance_labels_history WHERE revision > $1)
		FROM counter`, after.Revision, after.Nonce).
		Scan(&p.Head.Revision, &p.Head.Nonce, &p.Known, &p.Records, &p.Labels)
	return p, err
}

// Records implements store.Moment.
func (m moment) Records() ([]store.Stored, error) {
	return collect(scanRecord)(m.tx.Query(m.ctx,
		`SELECT service, revision, nonce, record::text FROM routes ORDER BY service`))
}

// Labels implements store.Moment.
func (m moment) Labels() ([]store.Labels, error) {
	return collect(scanLabels)(m.tx.Query(m.ctx, selectLabels+` ORDER BY service, instance`))
}

// ChangedRecords implements store.Moment.
func (m moment) ChangedRecords(after int64) (records []store.Stored, deleted []string, err error) {
	rows, err := m.tx.Query(m.ctx, `
		SELECT changed.service, revision, nonce, record::text
		FROM (SELECT DISTINCT service FROM history WHERE revision > $1) AS changed
		LEFT JOIN routes USING (service) ORDER BY changed.service`, after)
	if err != nil {
		return nil, nil, err
	}
	var service string
	var revision *int64
	var nonce, raw *string
	_, err = pgx.ForEachRow(rows, []any{&service, &revision, &nonce, &raw}, func() error {
		if raw == nil {
			deleted = append(deleted, service)
			return nil
		}
		at := store.Cursor{Revision: *revision, Nonce: *nonce}
		records = append(records, store.FromRow(service, at, []byte(*raw)))
		return nil
	})
	return records, deleted, err
}

// ChangedLabels implements store.Moment.
func (m moment) ChangedLabels(after int64) (labels []store.Labels, deleted []store.Instance, err error) {
	rows, err := m.tx.Query(m.ctx, `
		SELECT changed.service, changed.instance, revision, nonce, labels::text, ends
		FROM (SELECT DISTINCT service, instance FROM instance_labels_history WHERE revision > $1) AS changed
		LEFT JOIN instance_labels USING (service, instance) ORDER BY changed.service, changed.instance`, after)
	if err != nil {
		return nil, nil, err
	}
	var of store.Instance
	var revision *int64
	var nonce, raw *string
	var ends *time.Time
	_, err = pgx.ForEachRow(rows, []any{&of.Service, &of.ID, &revision, &nonce, &raw, &ends}, func() error {
		if raw == nil {
			deleted = append(deleted, of)
			return nil
		}
		at := store.Cursor{Revision: *revision, Nonce: *nonce}
		labels = append(labels, store.LabelsFromRow(of, at, []byte(*raw), *ends))
		return nil
	})
	return labels, deleted, err
}
