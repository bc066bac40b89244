package postgres_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"specialroutes.example/migrations"
	"specialroutes.example/specialroutes/internal/store"
	"specialroutes.example/specialroutes/internal/store/postgres"
	"specialroutes.example/specialroutes/internal/store/postgres/postgrestest"
	"specialroutes.example/specialroutes/internal/store/schema"
	"specialroutes.example/specialroutes/internal/store/schema/schematest"
)

// child is a child process of the tests of migration.
func child() (code int, isChild bool) {
	return schematest.Child(func(ctx context.Context, address string, steps fs.FS) error {
		return postgres.MigrateWith(ctx, postgres.Options{URL: address}, steps)
	})
}

func TestMigration(t *testing.T) {
	t.Parallel()
	postgrestest.Server(t)
	schematest.Exercise(t, func(t *testing.T) schematest.Database {
		return migrated(t, postgrestest.NewEmpty(t))
	})
}

// migrated describes a database for schematest.
func migrated(t *testing.T, address string) schematest.Database {
	return schematest.Database{
		Up: func(ctx context.Context, steps fs.FS, log *slog.Logger) error {
			return postgres.MigrateWith(ctx, postgres.Options{URL: address, Log: log}, steps)
		},
		Down: func(ctx context.Context, steps int) error {
			return postgres.MigrateDown(ctx, postgres.Options{URL: address}, steps)
		},
		Steps:   migrations.Postgres(),
		Address: address,
		Exec:    func(t *testing.T, sql string) { postgrestest.Exec(t, address, sql) },
		Column:  func(t *testing.T, query string) []string { return column(t, address, query) },
		Tables:  `SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'`,
		// The server goes on with a statement whose client is gone; whoever comes next
		// waits for its end, so this is not longer than it must be.
		Block: `SELECT pg_sleep(3);`,
		WaitBlocked: func(t *testing.T, _ io.Reader) {
			t.Helper()
			waitFor(t, 20*time.Second, "a child in pg_sleep", func() bool {
				return len(column(t, address, `SELECT query FROM pg_stat_activity
					WHERE datname = current_database() AND wait_event = 'PgSleep'`)) > 0
			})
		},
	}
}

func column(t *testing.T, address, query string) []string {
	t.Helper()
	config, err := pgx.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // the address may be a pooler's
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// waitFor asks until a condition holds.
func waitFor(t *testing.T, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("no %s within %v", what, limit)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestMigrateEndsItsWaitForTheLock holds the lock as another process would whose
// step takes too long.
func TestMigrateEndsItsWaitForTheLock(t *testing.T) {
	t.Parallel()
	address := postgrestest.NewEmpty(t)
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, postgres.MigrationLock); err != nil {
		t.Fatal(err)
	}
	o := postgres.Options{URL: address, LockTimeout: 200 * time.Millisecond}
	if err := postgres.Migrate(t.Context(), o); !errors.Is(err, schema.ErrLocked) || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Migrate() = %v, want ErrLocked, which may be tried again", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := postgres.Migrate(ctx, postgres.Options{URL: address}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Migrate() = %v, want the context's error", err)
	}
	if _, err := conn.Exec(t.Context(), `SELECT pg_advisory_unlock($1)`, postgres.MigrationLock); err != nil {
		t.Fatal(err)
	}
	if err := postgres.Migrate(t.Context(), o); err != nil {
		t.Errorf("with the lock given back Migrate() = %v", err)
	}
}

func TestMigrateWithoutWorkNeedsNoRightToCreate(t *testing.T) {
	t.Parallel()
	address := postgrestest.New(t)
	name := postgrestest.Name(t, address)
	postgrestest.Exec(t, address, `CREATE ROLE reader_`+name+` LOGIN PASSWORD 'secret'`)
	t.Cleanup(func() {
		// The database, with the rights on it, goes after this.
		conn, err := pgx.Connect(context.WithoutCancel(t.Context()), address)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close(context.WithoutCancel(t.Context()))
		if _, err := conn.Exec(context.WithoutCancel(t.Context()),
			`DROP OWNED BY reader_`+name+`; DROP ROLE reader_`+name); err != nil {
			t.Error(err)
		}
	})
	postgrestest.Exec(t, address, `GRANT SELECT ON schema_migrations TO reader_`+name+`;
		REVOKE CREATE ON SCHEMA public FROM PUBLIC`)
	limited := postgrestest.As(t, address, "reader_"+name, "secret")
	if err := postgres.Migrate(t.Context(), postgres.Options{URL: limited}); err != nil {
		t.Errorf("Migrate() = %v", err)
	}
}

func TestMigrateTellsADatabaseThatIsAwayFromAStepThatFails(t *testing.T) {
	t.Parallel()
	address := postgrestest.NewEmpty(t)
	away := postgrestest.Sibling(t, address, "there_is_no_such_database")
	steps := func(body string) fs.FS {
		return fstest.MapFS{"000001_do_something.up.sql": {Data: []byte(body)}}
	}
	readOnly := address + "&default_transaction_read_only=on"
	for name, test := range map[string]struct {
		address string
		steps   fs.FS
		again   bool
	}{
		"nobody listens":   {"postgres://u:p@127.0.0.1:1/x", migrations.Postgres(), true},
		"no such database": {away, migrations.Postgres(), true},
		"read-only":        {readOnly, migrations.Postgres(), true},
		"no such table":    {address, steps(`INSERT INTO nowhere VALUES (1)`), false},
		"not SQL":          {address, steps(`CREATE TALBE`), false},
	} {
		err := postgres.MigrateWith(t.Context(), postgres.Options{URL: test.address}, test.steps)
		if err == nil || errors.Is(err, store.ErrUnavailable) != test.again {
			t.Errorf("%s: Migrate() = %v, want one to be tried again: %v", name, err, test.again)
		}
		if errors.As(err, new(*pgconn.PgError)) || errors.As(err, new(*pgconn.ConnectError)) {
			t.Errorf("%s: an error of the driver's leaves the package", name)
		}
	}
}
