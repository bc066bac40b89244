package postgres_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"specialroutes.example/services/estate/pgcluster"
	"specialroutes.example/specialroutes/internal/store"
	"specialroutes.example/specialroutes/internal/store/postgres"
	"specialroutes.example/specialroutes/internal/store/postgres/postgrestest"
	"specialroutes.example/specialroutes/internal/store/schema/schematest"
	"specialroutes.example/specialroutes/internal/store/storetest"
)

// TestThroughPgbouncer runs both suites through a pooler in transaction mode, where
// each transaction may be on another connection.
func TestThroughPgbouncer(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("pgbouncer is not installed")
	}
	c := cluster(t)
	pooler := startPgbouncer(t, program, c)
	through := func(t *testing.T, database string) string {
		return fmt.Sprintf("postgres://anybody@%s/%s?sslmode=disable", pooler, postgrestest.Name(t, database))
	}
	t.Run("store", func(t *testing.T) {
		storetest.Exercise(t, func(t *testing.T) storetest.Database {
			return pooled(t, c, through)
		})
	})
	t.Run("migration", func(t *testing.T) {
		schematest.Exercise(t, func(t *testing.T) schematest.Database {
			return migrated(t, through(t, postgrestest.NewOn(t, c.URL("postgres"))))
		})
	})
}

// pooled makes a database that stores reach through the pooler and hands directly.
func pooled(t *testing.T, c *pgcluster.Cluster, through func(*testing.T, string) string) storetest.Database {
	server := c.URL("postgres")
	address := postgrestest.NewOn(t, server)
	if err := postgres.Migrate(t.Context(), postgres.Options{URL: through(t, address)}); err != nil {
		t.Fatal(err)
	}
	name := postgrestest.Name(t, address)
	// The pooler keeps connections after the store has closed its own.
	cutOff := `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '` + name + `'`
	return storetest.Database{
		Shared: true,
		Open: func(t *testing.T, sources store.Sources) store.Store {
			return open(t, postgres.Options{URL: through(t, address), PoolSize: 4, Sources: sources})
		},
		Exec: func(t *testing.T, sql string) { postgrestest.Exec(t, address, sql) },
		Backup: func(t *testing.T) func(*testing.T) {
			postgrestest.Exec(t, server, cutOff)
			postgrestest.Exec(t, server, "CREATE DATABASE "+name+"_saved TEMPLATE "+name)
			return func(t *testing.T) {
				postgrestest.Exec(t, server, "DROP DATABASE "+name+" WITH (FORCE)")
				postgrestest.Exec(t, server, "ALTER DATABASE "+name+"_saved RENAME TO "+name)
			}
		},
	}
}

// startPgbouncer starts the pooler in front of a cluster and returns where it
// listens.
func startPgbouncer(t *testing.T, program string, c *pgcluster.Cluster) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().(*net.TCPAddr)
	l.Close() // nobody else is likely to take it in the next moment
	file := filepath.Join(t.TempDir(), "pgbouncer.ini")
	settings := fmt.Sprintf(`
[databases]
* = host=127.0.0.1 port=%d user=%s password=secret
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 500
`, c.Port(), pgcluster.Superuser, address.Port)
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{file}
	if os.Geteuid() == 0 { // it refuses to run as root and changes its user itself
		args = []string{"-u", "postgres", file}
	}
	var log bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			const tail = 2000 // bytes
			t.Logf("pgbouncer: … %s", log.Bytes()[max(0, log.Len()-tail):])
		}
	})
	waitFor(t, 10*time.Second, "pooler", func() bool {
		conn, err := net.Dial("tcp", address.String())
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return address.String()
}
