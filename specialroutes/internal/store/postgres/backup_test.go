package postgres_test

import (
	"errors"
	"net/url"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"specialroutes.example/services/estate/pgcluster"
	"specialroutes.example/specialroutes/internal/store"
	"specialroutes.example/specialroutes/internal/store/postgres"
)

// run runs one of PostgreSQL's programs.
func run(t *testing.T, c *pgcluster.Cluster, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), c.Program(name), args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// copyDatabase puts a copy of one cluster's database in the place of another's, by
// the commands of docs/operations.md.
func copyDatabase(t *testing.T, from, to *pgcluster.Cluster) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "specialroutes.dump")
	run(t, from, "pg_dump", "--format=custom", "--file="+file, from.URL("postgres"))
	run(t, to, "pg_restore", "--clean", "--if-exists", "--no-owner", "--single-transaction", "--exit-on-error",
		"--dbname="+to.URL("postgres"), file)
}

// bothHosts joins two addresses into one that leads to the server which takes
// writes.
func bothHosts(t *testing.T, a, b string) string {
	t.Helper()
	first, errFirst := url.Parse(a)
	second, errSecond := url.Parse(b)
	if err := errors.Join(errFirst, errSecond); err != nil {
		t.Fatal(err)
	}
	first.Host += "," + second.Host
	first.RawQuery += "&target_session_attrs=read-write"
	return first.String()
}

// TestARestoreUnderARunningStoreIsFollowed restores a backup by the commands of
// docs/operations.md while a store is open.
func TestARestoreUnderARunningStoreIsFollowed(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	s := open(t, postgres.Options{URL: migratedOn(t, c), PoolSize: 4})
	mustPut(t, s, "old", 1)
	backedUp, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "specialroutes.dump")
	run(t, c, "pg_dump", "--format=custom", "--file="+file, c.URL("postgres"))
	mustPut(t, s, "old", 2)
	mustPut(t, s, "new", 1)
	late, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run(t, c, "pg_restore", "--clean", "--if-exists", "--no-owner", "--single-transaction", "--exit-on-error",
		"--dbname="+c.URL("postgres"), file)
	waitFor(t, 5*time.Second, "restored database", func() bool {
		head, err := s.Head(t.Context())
		return err == nil && head == backedUp
	})
	got, err := s.Changes(t.Context(), late)
	if err != nil || !got.Full || got.Cursor != backedUp || len(got.Records) != 1 || *got.Records[0].Record.Variants[0].Weight != 1 {
		t.Errorf("Changes(%v) = %+v, %v, want everything as of %v", late, got, err, backedUp)
	}
	mustPut(t, s, "old", 3)
	if got, err := s.Changes(t.Context(), backedUp); err != nil || got.Full || len(got.Records) != 1 {
		t.Errorf("Changes(%v) = %+v, %v, want the new change alone", backedUp, got, err)
	}
	if got, err := s.Changes(t.Context(), store.Cursor{Revision: 2, Nonce: late.Nonce}); err != nil || !got.Full {
		t.Errorf("Changes of a place before the restore = %+v, %v, want everything", got, err)
	}
}
