package sqlite_test

import (
	"bufio"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	moderncsqlite "modernc.org/sqlite"

	"specialroutes.example/migrations"
	"specialroutes.example/specialroutes/internal/store/schema/schematest"
	"specialroutes.example/specialroutes/internal/store/sqlite"
)

// blockedWord is what a child says when it has come to the function block().
const blockedWord = "blocked"

// child is a child process of the tests of migration.
func child() (code int, isChild bool) {
	return schematest.Child(func(ctx context.Context, address string, steps fs.FS) error {
		err := moderncsqlite.RegisterScalarFunction("block", 0,
			func(*moderncsqlite.FunctionContext, []driver.Value) (driver.Value, error) {
				fmt.Println(blockedWord)
				select {} // until it is killed
			})
		if err != nil {
			return err
		}
		return sqlite.MigrateWith(ctx, sqlite.Options{Path: address}, steps)
	})
}

func TestMigration(t *testing.T) {
	t.Parallel()
	schematest.Exercise(t, func(t *testing.T) schematest.Database {
		path := filepath.Join(t.TempDir(), "routes.db")
		return schematest.Database{
			Up: func(ctx context.Context, steps fs.FS, log *slog.Logger) error {
				return sqlite.MigrateWith(ctx, sqlite.Options{Path: path, Log: log}, steps)
			},
			Down: func(ctx context.Context, steps int) error {
				return sqlite.MigrateDown(ctx, sqlite.Options{Path: path}, steps)
			},
			Steps:   migrations.SQLite(),
			Address: path,
			Exec:    func(t *testing.T, statement string) { byHand(t, path, statement) },
			Column:  func(t *testing.T, query string) []string { return column(t, path, query) },
			Tables:  `SELECT name FROM sqlite_schema WHERE type = 'table'`,
			Block:   `SELECT block();`,
			WaitBlocked: func(t *testing.T, out io.Reader) {
				t.Helper()
				if line, err := bufio.NewReader(out).ReadString('\n'); strings.TrimSpace(line) != blockedWord {
					t.Fatalf("the child says %q, %v, want %q", line, err, blockedWord)
				}
			},
		}
	})
}

func column(t *testing.T, path, query string) (values []string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return values
}

func TestMigrateMakesAFileForItsOwnerOnly(t *testing.T) {
	t.Parallel()
	path := create(t)
	s := open(t, sqlite.Options{Path: path})
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Error(err)
		} else if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v, want 0600", filepath.Base(path+suffix), info.Mode())
		}
	}
}
