package api

import (
	"database/sql"
	"path/filepath"
	"testing"

	"specialroutes.example/specialroutes/internal/store"
	"specialroutes.example/specialroutes/internal/store/postgres"
	"specialroutes.example/specialroutes/internal/store/postgres/postgrestest"
	"specialroutes.example/specialroutes/internal/store/sqlite"
)

// eachStore runs a test on both stores, each time on a database of its own.
func eachStore(t *testing.T, test func(t *testing.T, s store.Store)) {
	t.Helper()
	eachDatabase(t, func(t *testing.T, s store.Store, _ func(string)) { test(t, s) })
}

// eachDatabase is eachStore for a test that also writes to the database by hand.
func eachDatabase(t *testing.T, test func(t *testing.T, s store.Store, exec func(sql string))) {
	t.Helper()
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "test.db")
		test(t, openSQLiteAt(t, path), func(statement string) { execSQLite(t, path, statement) })
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		address := postgrestest.New(t)
		s, err := postgres.Open(t.Context(), postgres.Options{URL: address, PoolSize: 4})
		test(t, closing(t, s, err), func(statement string) { postgrestest.Exec(t, address, statement) })
	})
}

func openSQLite(t testing.TB) store.Store {
	t.Helper()
	return openSQLiteAt(t, filepath.Join(t.TempDir(), "test.db"))
}

func openSQLiteAt(t testing.TB, path string) store.Store {
	t.Helper()
	o := sqlite.Options{Path: path}
	if err := sqlite.Migrate(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Open(t.Context(), o)
	return closing(t, s, err)
}

func execSQLite(t testing.TB, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path) // the driver is that of package sqlite
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func closing(t testing.TB, s store.Store, err error) store.Store {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return s
}
