package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"specialroutes.example/specialroutes/internal/store"
)

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, service string) (found store.Stored, err error) {
	if store.CheckText(service) != nil {
		return store.Stored{}, store.ErrNotFound
	}
	err = s.with(ctx, "get", s.limits.Read, func(ctx context.Context, c *pgxpool.Conn) error {
		row := c.QueryRow(ctx, `SELECT service, revision, nonce, record::text FROM routes WHERE service = $1`, service)
		found, err = scanRecord(row)
		return orMissing(err, store.ErrNotFound)
	})
	return found, err
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, after string, limit int) (list []store.Stored, err error) {
	if err := store.CheckText(after); err != nil {
		return nil, err
	}
	err = s.with(ctx, "list", s.limits.Bulk, func(ctx context.Context, c *pgxpool.Conn) error {
		list, err = collect(scanRecord)(c.Query(ctx, `
			SELECT service, revision, nonce, record::text FROM routes
			WHERE service > $1 ORDER BY service LIMIT NULLIF($2::bigint, 0)`, after, limit))
		return err
	})
	return list, err
}

// Head implements store.Store.
func (s *Store) Head(ctx context.Context) (head store.Cursor, err error) {
	err = s.with(ctx, "head", s.limits.Read, func(ctx context.Context, c *pgxpool.Conn) error {
		return c.QueryRow(ctx, `SELECT n, nonce FROM counter`).Scan(&head.Revision, &head.Nonce)
	})
	return head, err
}

// History implements store.Store.
func (s *Store) History(ctx context.Context, service string, before int64, limit int) (list []store.Entry, err error) {
	if store.CheckText(service) != nil {
		return nil, nil
	}
	err = s.with(ctx, "history", s.limits.Bulk, func(ctx context.Context, c *pgxpool.Conn) error {
		list, err = collect(scanEntry)(c.Query(ctx, `
			SELECT revision, nonce, service, before::text, after::text, who, why, at FROM history
			WHERE service = $1 AND ($2::bigint = 0 OR revision < $2)
			ORDER BY revision DESC LIMIT NULLIF($3::bigint, 0)`, service, before, limit))
		return err
	})
	return list, err
}

// orMissing returns the error of a query for one row; missing when there is none.
func orMissing(err, missing error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return &store.OwnError{Err: missing}
	}
	return err
}

// collect makes a function that reads all rows of a query; nil when there are none.
func collect[T any](scan func(pgx.Row) (T, error)) func(pgx.Rows, error) ([]T, error) {
	return func(rows pgx.Rows, err error) ([]T, error) {
		if err != nil {
			return nil, err
		}
		var none []T
		return pgx.AppendRows(none, rows, func(row pgx.CollectableRow) (T, error) { return scan(row) })
	}
}

func scanRecord(row pgx.Row) (store.Stored, error) {
	var service, raw string
	var at store.Cursor
	if err := row.Scan(&service, &at.Revision, &at.Nonce, &raw); err != nil {
		return store.Stored{}, err
	}
	return store.FromRow(service, at, []byte(raw)), nil
}

func scanEntry(row pgx.Row) (store.Entry, error) {
	var e store.Entry
	var before, after *string
	err := row.Scan(&e.Revision, &e.Nonce, &e.Service, &before, &after, &e.Author.Who, &e.Author.Why, &e.At)
	e.Before, e.After = document(before), document(after)
	e.At = e.At.UTC()
	return e, err
}
