package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"

	"github.com/golang-migrate/migrate/v4/database"
)

var _ database.Driver = (*driver)(nil)

// driver stands between golang-migrate and the database. The engine calls Lock,
// Version, SetVersion(v, true), Run, SetVersion(v, false), Unlock. Its own drivers
// commit three times between these, so that a failure or a kill leaves the mark
// "dirty", with which no later start succeeds. Here all of it is one transaction:
// Lock begins it, Run only keeps the statements, and SetVersion(v, false) runs them,
// writes the version and commits.
//
// The lock belongs to that transaction too. A lock of the session, which is what
// golang-migrate's driver for PostgreSQL takes, stays behind in a connection of
// pgbouncer's and would shut out everybody for good.
//
// It is used by one goroutine at a time.
type driver struct {
	ctx    context.Context // of the call to Up or Down: the engine hands on none
	target Target
	tx     *sql.Tx // nil: not locked
	body   string
}

// Lock begins the transaction and takes the lock in it.
func (d *driver) Lock() error {
	if d.tx != nil {
		return database.ErrLocked
	}
	tx, err := d.target.DB.BeginTx(d.ctx, nil)
	if err != nil {
		return err
	}
	if d.target.Lock != "" {
		ctx, cancel := context.WithTimeoutCause(d.ctx, d.target.LockTimeout, ErrLocked)
		defer cancel()
		if _, err := tx.ExecContext(ctx, d.target.Lock); err != nil {
			_ = tx.Rollback() // err says why
			if errors.Is(context.Cause(ctx), ErrLocked) {
				return ErrLocked
			}
			return err
		}
	}
	d.tx = tx
	return nil
}

// Unlock ends the transaction if SetVersion has not done so; then nothing was
// changed in it, or what was must not stay.
func (d *driver) Unlock() error {
	if d.tx == nil {
		return nil
	}
	err := d.tx.Rollback()
	d.tx = nil
	return err
}

// Run keeps the statements of a step for SetVersion.
func (d *driver) Run(step io.Reader) error {
	body, err := io.ReadAll(step)
	d.body = string(body)
	return err
}

// SetVersion runs the step that was kept and commits it with the version; -1 is
// the version of a database without a step. For the mark "dirty" it does nothing.
func (d *driver) SetVersion(version int, dirty bool) error {
	if dirty {
		d.body = ""
		return nil
	}
	if d.tx == nil {
		return database.ErrNotLocked
	}
	statements := []string{
		d.body,
		`CREATE TABLE IF NOT EXISTS schema_migrations (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL)`,
		`DELETE FROM schema_migrations`,
	}
	if version != database.NilVersion {
		statements = append(statements,
			fmt.Sprintf(`INSERT INTO schema_migrations (version, dirty) VALUES (%d, false)`, version))
	}
	for _, statement := range statements {
		if _, err := d.tx.ExecContext(d.ctx, statement); err != nil {
			return fmt.Errorf("step to version %d: %w", version, err) // Unlock rolls back
		}
	}
	err := d.tx.Commit()
	d.tx = nil
	if err == nil && d.target.Log != nil {
		d.target.Log.Info("the database's schema was migrated", "schema", version)
	}
	return err
}

// querier is what a database and a transaction have in common.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Version reads the number of the last step, -1 when there was none.
func (d *driver) Version() (version int, dirty bool, err error) {
	var q querier = d.target.DB
	if d.tx != nil {
		q = d.tx
	}
	var exists bool
	if err := q.QueryRowContext(d.ctx, d.target.HasVersions).Scan(&exists); err != nil {
		return 0, false, err
	}
	if !exists {
		return database.NilVersion, false, nil
	}
	err = q.QueryRowContext(d.ctx, `SELECT version, dirty FROM schema_migrations`).Scan(&version, &dirty)
	if errors.Is(err, sql.ErrNoRows) {
		return database.NilVersion, false, nil
	}
	return version, dirty, err
}

// Close closes the database.
func (d *driver) Close() error { return errors.Join(d.Unlock(), d.target.DB.Close()) }

// Open and Drop belong to the interface and are not used.
func (d *driver) Open(string) (database.Driver, error) { return nil, errNotUsed }

// Drop refuses: nothing here deletes a database.
func (d *driver) Drop() error { return errNotUsed }

var errNotUsed = errors.New("schema: not used")
