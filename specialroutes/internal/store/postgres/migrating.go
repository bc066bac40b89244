package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"

	"specialroutes.example/specialroutes/internal/store"
	"specialroutes.example/specialroutes/internal/store/schema"
)

// migrating makes a store.ErrUnavailable of an error of a migration that another
// attempt may not meet: the server is away, or another process is at it. What a
// step itself got wrong stays as it is.
func migrating(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || !isPassing(err) {
		return err
	}
	return fmt.Errorf("postgres: migrate: %w: %w", store.ErrUnavailable, err)
}

func isPassing(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code != pgerrcode.UndefinedTable && pg.Code != pgerrcode.UndefinedColumn &&
			errors.Is(kindOf(pg), store.ErrUnavailable)
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	_, network := errors.AsType[net.Error](err)
	return connecting || network || errors.Is(err, schema.ErrLocked) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
