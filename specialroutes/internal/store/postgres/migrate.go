package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"specialroutes.example/migrations"
	"specialroutes.example/specialroutes/internal/store/schema"
)

// migrationLock is the number of the advisory lock that those who migrate take. It
// must never change: two versions that migrate at once would not see each other.
const migrationLock = 0x7370656369616c72 // "specialr"

// Migrate brings the database to this binary's schema; see schema.Up. An error that
// another attempt may not meet is a store.ErrUnavailable.
func Migrate(ctx context.Context, o Options) error {
	return MigrateWith(ctx, o, migrations.Postgres())
}

// MigrateWith is Migrate with other steps than this binary's own.
func MigrateWith(ctx context.Context, o Options, steps fs.FS) error {
	target, err := target(o, steps)
	if err != nil {
		return err
	}
	return migrationError(ctx, schema.Up(ctx, target))
}

// MigrateDown takes the newest steps back; see schema.Down.
func MigrateDown(ctx context.Context, o Options, steps int) error {
	target, err := target(o, migrations.Postgres())
	if err != nil {
		return err
	}
	return migrationError(ctx, schema.Down(ctx, target, steps))
}

// target describes the database on connections of their own, which schema closes.
func target(o Options, steps fs.FS) (schema.Target, error) {
	config, err := pgx.ParseConfig(o.URL)
	if err != nil {
		return schema.Target{}, fmt.Errorf("postgres: %w", errors.New(err.Error()))
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = o.Limits.withDefaults().Acquire
	}
	config.DialFunc = dial(config.ConnectTimeout)
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(1)
	return schema.Target{
		DB:    db,
		Steps: steps,
		Lock:  fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, int64(migrationLock)),
		// Not to_regclass: it answers from the session's cache, and so does not see a
		// table that another process made while this one waited for the lock.
		HasVersions: `SELECT EXISTS (SELECT FROM pg_catalog.pg_class
			WHERE relname = 'schema_migrations' AND pg_catalog.pg_table_is_visible(oid))`,
		LockTimeout: o.LockTimeout,
		Log:         o.Log,
	}, nil
}
