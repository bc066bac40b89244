package sqlite

import (
	"context"
	"database/sql"
	"time"

	"specialroutes.example/specialroutes/internal/store"
)

// timeLayout is how times stand in the file: in UTC, with as many digits each.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// querier is what a database and a transaction have in common.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, service string) (store.Stored, error) {
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	found, err := getRecord(limited, s.reader, service)
	if err == nil && found == nil {
		return store.Stored{}, store.ErrNotFound
	}
	if err != nil {
		return store.Stored{}, meaning(ctx, "get", err)
	}
	return *found, nil
}

// getRecord returns a record, nil when there is none.
func getRecord(ctx context.Context, q querier, service string) (*store.Stored, error) {
	return first(query(ctx, q, scanRecord, `SELECT service, revision, nonce, record FROM routes WHERE service = ?`, service))
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, after string, limit int) ([]store.Stored, error) {
	if err := store.CheckText(after); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	list, err := query(limited, s.reader, scanRecord, `
		SELECT service, revision, nonce, record FROM routes
		WHERE service > ? ORDER BY service LIMIT ?`, after, orAll(limit))
	return list, meaning(ctx, "list", err)
}

// orAll returns a limit as SQLite wants it: a negative one is none.
func orAll(limit int) int {
	if limit == 0 {
		return -1
	}
	return limit
}

// Head implements store.Store.
func (s *Store) Head(ctx context.Context) (store.Cursor, error) {
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	var head store.Cursor
	err := s.reader.QueryRowContext(limited, `SELECT n, nonce FROM counter`).Scan(&head.Revision, &head.Nonce)
	return head, meaning(ctx, "head", orNoCounter("head", err))
}

// History implements store.Store.
func (s *Store) History(ctx context.Context, service string, before int64, limit int) ([]store.Entry, error) {
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	list, err := query(limited, s.reader, scanEntry, `
		SELECT revision, nonce, service, before, after, who, why, at FROM history
		WHERE service = ?1 AND (?2 = 0 OR revision < ?2)
		ORDER BY revision DESC LIMIT ?3`, service, before, orAll(limit))
	return list, meaning(ctx, "history", err)
}

// query reads all rows of a query; nil when there are none.
func query[T any](ctx context.Context, q querier, scan func(*sql.Rows) (T, error), statement string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// first returns the first row of a list, nil when there is none.
func first[T any](list []T, err error) (*T, error) {
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

func scanRecord(rows *sql.Rows) (store.Stored, error) {
	var service string
	var raw []byte
	var at store.Cursor
	if err := rows.Scan(&service, &at.Revision, &at.Nonce, &raw); err != nil {
		return store.Stored{}, err
	}
	return store.FromRow(service, at, raw), nil
}

func scanEntry(rows *sql.Rows) (store.Entry, error) {
	var e store.Entry
	var before, after []byte
	var at string
	err := rows.Scan(&e.Revision, &e.Nonce, &e.Service, &before, &after, &e.Author.Who, &e.Author.Why, &at)
	if err != nil {
		return e, err
	}
	e.Before, e.After = before, after
	e.At, err = time.Parse(timeLayout, at)
	return e, err
}
