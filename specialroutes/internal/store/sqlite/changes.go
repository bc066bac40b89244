package sqlite

import (
	"context"
	"database/sql"

	"specialroutes.example/specialroutes/internal/store"
)

// Changes implements store.Store. Counter, histories and tables are read in one
// transaction, which in WAL mode sees one moment.
func (s *Store) Changes(ctx context.Context, after store.Cursor) (store.Changes, error) {
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	tx, err := s.reader.BeginTx(limited, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return store.Changes{}, meaning(ctx, "changes", err)
	}
	defer func() { _ = tx.Rollback() }() // it has changed nothing
	changes, err := store.ReadChanges(moment{limited, tx}, after)
	if err != nil {
		return store.Changes{}, meaning(ctx, "changes", err)
	}
	return changes, nil
}

// moment is what a transaction sees.
type moment struct {
	ctx context.Context //nolint:containedctx // it lives as long as the transaction
	tx  *sql.Tx
}

// Place implements store.Moment.
func (m moment) Place(after store.Cursor) (p store.Place, err error) {
	err = m.tx.QueryRowContext(m.ctx, `
		SELECT n, nonce,
			EXISTS (SELECT 1 FROM history WHERE revision = ?1 AND nonce = ?2)
			OR EXISTS (SELECT 1 FROM instance_labels_history WHERE revision = ?1 AND nonce = ?2)
			OR ?1 = 0 AND origin = ?2,
			(SELECT count(*) FROM history WHERE revision > ?1),
			(SELECT count(*) FROM instance_labels_history WHERE revision > ?1)
		FROM counter`, after.Revision, after.Nonce).
		Scan(&p.Head.Revision, &p.Head.Nonce, &p.Known, &p.Records, &p.Labels)
	return p, orNoCounter("changes", err)
}

// Records implements store.Moment.
func (m moment) Records() ([]store.Stored, error) {
	return query(m.ctx, m.tx, scanRecord, `SELECT service, revision, nonce, record FROM routes ORDER BY service`)
}

// Labels implements store.Moment.
func (m moment) Labels() ([]store.Labels, error) {
	return query(m.ctx, m.tx, scanLabels, selectLabels+` ORDER BY service, instance`)
}

// ChangedRecords implements store.Moment.
func (m moment) ChangedRecords(after int64) (records []store.Stored, deleted []string, err error) {
	_, err = query(m.ctx, m.tx, func(rows *sql.Rows) (none struct{}, err error) {
		var service string
		var revision sql.NullInt64
		var nonce sql.NullString
		var raw []byte
		switch err = rows.Scan(&service, &revision, &nonce, &raw); {
		case err != nil:
		case !revision.Valid:
			deleted = append(deleted, service)
		default:
			at := store.Cursor{Revision: revision.Int64, Nonce: nonce.String}
			records = append(records, store.FromRow(service, at, raw))
		}
		return none, err
	}, `
		SELECT changed.service, revision, nonce, record
		FROM (SELECT DISTINCT service FROM history WHERE revision > ?) AS changed
		LEFT JOIN routes USING (service) ORDER BY changed.service`, after)
	return records, deleted, err
}

// ChangedLabels implements store.Moment.
func (m moment) ChangedLabels(after int64) (labels []store.Labels, deleted []store.Instance, err error) {
	_, err = query(m.ctx, m.tx, func(rows *sql.Rows) (none struct{}, err error) {
		var of store.Instance
		var revision sql.NullInt64
		var nonce, ends sql.NullString
		var raw []byte
		switch err = rows.Scan(&of.Service, &of.ID, &revision, &nonce, &raw, &ends); {
		case err != nil:
		case !revision.Valid:
			deleted = append(deleted, of)
		default:
			at := store.Cursor{Revision: revision.Int64, Nonce: nonce.String}
			labels = append(labels, labelsOf(of, at, raw, ends.String))
		}
		return none, err
	}, `
		SELECT changed.service, changed.instance, revision, nonce, labels, ends
		FROM (SELECT DISTINCT service, instance FROM instance_labels_history WHERE revision > ?) AS changed
		LEFT JOIN instance_labels USING (service, instance) ORDER BY changed.service, changed.instance`, after)
	return labels, deleted, err
}
