package pgcluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"specialroutes.example/services/estate/pgcluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start returns a running cluster that is gone after the test.
func start(t *testing.T, o pgcluster.Options) *pgcluster.Cluster {
	t.Helper()
	c, err := pgcluster.Start(t.Context(), o)
	if errors.Is(err, pgcluster.ErrNotInstalled) && os.Getenv("CI") == "" {
		t.Skip(err, "- make test says what to install")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return c
}

func query(t *testing.T, c *pgcluster.Cluster, sql string) string {
	t.Helper()
	out, err := exec.Command(c.Program("psql"), "-XAtqc", sql, c.URL("postgres")).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", sql, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestClusterAnswersAndKeepsItsDataOverStopAndKill(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := start(t, pgcluster.Options{Settings: map[string]string{"max_connections": "17"}})
	if got := query(t, c, "SHOW max_connections"); got != "17" {
		t.Errorf("max_connections = %s, want 17", got)
	}
	query(t, c, "CREATE TABLE seen (n int); INSERT INTO seen VALUES (1)")
	before := c.URL("postgres")
	for name, end := range map[string]func(context.Context) error{"Stop": c.Stop, "Kill": c.Kill} {
		if err := end(ctx); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.Port())); err == nil {
			conn.Close()
			t.Fatalf("after %s something still listens on port %d", name, c.Port())
		}
		if err := c.Start(ctx); err != nil {
			t.Fatalf("Start after %s: %v", name, err)
		}
		if got := query(t, c, "SELECT n FROM seen"); got != "1" {
			t.Errorf("after %s the table holds %q, want 1", name, got)
		}
	}
	if after := c.URL("postgres"); after != before {
		t.Errorf("URL changed from %s to %s", before, after)
	}
}

func TestClusterRefusesAWrongPassword(t *testing.T) {
	t.Parallel()
	c := start(t, pgcluster.Options{})
	url := fmt.Sprintf("postgres://postgres:wrong@127.0.0.1:%d/postgres", c.Port())
	out, err := exec.Command(c.Program("psql"), "-XAtqc", "SELECT 1", url).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "password authentication failed") {
		t.Errorf("psql with a wrong password: %v, %s", err, out)
	}
}

func TestStartNamesTheReasonWhenTheServerRefusesASetting(t *testing.T) {
	t.Parallel()
	c, err := pgcluster.Start(t.Context(), pgcluster.Options{Settings: map[string]string{"no_such_setting": "1"}})
	if errors.Is(err, pgcluster.ErrNotInstalled) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err == nil {
		c.Remove(t.Context())
		t.Fatal("Start gave no error")
	}
	if !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("error %q does not name the setting", err)
	}
}

func TestStartEndsWhenItsLimitIsOver(t *testing.T) {
	t.Parallel()
	c, err := pgcluster.Start(t.Context(), pgcluster.Options{StartLimit: time.Nanosecond})
	if errors.Is(err, pgcluster.ErrNotInstalled) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err == nil {
		c.Remove(t.Context())
	}
	if !errors.Is(err, pgcluster.ErrStartTimeout) {
		t.Errorf("Start = %v, want ErrStartTimeout", err)
	}
}

// openDir returns a directory that other users may enter; those of t.TempDir they
// may not, and root's clusters run as another user.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "open")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestStartLeavesNoDirectoryBehindWhenItFails(t *testing.T) {
	dir, bin := openDir(t), openDir(t)
	t.Setenv("TMPDIR", dir)
	for _, name := range []string{"initdb", "postgres"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho broken >&2\nexit 3\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_, err := pgcluster.Start(t.Context(), pgcluster.Options{BinDir: bin})
	if err == nil || !strings.Contains(err.Error(), "broken") {
		t.Fatalf("Start with a broken initdb = %v, want its output", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
