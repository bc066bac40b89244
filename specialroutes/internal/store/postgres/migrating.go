package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"specialroutes.example/specialroutes/internal/store"
	"specialroutes.example/specialroutes/internal/store/schema"
)

// migrationError gives an error of a migration its meaning: a database that is away,
// or takes no writes yet, may be tried again; a step that fails, or one that is
// missing, may not.
func migrationError(ctx context.Context, err error) error {
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("postgres: migrating: %w", ctx.Err())
	case errors.Is(err, schema.ErrLocked):
		return fmt.Errorf("postgres: %w: %w", store.ErrUnavailable, err)
	case errors.As(err, &pg):
		if kind := kindOf(pg); errors.Is(kind, store.ErrUnavailable) && !isUndefined(pg) {
			return fmt.Errorf("postgres: %w: %s", kind, err)
		}
		return fmt.Errorf("postgres: %s", err)
	case isConnection(err):
		return fmt.Errorf("postgres: %w: %s", store.ErrUnavailable, err)
	default:
		return fmt.Errorf("postgres: %w", err)
	}
}

// isConnection says whether an error that is none of the server's is one of the way
// to it.
func isConnection(err error) bool {
	return errors.As(err, new(*pgconn.ConnectError)) || errors.As(err, new(net.Error)) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || pgconn.SafeToRetry(err)
}
