package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"specialroutes.example/specialroutes/internal/store"
)

// meaning translates an error into one of the store's. ctx is the caller's. The
// driver's error stays in as text alone.
func meaning(ctx context.Context, op string, err error) error {
	if own, ok := store.Own(err); ok {
		return own
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("sqlite: %s: %w", op, ctx.Err())
	}
	if kind := kindOf(err); kind != nil {
		return fmt.Errorf("sqlite: %s: %w: %s", op, kind, err)
	}
	return fmt.Errorf("sqlite: %s: %s", op, err)
}

// kindOf returns the store's error for one of the driver's; nil when there is none,
// because the statement is at fault.
func kindOf(err error) error {
	var failed *sqlite.Error
	if !errors.As(err, &failed) {
		return store.ErrUnavailable // a limit that is over, or a closed database
	}
	switch failed.Code() & primaryCode {
	case codes.SQLITE_READONLY:
		return store.ErrReadOnly
	case codes.SQLITE_TOOBIG:
		return store.ErrInvalid
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED, codes.SQLITE_INTERRUPT, codes.SQLITE_NOMEM,
		codes.SQLITE_IOERR, codes.SQLITE_FULL, codes.SQLITE_CANTOPEN, codes.SQLITE_PERM,
		codes.SQLITE_CORRUPT, codes.SQLITE_NOTADB, codes.SQLITE_PROTOCOL:
		return store.ErrUnavailable
	case codes.SQLITE_ERROR:
		if strings.Contains(failed.Error(), "no such table") || strings.Contains(failed.Error(), "no such column") ||
			strings.Contains(failed.Error(), "has no column named") { // not migrated
			return store.ErrUnavailable
		}
	}
	return nil
}

// primaryCode masks the kind in a code of SQLite's; the rest is the detail.
const primaryCode = 0xff

// openError gives an error of opening or migrating a file its meaning: one that
// another program holds may be tried again; one that is no database, or a step that
// fails, may not.
func openError(ctx context.Context, op string, err error) error {
	var failed *sqlite.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("sqlite: %s: %w", op, ctx.Err())
	case !errors.As(err, &failed):
		return fmt.Errorf("sqlite: %s: %w", op, err)
	}
	switch failed.Code() & primaryCode {
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED, codes.SQLITE_INTERRUPT:
		return fmt.Errorf("sqlite: %s: %w: %s", op, store.ErrUnavailable, err)
	}
	return fmt.Errorf("sqlite: %s: %s", op, err)
}
