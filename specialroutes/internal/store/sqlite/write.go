package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"specialroutes.example/specialroutes/internal/store"
)

// Write implements store.Store.
func (s *Store) Write(ctx context.Context, service string, author store.Author, change store.ChangeFunc) (written store.Stored, err error) {
	if err := store.CheckText(service, author.Who, author.Why); err != nil {
		return store.Stored{}, err
	}
	err = s.inTx(ctx, "write", func(ctx context.Context, tx *sql.Tx) error {
		written, err = store.ChangeRecord(service, change, s.recordSteps(ctx, tx, service, author))
		return err
	})
	if err != nil {
		return store.Stored{}, err
	}
	return written, nil
}

// inTx makes a change in a transaction and commits it; op names the deed.
func (s *Store) inTx(ctx context.Context, op string, change func(context.Context, *sql.Tx) error) error {
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	tx, err := s.writer.BeginTx(limited, nil)
	if err != nil {
		return meaning(ctx, op, err)
	}
	// After a commit this does nothing; after a failure err says what matters.
	defer func() { _ = tx.Rollback() }()
	if err = change(limited, tx); err == nil {
		err = tx.Commit()
	}
	return meaning(ctx, op, err)
}

// recordSteps are those of a change of a record.
func (s *Store) recordSteps(ctx context.Context, tx *sql.Tx, service string, author store.Author) store.Steps[store.Stored] {
	return store.Steps[store.Stored]{
		Begin: func() (at store.Cursor, before *store.Stored, err error) {
			if at, err = s.begin(ctx, tx); err == nil {
				before, err = getRecord(ctx, tx, service)
			}
			return at, before, err
		},
		Save: func(before *store.Stored, written store.Stored) error {
			var old []byte
			if before != nil {
				old = before.Raw
			}
			if written.Raw == nil {
				if _, err := tx.ExecContext(ctx, `DELETE FROM routes WHERE service = ?`, service); err != nil {
					return err
				}
			} else if _, err := tx.ExecContext(ctx, `
				INSERT INTO routes (service, revision, nonce, record) VALUES (?, ?, ?, ?)
				ON CONFLICT (service) DO UPDATE SET
					revision = excluded.revision, nonce = excluded.nonce, record = excluded.record`,
				service, written.Revision, written.Nonce, string(written.Raw)); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, `
				INSERT INTO history (revision, nonce, service, before, after, who, why, at)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
				written.Revision, written.Nonce, service, text(old), text(written.Raw),
				author.Who, author.Why, s.sources.Now().UTC().Format(timeLayout))
			return err
		},
	}
}

// begin moves the counter on.
func (s *Store) begin(ctx context.Context, tx *sql.Tx) (at store.Cursor, err error) {
	err = tx.QueryRowContext(ctx, `UPDATE counter SET n = n + 1, nonce = ? RETURNING n, nonce`, s.sources.Nonce()).
		Scan(&at.Revision, &at.Nonce)
	return at, orNoCounter("write", err)
}

// orNoCounter returns the error of a query for the counter's row; without the row the
// database is of no use.
func orNoCounter(op string, err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return &store.OwnError{Err: fmt.Errorf("sqlite: %s: %w: the counter is missing", op, store.ErrUnavailable)}
	}
	return err
}

// text returns JSON as a parameter; none is null.
func text(raw []byte) any {
	if raw == nil {
		return nil
	}
	return string(raw)
}
