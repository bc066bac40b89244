package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"specialroutes.example/specialroutes/internal/store"
)

// Changes implements store.Store. Counter, history and records are read in one
// transaction, which in WAL mode sees one moment.
func (s *Store) Changes(ctx context.Context, after store.Cursor) (store.Changes, error) {
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	tx, err := s.reader.BeginTx(limited, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return store.Changes{}, meaning(ctx, "changes", err)
	}
	defer func() { _ = tx.Rollback() }() // it has changed nothing
	changes, err := readChanges(limited, tx, after)
	if err != nil {
		return store.Changes{}, meaning(ctx, "changes", err)
	}
	return changes, nil
}

func readChanges(ctx context.Context, tx *sql.Tx, after store.Cursor) (store.Changes, error) {
	var changes store.Changes
	known, err := readHead(ctx, tx, after, &changes.Cursor)
	switch {
	case err != nil || after == changes.Cursor:
		return changes, err
	case known:
		err = readDelta(ctx, tx, after, &changes)
	default:
		changes.Full = true
		changes.Records, err = queryRecords(ctx, tx,
			`SELECT service, revision, nonce, record FROM routes ORDER BY service`)
	}
	return changes, err
}

// readHead reads the counter, and whether the cursor is a place from which all
// changes since are in history: it is one of its entries, or the place of the empty
// database, and as many entries follow as the counter has moved on. The last is not
// so when history was cut, or when a hand moved the counter after an edit.
func readHead(ctx context.Context, tx *sql.Tx, after store.Cursor, head *store.Cursor) (known bool, err error) {
	err = tx.QueryRowContext(ctx, `
		SELECT n, nonce,
			(EXISTS (SELECT 1 FROM history WHERE revision = ?1 AND nonce = ?2) OR ?1 = 0 AND origin = ?2)
			AND (SELECT count(*) FROM history WHERE revision > ?1) = n - ?1
		FROM counter`, after.Revision, after.Nonce).Scan(&head.Revision, &head.Nonce, &known)
	if errors.Is(err, sql.ErrNoRows) {
		err = &ownError{fmt.Errorf("sqlite: changes: %w: the counter is missing", store.ErrUnavailable)}
	}
	return known, err
}

// readDelta reads each record that was changed after the cursor, as it is now.
func readDelta(ctx context.Context, tx *sql.Tx, after store.Cursor, changes *store.Changes) error {
	rows, err := tx.QueryContext(ctx, `
		SELECT changed.service, revision, nonce, record
		FROM (SELECT DISTINCT service FROM history WHERE revision > ?) AS changed
		LEFT JOIN routes USING (service) ORDER BY changed.service`, after.Revision)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var service string
		var revision sql.NullInt64
		var nonce sql.NullString
		var raw []byte
		if err := rows.Scan(&service, &revision, &nonce, &raw); err != nil {
			return err
		}
		if !revision.Valid {
			changes.Deleted = append(changes.Deleted, service)
			continue
		}
		at := store.Cursor{Revision: revision.Int64, Nonce: nonce.String}
		changes.Records = append(changes.Records, store.FromRow(service, at, raw))
	}
	return rows.Err()
}
