package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"specialroutes.example/specialroutes/internal/config"
	"specialroutes.example/specialroutes/internal/store"
	"specialroutes.example/specialroutes/internal/store/postgres"
	"specialroutes.example/specialroutes/internal/store/sqlite"
)

// defaultDatabase is a file in the working directory.
const defaultDatabase = "sqlite://specialroutes.db"

// database is the one that the settings choose.
type database struct {
	migrate func(context.Context) error
	connect func(context.Context) (store.Store, error)

	migrateAtStart bool
}

// databaseOf finds mistakes in the address and connects to nothing.
func databaseOf(ctx context.Context, c config.Config, log *slog.Logger) (*database, error) {
	address := c.DatabaseURL
	if address == "" {
		address = defaultDatabase
	}
	if strings.HasPrefix(address, "sqlite://") {
		path, err := sqlite.Path(address)
		if err != nil {
			return nil, err
		}
		o := sqlite.Options{Path: path, Log: log}
		return &database{
			migrate:        func(ctx context.Context) error { return sqlite.Migrate(ctx, o) },
			connect:        func(ctx context.Context) (store.Store, error) { return sqlite.Open(ctx, o) },
			migrateAtStart: !c.NoMigrate,
		}, nil
	}
	o := postgres.Options{URL: address, Log: log}
	check, err := postgres.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := check.Close(); err != nil {
		return nil, err
	}
	return &database{
		migrate:        func(ctx context.Context) error { return postgres.Migrate(ctx, o) },
		connect:        func(ctx context.Context) (store.Store, error) { return postgres.Open(ctx, o) },
		migrateAtStart: !c.NoMigrate,
	}, nil
}

// open brings the schema up to date, unless that is left to others, and returns the
// store. A database that does not answer, or whose schema others are still to make,
// is a store.ErrUnavailable.
func (d *database) open(ctx context.Context) (store.Store, error) {
	if d.migrateAtStart {
		if err := d.migrate(ctx); err != nil {
			return nil, fmt.Errorf("migrating: %w", err)
		}
	}
	s, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.Ping(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}
