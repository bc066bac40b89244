package sqlite_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"specialroutes.example/services/routing"
	"specialroutes.example/specialroutes/internal/store"
	"specialroutes.example/specialroutes/internal/store/sqlite"
	"specialroutes.example/specialroutes/internal/store/storetest"
)

func put(t *testing.T, s store.Store, service string, weight int64) store.Stored {
	t.Helper()
	written, err := s.Write(t.Context(), service, store.Author{Who: "tester"}, func(*store.Stored) (*routing.Record, error) {
		return storetest.Record(service, weight), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return written
}

func TestPathReadsAnAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"sqlite:///var/lib/x.db":       "/var/lib/x.db",
		"sqlite://x.db":                "x.db",
		"sqlite:///with%20space%23.db": "/with space#.db",
	} {
		if got, err := sqlite.Path(address); err != nil || got != want {
			t.Errorf("Path(%q) = %q, %v, want %q", address, got, err, want)
		}
	}
	for _, address := range []string{"", "sqlite://", "postgres://x", "/var/lib/x.db", "sqlite:///x?mode=memory", "sqlite:///%zz", "sqlite:///x%00"} {
		if got, err := sqlite.Path(address); err == nil {
			t.Errorf("Path(%q) = %q, want an error", address, got)
		}
	}
}

func TestOpenNamesWhatIsWrongWithTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is not a database\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"no directory":   filepath.Join(dir, "missing", "x.db"),
		"not a database": text,
		"a directory":    dir,
	} {
		if _, err := sqlite.Open(t.Context(), sqlite.Options{Path: path}); err == nil {
			t.Errorf("%s: Open gave no error", name)
		} else if !strings.Contains(err.Error(), filepath.Dir(path)) || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: Open = %v, want one that names the place, and that no waiting will mend", name, err)
		}
	}
}

func TestAnUnmigratedFileIsNotAvailable(t *testing.T) {
	t.Parallel()
	s := open(t, sqlite.Options{Path: filepath.Join(t.TempDir(), "new.db")})
	if err := s.Ping(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Ping() = %v, want ErrUnavailable", err)
	}
}

// TestARowThatIsNotJSONIsSetAside is about what the check of the table refuses
// unless it is switched off.
func TestARowThatIsNotJSONIsSetAside(t *testing.T) {
	t.Parallel()
	path := create(t)
	s := open(t, sqlite.Options{Path: path})
	put(t, s, "good", 5)
	byHand(t, path, `PRAGMA ignore_check_constraints = 1; INSERT INTO routes (service, record) VALUES ('bad', '{"service":')`)
	changes, err := s.Changes(t.Context(), store.Cursor{})
	if err != nil || len(changes.Records) != 2 {
		t.Fatalf("Changes = %+v, %v, want two records", changes, err)
	}
	bad := changes.Records[0]
	if bad.Service != "bad" || bad.Broken == "" || bad.Raw != nil {
		t.Errorf("the record is %+v, want it broken and without text", bad)
	}
	put(t, s, "bad", 5)
	entries, err := s.History(t.Context(), "bad", 0, 0)
	if err != nil || len(entries) != 1 || entries[0].Before != nil {
		t.Errorf("History = %+v, %v, want one entry with nothing before", entries, err)
	}
}

// TestAWaitForAnotherProgramEnds lets another program hold the file's write lock.
func TestAWaitForAnotherProgramEnds(t *testing.T) {
	t.Parallel()
	path := create(t)
	s := open(t, sqlite.Options{Path: path, Limit: 300 * time.Millisecond})
	unlock := holdWriteLock(t, path)
	_, err := s.Write(t.Context(), "svc", store.Author{}, func(*store.Stored) (*routing.Record, error) {
		return storetest.Record("svc", 5), nil
	})
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Write = %v, want ErrUnavailable", err)
	}
	if _, err := s.Head(t.Context()); err != nil {
		t.Errorf("meanwhile Head() = %v", err)
	}
	unlock()
	put(t, s, "svc", 5)
}

// The next two run the commands of docs/operations.md.

func TestABackupOfARunningStoreCanBeRestored(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Skip(err)
	}
	path := create(t)
	s := open(t, sqlite.Options{Path: path})
	kept := put(t, s, "svc", 1)
	backup := filepath.Join(t.TempDir(), "backup.db")
	if out, err := command(t.Context(), program, path, ".backup '"+backup+"'"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	put(t, s, "svc", 2)
	restore(t, s, path, backup)
	wantRestored(t, path, kept)
}

func TestACopyOfAStoppedStoreCanBeRestored(t *testing.T) {
	t.Parallel()
	path := create(t)
	s := open(t, sqlite.Options{Path: path})
	kept := put(t, s, "svc", 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	backup := filepath.Join(t.TempDir(), "backup.db")
	if out, err := command(t.Context(), "cp", path, backup); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s = open(t, sqlite.Options{Path: path})
	put(t, s, "svc", 2)
	restore(t, s, path, backup)
	wantRestored(t, path, kept)
}

// restore stops the store and puts a backup in the place of its file.
func restore(t *testing.T, s store.Store, path, backup string) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"rm", "-f", path + "-wal", path + "-shm"}, {"cp", backup, path}} {
		if out, err := command(t.Context(), args[0], args[1:]...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

func wantRestored(t *testing.T, path string, want store.Stored) {
	t.Helper()
	s := open(t, sqlite.Options{Path: path})
	if got, err := s.Get(t.Context(), want.Service); err != nil || got.ETag() != want.ETag() {
		t.Errorf("Get = %+v, %v, want %s", got, err, want.ETag())
	}
	if head, err := s.Head(t.Context()); err != nil || head != want.Cursor() {
		t.Errorf("Head() = %v, %v, want %v", head, err, want.Cursor())
	}
}

// command runs a program and returns its output.
func command(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	return string(out), err
}
