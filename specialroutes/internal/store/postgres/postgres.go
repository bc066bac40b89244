// Package postgres keeps route records in PostgreSQL, version 13 or later. Several
// processes may work on one database.
//
// It works through pgbouncer in transaction mode: it does not LISTEN, prepares no
// statements, and leaves nothing in a session. Its queries go by the extended
// protocol with their parameters apart (pgx.QueryExecModeExec): one round trip
// each, where prepared statements would need a pooler that knows them, and the
// simple protocol would put the values into the text. No type of the driver leaves
// the package.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"specialroutes.example/specialroutes/internal/store"
)

var _ store.Store = (*Store)(nil)

// Options say which database is used, and how.
type Options struct {
	// URL is the database's address, with all that pgx understands: several hosts,
	// sslmode, target_session_attrs=read-write (which a failover wants), pool_*.
	URL string

	// PoolSize is the number of connections that are opened at most; 0 is the URL's
	// pool_max_conns, else 8.
	PoolSize int

	// Limits bound the waits; the zero value is useful.
	Limits Limits

	// LockTimeout bounds the wait of Migrate for another process that migrates; 0 is
	// schema.LockTimeout.
	LockTimeout time.Duration

	// Sources of time and nonces; the zero value is the system's.
	Sources store.Sources

	// Log gets a line when connections are thrown away; nil logs nothing.
	Log *slog.Logger
}

// Limits bound every wait for the database. After each of them the answer is
// store.ErrUnavailable. Zero values are the defaults.
type Limits struct {
	// Acquire is for a free connection, of which there are PoolSize. Default 2 s. It
	// covers making a new one.
	Acquire time.Duration

	// Read is for a query of one row. It is how long a connection that died without
	// a word goes unnoticed. Default 2 s.
	Read time.Duration

	// Bulk is for a query of many rows. Default 5 s.
	Bulk time.Duration

	// Write is for a whole change, which waits for those before it. Default 5 s.
	Write time.Duration
}

const (
	defaultPoolSize = 8

	// pingTimeout is how long a connection that was idle may take to show that it is
	// alive before it is replaced.
	pingTimeout = time.Second

	// maxConnLifetime makes the pool find a new primary, or a new address behind a
	// name, also when the old one still answers.
	maxConnLifetime = 30 * time.Minute
)

func (l Limits) withDefaults() Limits {
	l.Acquire = orDefault(l.Acquire, 2*time.Second)
	l.Read = orDefault(l.Read, 2*time.Second)
	l.Bulk = orDefault(l.Bulk, 5*time.Second)
	l.Write = orDefault(l.Write, 5*time.Second)
	return l
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// Store is a store.Store on PostgreSQL.
type Store struct {
	pool    *pgxpool.Pool
	limits  Limits
	sources store.Sources
	log     *slog.Logger
}

// Open makes a store. It does not connect: the database may come later, and until
// then every method answers store.ErrUnavailable. The tables must have been made by
// Migrate. An error is one of the URL's; it does not repeat a password.
func Open(ctx context.Context, o Options) (*Store, error) {
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", errors.New(err.Error()))
	}
	switch {
	case o.PoolSize > 0:
		config.MaxConns = int32(o.PoolSize)
	case !strings.Contains(o.URL, "pool_max_conns"):
		config.MaxConns = defaultPoolSize
	}
	limits := o.Limits.withDefaults()
	config.PingTimeout = pingTimeout
	config.MaxConnLifetime = maxConnLifetime
	config.MaxConnLifetimeJitter = maxConnLifetime / 10
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = limits.Acquire
	}
	config.ConnConfig.DialFunc = dial(config.ConnConfig.ConnectTimeout)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", errors.New(err.Error()))
	}
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Store{pool: pool, limits: limits, sources: o.Sources.WithDefaults(), log: log}, nil
}

// Close closes all connections, after those in use have been given back.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}

// Ping asks whether the database answers and holds the tables.
func (s *Store) Ping(ctx context.Context) error {
	return s.with(ctx, "ping", s.limits.Read, func(ctx context.Context, c *pgxpool.Conn) error {
		var n, none int64
		return c.QueryRow(ctx, store.Tables).Scan(&n, &none, &none, &none, &none, &none)
	})
}

// with runs f on a connection of the pool, within a limit, and gives its error a
// meaning. op names the deed in it. Each call takes exactly one connection, so
// that waiting for a second one while holding the first cannot happen.
func (s *Store) with(ctx context.Context, op string, limit time.Duration, f func(ctx context.Context, c *pgxpool.Conn) error) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return s.meaning(ctx, op, err)
	}
	defer conn.Release()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return s.meaning(ctx, op, f(limited, conn))
}

func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Acquire)
	defer cancel()
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, &acquireError{err}
	}
	return conn, nil
}
