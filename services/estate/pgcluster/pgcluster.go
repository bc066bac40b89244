// Package pgcluster runs a private PostgreSQL cluster from the programs that are
// installed on the machine: data in a directory of its own, a Unix socket beside
// it, a free port on 127.0.0.1, a password that nobody else knows. Tests and the
// command withpostgres stand on it. Nothing in it is meant to keep data: fsync is
// off.
package pgcluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Superuser is the name of the role that owns the cluster.
const Superuser = "postgres"

// ErrStartTimeout says that the server did not become ready in time.
var ErrStartTimeout = errors.New("pgcluster: the server did not become ready")

// Options say how the cluster is made. The zero value is useful.
type Options struct {
	// BinDir holds initdb and postgres; "" looks for the newest ones, see Find.
	BinDir string

	// Output takes what the server writes to its log; nil drops it. It is written
	// to by one goroutine at a time.
	Output io.Writer

	// Password is the superuser's; "" draws one.
	Password string

	// Settings are further server settings, as in postgresql.conf.
	Settings map[string]string

	// StartLimit bounds the wait for the server to be ready; 0 is 60 s.
	StartLimit time.Duration
}

// Cluster is a PostgreSQL server with its data. Its methods are safe for
// concurrent use.
type Cluster struct {
	bin     string
	dir     string // holds data, the socket and the password file
	owner   *owner // nil: the user who runs this process
	options Options

	mu     sync.Mutex
	port   int
	server *server // nil: stopped
}

// Start makes a cluster in a new temporary directory and starts it. It returns
// when the server takes connections. Root may not run PostgreSQL: then all of it
// runs as the user "postgres", who must be able to enter the directory that
// TMPDIR names. The error is ErrNotInstalled when there are no programs. The
// caller must call Remove.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	bin, err := programs(o.BinDir)
	if err != nil {
		return nil, err
	}
	owner, err := ownerForRoot()
	if err != nil {
		return nil, err
	}
	if o.Password == "" {
		o.Password = rand.Text()
	}
	c := &Cluster{bin: bin, owner: owner, options: o}
	if err := c.create(ctx); err != nil {
		return nil, errors.Join(err, c.Remove(context.WithoutCancel(ctx)))
	}
	if err := c.Start(ctx); err != nil {
		return nil, errors.Join(err, c.Remove(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// URL returns the address of a database of the cluster, with user and password.
func (c *Cluster) URL(database string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(Superuser, c.options.Password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Program returns the path of one of PostgreSQL's programs, such as psql or
// pg_dump. Whether it exists is seen when it is run.
func (c *Cluster) Program(name string) string { return filepath.Join(c.bin, name) }

// Port returns the port on 127.0.0.1, which stays the same over Stop and Start.
func (c *Cluster) Port() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.port
}

// Start starts the server again after Stop or Kill, on the same port, and returns
// when it takes connections. It does nothing when the server runs.
func (c *Cluster) Start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server != nil {
		return nil
	}
	const tries = 5
	var err error
	for range tries {
		fixed := c.port != 0
		if !fixed {
			if c.port, err = freePort(); err != nil {
				return err
			}
		}
		if c.server, err = c.startServer(ctx); err == nil {
			return nil
		}
		if fixed || ctx.Err() != nil {
			return err
		}
		c.port = 0 // somebody may have taken it meanwhile: try another
	}
	return err
}

// Stop shuts the server down, breaking its connections, and keeps the data. When
// ctx ends first the server is killed. It does nothing when the server is stopped.
func (c *Cluster) Stop(ctx context.Context) error { return c.end(ctx, syscall.SIGINT) }

// Kill ends the server as a crash does: the next Start recovers from its log.
func (c *Cluster) Kill(ctx context.Context) error { return c.end(ctx, syscall.SIGQUIT) }

func (c *Cluster) end(ctx context.Context, signal syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == nil {
		return nil
	}
	err := c.server.end(ctx, signal)
	c.server = nil
	return err
}

// Remove stops the server and deletes its data. The cluster is not usable
// afterwards.
func (c *Cluster) Remove(ctx context.Context) error {
	err := c.Stop(ctx)
	if c.dir != "" {
		err = errors.Join(err, os.RemoveAll(c.dir))
	}
	return err
}

// create makes the directory and the data in it.
func (c *Cluster) create(ctx context.Context) error {
	// The path stays short: that of the socket in it may have about 100 bytes.
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		return fmt.Errorf("pgcluster: %w", err)
	}
	c.dir = dir
	passwordFile := filepath.Join(dir, "password")
	if err := os.WriteFile(passwordFile, []byte(c.options.Password+"\n"), 0o600); err != nil {
		return fmt.Errorf("pgcluster: %w", err)
	}
	if c.owner != nil {
		for _, path := range []string{dir, passwordFile} {
			if err := os.Chown(path, c.owner.uid, c.owner.gid); err != nil {
				return fmt.Errorf("pgcluster: %w", err)
			}
		}
	}
	cmd := c.command(ctx, "initdb", "--pgdata", c.dataDir(), "--username", Superuser,
		"--auth", "scram-sha-256", "--pwfile", passwordFile,
		"--encoding", "UTF8", "--no-locale", "--no-sync", "--no-instructions")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pgcluster: initdb: %w\n%s", err, out)
	}
	return nil
}

func (c *Cluster) dataDir() string { return filepath.Join(c.dir, "data") }

// command prepares one of PostgreSQL's programs, as the user who owns the data,
// in the cluster's directory and with as little environment as it needs: PG*
// variables of the caller would change what the programs do.
func (c *Cluster) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.Program(name), args...)
	cmd.Dir = c.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "HOME=" + c.dir}
	cmd.SysProcAttr = sysProcAttr(c.owner)
	return cmd
}

// serverArgs are the settings of a server whose data nobody will miss.
func (c *Cluster) serverArgs() []string {
	settings := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"port":                    strconv.Itoa(c.port),
		"unix_socket_directories": c.dir,
		"fsync":                   "off",
		"full_page_writes":        "off",
		"shared_buffers":          "32MB",
		"max_connections":         "200",
		"log_destination":         "stderr",
		"logging_collector":       "off",
		"lc_messages":             "C",
	}
	maps.Copy(settings, c.options.Settings)
	args := []string{"-D", c.dataDir()}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

// freePort asks the system for a port that nobody uses at the moment.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("pgcluster: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
