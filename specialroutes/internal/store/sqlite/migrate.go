package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"

	"specialroutes.example/migrations"
	"specialroutes.example/specialroutes/internal/store/schema"
)

// Migrate brings the file to this binary's schema; see schema.Up. It makes the file
// when there is none. While another process serves from it the error is a
// *LockedError; one that migrates is waited for.
func Migrate(ctx context.Context, o Options) error {
	return MigrateWith(ctx, o, migrations.SQLite())
}

// MigrateWith is Migrate with other steps than this binary's own.
func MigrateWith(ctx context.Context, o Options, steps fs.FS) error {
	return withTarget(ctx, o, steps, func(t schema.Target) error { return schema.Up(ctx, t) })
}

// MigrateDown takes the newest steps back; see schema.Down.
func MigrateDown(ctx context.Context, o Options, steps int) error {
	return withTarget(ctx, o, migrations.SQLite(), func(t schema.Target) error {
		return schema.Down(ctx, t, steps)
	})
}

// withTarget calls f with the file, which is this process's alone meanwhile, on a
// connection of its own, which schema closes.
func withTarget(ctx context.Context, o Options, steps fs.FS, f func(schema.Target) error) (err error) {
	o = o.withDefaults()
	path, err := realPath(o.Path)
	if err != nil {
		return err
	}
	lock, err := acquire(ctx, path, migrating, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.release()) }()
	if err := create(path); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", dsn(path, "immediate"))
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	db.SetMaxOpenConns(1)
	return openError(ctx, "migrating "+path, f(schema.Target{
		DB:          db,
		Steps:       steps,
		HasVersions: `SELECT count(*) FROM sqlite_schema WHERE name = 'schema_migrations'`,
		Log:         o.Log,
	}))
}
