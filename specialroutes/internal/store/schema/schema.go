// Package schema brings a database to the schema that this binary was built for,
// step by step, with golang-migrate. What it adds is that a step and the row that
// records it are committed together, so that a step which fails, or a process
// which is killed, leaves nothing behind to be repaired by hand.
package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/source"
	"github.com/golang-migrate/migrate/v4/source/iofs"
)

// LockTimeout is how long a process waits by default while another one migrates
// the same database. It must be above the longest step there will ever be.
const LockTimeout = 10 * time.Minute

// ErrLocked says that another process was migrating for longer than the lock
// timeout.
var ErrLocked = errors.New("schema: another process has been migrating the database all the time")

// Target is a database and the steps for it.
type Target struct {
	// DB is used for nothing else and closed at the end.
	DB *sql.DB

	// Steps are files NNNNNN_verb_noun.up.sql and .down.sql.
	Steps fs.FS

	// Lock makes all other processes that would migrate wait until the transaction
	// ends. It is the first statement in it. "" when beginning the transaction does
	// that.
	Lock string

	// HasVersions is a query for one boolean: whether there is a table
	// schema_migrations.
	HasVersions string

	// LockTimeout bounds the wait for the lock; 0 is the constant LockTimeout.
	LockTimeout time.Duration

	// Log gets a line for each step; nil logs nothing.
	Log *slog.Logger
}

// Up applies all steps that the database has not seen, each in a transaction of
// its own. Several processes may call it at once: each step is applied once. A
// database with more steps than there are here, because a newer version has been
// at it, is logged and left alone.
func Up(ctx context.Context, t Target) error {
	return t.migrate(ctx, func(m *migrate.Migrate, newest int) error {
		for {
			version, err := currentVersion(m)
			if err != nil {
				return err
			}
			if version > newest && t.Log != nil {
				t.Log.Warn("the database's schema is newer than this binary; going on with it",
					"schema", version, "known", newest)
			}
			if version >= newest {
				return nil
			}
			err = m.Steps(1)
			if errors.Is(err, os.ErrNotExist) {
				// There is no step after the database's: either another process made the
				// last one, or a newer one, just now, or one is missing here.
				if now, errNow := currentVersion(m); errNow == nil && now > version {
					continue
				}
			}
			if err != nil {
				return err
			}
		}
	})
}

// Down takes back up to so many of the newest steps; what their tables hold is
// lost. It refuses when a newer version has been at the database.
func Down(ctx context.Context, t Target, steps int) error {
	return t.migrate(ctx, func(m *migrate.Migrate, _ int) error {
		for range steps {
			version, err := currentVersion(m)
			if err != nil || version == database.NilVersion {
				return err
			}
			if err := m.Steps(-1); err != nil {
				return err
			}
		}
		return nil
	})
}

// migrate makes the engine for a target, has run use it and closes it. newest is
// the number of the newest step that this binary knows.
func (t Target) migrate(ctx context.Context, run func(m *migrate.Migrate, newest int) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("schema: %w", err)
		}
	}()
	if t.LockTimeout == 0 {
		t.LockTimeout = LockTimeout
	}
	steps, err := iofs.New(t.Steps, ".")
	if err != nil {
		return errors.Join(err, t.DB.Close())
	}
	newest, err := newestStep(steps)
	if err != nil {
		return errors.Join(err, t.DB.Close())
	}
	d := &driver{ctx: ctx, target: t}
	m, err := migrate.NewWithInstance("steps", steps, "database", d)
	if err != nil {
		return errors.Join(err, t.DB.Close())
	}
	// The driver ends its wait for the lock by itself; this is later, so that no
	// goroutine of the engine is left behind.
	m.LockTimeout = t.LockTimeout + time.Minute
	defer func() {
		errSource, errDB := m.Close()
		err = errors.Join(err, errSource, errDB)
	}()
	return run(m, newest)
}

// currentVersion returns the number of the last step that the database has seen,
// -1 when there was none.
func currentVersion(m *migrate.Migrate) (int, error) {
	version, _, err := m.Version()
	if errors.Is(err, migrate.ErrNilVersion) {
		return database.NilVersion, nil
	}
	return int(version), err
}

// newestStep returns the highest number among the steps, -1 when there are none.
func newestStep(steps source.Driver) (int, error) {
	version, err := steps.First()
	newest := -1
	for err == nil && version <= math.MaxInt32 {
		newest = int(version)
		version, err = steps.Next(version)
	}
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return newest, err
}
