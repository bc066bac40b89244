package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"specialroutes.example/specialroutes/internal/store"
)

// Write implements store.Store.
func (s *Store) Write(ctx context.Context, service string, author store.Author, change store.ChangeFunc) (store.Stored, error) {
	if err := store.CheckText(service, author.Who, author.Why); err != nil {
		return store.Stored{}, err
	}
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	tx, err := s.writer.BeginTx(limited, nil)
	if err != nil {
		return store.Stored{}, meaning(ctx, "write", err)
	}
	// After a commit this does nothing; after a failure err says what matters.
	defer func() { _ = tx.Rollback() }()
	written, err := s.changeIn(limited, tx, service, author, change)
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return store.Stored{}, meaning(ctx, "write", err)
	}
	return written, nil
}

// changeIn makes one change in a transaction, up to its commit.
func (s *Store) changeIn(ctx context.Context, tx *sql.Tx, service string, author store.Author, change store.ChangeFunc) (store.Stored, error) {
	at, before, err := s.begin(ctx, tx, service)
	if err != nil {
		return store.Stored{}, err
	}
	record, err := change(before)
	if err != nil {
		return store.Stored{}, &ownError{err}
	}
	if record == nil && before == nil {
		return store.Stored{}, &ownError{store.ErrNotFound}
	}
	written := store.Stored{Service: service, Revision: at.Revision, Nonce: at.Nonce}
	if record != nil {
		raw, err := store.ToRow(service, record)
		if err != nil {
			return store.Stored{}, &ownError{err}
		}
		written = store.FromRow(service, at, raw)
	}
	return written, s.save(ctx, tx, before, written, author)
}

// begin moves the counter on and reads the record as it is now; nil when there is
// none.
func (s *Store) begin(ctx context.Context, tx *sql.Tx, service string) (at store.Cursor, before *store.Stored, err error) {
	err = tx.QueryRowContext(ctx, `UPDATE counter SET n = n + 1, nonce = ? RETURNING n, nonce`, s.sources.Nonce()).
		Scan(&at.Revision, &at.Nonce)
	if errors.Is(err, sql.ErrNoRows) {
		err = &ownError{fmt.Errorf("sqlite: write: %w: the counter is missing", store.ErrUnavailable)}
	}
	if err != nil {
		return store.Cursor{}, nil, err
	}
	before, err = getRecord(ctx, tx, service)
	return at, before, err
}

// save writes the record's row, or deletes it when there is nothing in it, and the
// entry in history.
func (s *Store) save(ctx context.Context, tx *sql.Tx, before *store.Stored, written store.Stored, author store.Author) error {
	var err error
	if written.Raw == nil {
		_, err = tx.ExecContext(ctx, `DELETE FROM routes WHERE service = ?`, written.Service)
	} else {
		_, err = tx.ExecContext(ctx, `
			INSERT INTO routes (service, revision, nonce, record) VALUES (?, ?, ?, ?)
			ON CONFLICT (service) DO UPDATE SET
				revision = excluded.revision, nonce = excluded.nonce, record = excluded.record`,
			written.Service, written.Revision, written.Nonce, string(written.Raw))
	}
	if err != nil {
		return err
	}
	var old []byte
	if before != nil {
		old = before.Raw
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO history (revision, nonce, service, before, after, who, why, at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		written.Revision, written.Nonce, written.Service, text(old), text(written.Raw),
		author.Who, author.Why, s.sources.Now().UTC().Format(timeLayout))
	return err
}

// text returns JSON as a parameter; none is null.
func text(raw []byte) any {
	if raw == nil {
		return nil
	}
	return string(raw)
}
