package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"specialroutes.example/specialroutes/internal/store"
)

// Changes implements store.Store. Counter, history and records are read in one
// REPEATABLE READ transaction: of one moment, or changes between two of the
// queries would be lost.
func (s *Store) Changes(ctx context.Context, after store.Cursor) (changes store.Changes, err error) {
	err = s.with(ctx, "changes", s.limits.Bulk, func(ctx context.Context, c *pgxpool.Conn) error {
		options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
		return pgx.BeginTxFunc(ctx, c, options, func(tx pgx.Tx) error {
			changes, err = readChanges(ctx, tx, after)
			return err
		})
	})
	return changes, err
}

func readChanges(ctx context.Context, tx pgx.Tx, after store.Cursor) (store.Changes, error) {
	var changes store.Changes
	known, err := readHead(ctx, tx, after, &changes.Cursor)
	switch {
	case err != nil || after == changes.Cursor:
		return changes, err
	case known:
		err = readDelta(ctx, tx, after, &changes)
	default:
		changes.Full = true
		changes.Records, err = collect(scanRecord)(tx.Query(ctx,
			`SELECT service, revision, nonce, record::text FROM routes ORDER BY service`))
	}
	return changes, err
}

// readHead reads the counter, and whether the cursor is a place from which all
// changes since are in history: it is one of its entries, or the place of the empty
// database, and as many entries follow as the counter has moved on. The last is not
// so when history was cut, or when a hand moved the counter after an edit.
func readHead(ctx context.Context, tx pgx.Tx, after store.Cursor, head *store.Cursor) (known bool, err error) {
	err = tx.QueryRow(ctx, `
		SELECT n, nonce,
			(EXISTS (SELECT FROM history WHERE revision = $1 AND nonce = $2) OR $1 = 0 AND origin = $2)
			AND (SELECT count(*) FROM history WHERE revision > $1) = n - $1
		FROM counter`, after.Revision, after.Nonce).Scan(&head.Revision, &head.Nonce, &known)
	return known, err
}

// readDelta reads each record that was changed after the cursor, as it is now.
func readDelta(ctx context.Context, tx pgx.Tx, after store.Cursor, changes *store.Changes) error {
	rows, err := tx.Query(ctx, `
		SELECT changed.service, revision, nonce, record::text
		FROM (SELECT DISTINCT service FROM history WHERE revision > $1) AS changed
		LEFT JOIN routes USING (service) ORDER BY changed.service`, after.Revision)
	if err != nil {
		return err
	}
	var service string
	var revision *int64
	var nonce, raw *string
	_, err = pgx.ForEachRow(rows, []any{&service, &revision, &nonce, &raw}, func() error {
		if raw == nil {
			changes.Deleted = append(changes.Deleted, service)
			return nil
		}
		at := store.Cursor{Revision: *revision, Nonce: *nonce}
		changes.Records = append(changes.Records, store.FromRow(service, at, []byte(*raw)))
		return nil
	})
	return err
}
