package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"specialroutes.example/specialroutes/internal/store"
)

// acquireError is what went wrong before there was a connection.
type acquireError struct{ err error }

func (e *acquireError) Error() string { return "no connection: " + e.err.Error() }
func (e *acquireError) Unwrap() error { return e.err }

// meaning translates an error into one of the store's, and throws the pool's
// connections away when it shows that they are of no more use. ctx is the caller's.
// The driver's error stays in as text alone.
func (s *Store) meaning(ctx context.Context, op string, err error) error {
	var pg *pgconn.PgError
	if own, ok := store.Own(err); ok {
		return own
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("postgres: %s: %w", op, ctx.Err())
	}
	if isLost(err) {
		s.log.Warn("connections to the database are thrown away", "while", op, "error", err.Error())
		s.pool.Reset()
	}
	kind := store.ErrUnavailable
	if errors.As(err, &pg) {
		kind = kindOf(pg)
	}
	if errors.As(err, new(pgx.ScanArgError)) {
		kind = nil
	}
	if kind == nil {
		return fmt.Errorf("postgres: %s: %s", op, err)
	}
	return fmt.Errorf("postgres: %s: %w: %s", op, kind, err)
}

// isLost says whether an error tells that the pool's other connections are likely
// to be of no use either: the server ended, it became read-only, or the network
// says nothing. A wait for a free connection or for another writer does not tell.
func isLost(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, new(*acquireError)) || errors.Is(err, pgx.ErrNoRows) { // no counter row
		return false
	}
	if errors.As(err, &pg) {
		return pg.Code == pgerrcode.ReadOnlySQLTransaction || isShutdown(pg)
	}
	return !errors.As(err, new(pgx.ScanArgError)) && !errors.As(err, new(*slowWriteError))
}

// isShutdown says whether the server ends, or has ended this connection.
func isShutdown(pg *pgconn.PgError) bool {
	return pg.Code == pgerrcode.AdminShutdown || pg.Code == pgerrcode.CrashShutdown ||
		pg.Code == pgerrcode.CannotConnectNow || pgerrcode.IsConnectionException(pg.Code)
}

// kindOf returns the store's error for one of the server's; nil when there is none,
// because the statement is at fault.
func kindOf(pg *pgconn.PgError) error {
	switch code := pg.Code; {
	case code == pgerrcode.ReadOnlySQLTransaction:
		return store.ErrReadOnly
	case pgerrcode.IsDataException(code), pgerrcode.IsProgramLimitExceeded(code):
		return store.ErrInvalid // a value that it can not hold
	case pgerrcode.IsConnectionException(code), // also pgbouncer's own errors
		pgerrcode.IsInsufficientResources(code),
		pgerrcode.IsOperatorIntervention(code), // shutdown, and cancelled by a timeout
		pgerrcode.IsSystemError(code),
		pgerrcode.IsInvalidAuthorizationSpecification(code),
		pgerrcode.IsInvalidCatalogName(code),
		pgerrcode.IsTransactionRollback(code),          // deadlock with somebody else's statement
		pgerrcode.IsObjectNotInPrerequisiteState(code), // lock_timeout
		code == pgerrcode.IdleInTransactionSessionTimeout,
		isUndefined(pg): // not migrated
		return store.ErrUnavailable
	default:
		return nil
	}
}

// isUndefined says whether a table, or a part of one, is not there.
func isUndefined(pg *pgconn.PgError) bool {
	return pg.Code == pgerrcode.UndefinedTable || pg.Code == pgerrcode.UndefinedColumn
}
