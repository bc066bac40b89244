package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"specialroutes.example/specialroutes/internal/store"
)

// slowWriteError is a change that did not get its turn or its answer in time; the
// reason is as likely another writer as the connection.
type slowWriteError struct{ err error }

func (e *slowWriteError) Error() string { return e.err.Error() }
func (e *slowWriteError) Unwrap() error { return e.err }

// Write implements store.Store.
func (s *Store) Write(ctx context.Context, service string, author store.Author, change store.ChangeFunc) (written store.Stored, err error) {
	if err := store.CheckText(service, author.Who, author.Why); err != nil {
		return store.Stored{}, err
	}
	err = s.inTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		written, err = store.ChangeRecord(service, change, s.recordSteps(ctx, tx, service, author))
		return err
	})
	if err != nil {
		return store.Stored{}, err
	}
	return written, nil
}

// inTx makes one change in a transaction and commits it.
func (s *Store) inTx(ctx context.Context, change func(context.Context, pgx.Tx) error) error {
	return s.with(ctx, "write", s.limits.Write, func(ctx context.Context, c *pgxpool.Conn) error {
		// READ COMMITTED, whatever the server's default is: each statement sees what
		// was committed while the first one waited for the lock.
		tx, err := c.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
		if err != nil {
			return slow(ctx, err)
		}
		// After a commit this does nothing; after a failure err says what matters.
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
		if err = change(ctx, tx); err != nil {
			return slow(ctx, err)
		}
		return s.commit(ctx, tx)
	})
}

func slow(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &slowWriteError{err}
	}
	return err
}

// recordSteps are those of a change of a record.
func (s *Store) recordSteps(ctx context.Context, tx pgx.Tx, service string, author store.Author) store.Steps[store.Stored] {
	return store.Steps[store.Stored]{
		Begin: func() (store.Cursor, *store.Stored, error) {
			return begin(ctx, tx, s, scanRecord,
				`SELECT service, revision, nonce, record::text FROM routes WHERE service = $1`, service)
		},
		Save: func(before *store.Stored, written store.Stored) error {
			var b pgx.Batch
			if written.Raw == nil {
				b.Queue(`DELETE FROM routes WHERE service = $1`, written.Service)
			} else {
				b.Queue(`
					INSERT INTO routes (service, revision, nonce, record) VALUES ($1, $2, $3, $4::jsonb)
					ON CONFLICT (service) DO UPDATE SET
						revision = excluded.revision, nonce = excluded.nonce, record = excluded.record`,
					written.Service, written.Revision, written.Nonce, string(written.Raw))
			}
			var old []byte
			if before != nil {
				old = before.Raw
			}
			b.Queue(`
				INSERT INTO history (revision, nonce, service, before, after, who, why, at)
				VALUES ($1, $2, $3, $4::jsonb, $5::jsonb, $6, $7, $8)`,
				written.Revision, written.Nonce, written.Service, text(old), text(written.Raw),
				author.Who, author.Why, s.sources.Now().UTC())
			return tx.SendBatch(ctx, &b).Close()
		},
	}
}

// begin takes the lock that orders all writers, by moving the counter on, and reads
// the row that is to be changed as it is now; nil when there is none.
func begin[T any](ctx context.Context, tx pgx.Tx, s *Store, scan func(pgx.Row) (T, error), get string, key ...any) (at store.Cursor, before *T, err error) {
	var b pgx.Batch
	// A process that vanishes without a word must not keep the lock until the
	// server's TCP gives its connection up, after hours.
	idle := s.limits.Write + time.Second
	b.Queue(fmt.Sprintf(`SET LOCAL idle_in_transaction_session_timeout = %d`, idle.Milliseconds()))
	b.Queue(`UPDATE counter SET n = n + 1, nonce = $1 RETURNING n, nonce`, s.sources.Nonce()).
		QueryRow(func(row pgx.Row) error { return row.Scan(&at.Revision, &at.Nonce) })
	b.Queue(get, key...).QueryRow(func(row pgx.Row) error {
		found, err := scan(row)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		before = &found
		return err
	})
	err = tx.SendBatch(ctx, &b).Close()
	return at, before, err
}

// text returns JSON as a parameter; none is null.
func text(raw []byte) *string {
	if raw == nil {
		return nil
	}
	return new(string(raw))
}

// commit commits, and says so when the outcome is unknown. It does not end with the
// caller's context: somebody who has gone away is no reason to leave it open.
func (s *Store) commit(ctx context.Context, tx pgx.Tx) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.limits.Read)
	defer cancel()
	err := tx.Commit(ctx)
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgx.ErrTxCommitRollback),
		errors.As(err, &pg) && !isShutdown(pg) && !pgerrcode.IsOperatorIntervention(pg.Code):
		return err // the server says that it did not
	default:
		s.pool.Reset()
		return &store.OwnError{Err: fmt.Errorf("postgres: commit: %w: %s", store.ErrUncertain, err)}
	}
}
