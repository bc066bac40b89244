package sqlite_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"specialroutes.example/specialroutes/internal/store"
	"specialroutes.example/specialroutes/internal/store/sqlite"
	"specialroutes.example/specialroutes/internal/store/storetest"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(serveVariable); path != "" {
		os.Exit(serve(path))
	}
	if code, isChild := child(); isChild {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

// create makes a new, migrated file.
func create(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "a 100% file.db")
	if err := sqlite.Migrate(t.Context(), sqlite.Options{Path: path}); err != nil {
		t.Fatal(err)
	}
	return path
}

// open opens a file that is closed at the end of the test.
func open(t *testing.T, o sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // the test may have closed it
	return s
}

// byHand runs SQL by hand, as another program would.
func byHand(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`PRAGMA busy_timeout = 5000`); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// holdWriteLock takes SQLite's own lock, as another program might.
func holdWriteLock(t *testing.T, path string) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite", path+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = tx.Rollback() // nothing was done in it
		db.Close()
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Exercise(t, func(t *testing.T) storetest.Database {
		path := create(t)
		return storetest.Database{
			Open: func(t *testing.T, sources store.Sources) store.Store {
				return open(t, sqlite.Options{Path: path, Sources: sources})
			},
			Exec: func(t *testing.T, statement string) { byHand(t, path, statement) },
			Backup: func(t *testing.T) func(*testing.T) {
				saved, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				return func(t *testing.T) {
					if err := os.WriteFile(path, saved, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			},
		}
	})
}
