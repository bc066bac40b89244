// Command withpostgres runs a command with a private PostgreSQL server beside it:
//
//	withpostgres [-bin DIR] -- CMD ARGS...
//
// CMD finds the server's address in the environment variable TEST_DATABASE_URL.
// The server lives in a temporary directory and is gone, with its data, when CMD
// ends; the exit code is CMD's. When TEST_DATABASE_URL is set already, that server
// is used and none is started. When PostgreSQL is not installed, root on Debian
// installs the package; else CMD runs without a server, with a warning, or, when
// the variable CI is "true", does not run at all.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"specialroutes.example/services/estate/pgcluster"
)

const (
	// urlVariable is where tests look for a server.
	urlVariable = "TEST_DATABASE_URL"

	// removeLimit bounds the end of the server; after it, it is killed.
	removeLimit = 20 * time.Second
)

const missing = `withpostgres: PostgreSQL is not installed, and the tests need one. Install it:
  Debian, Ubuntu   apt-get install postgresql   (make test does it itself when run as root)
  Fedora           dnf install postgresql-server
  Alpine           apk add postgresql
  macOS            brew install postgresql@17
or give the address of a server on which databases may be created:
  TEST_DATABASE_URL=postgres://user:password@host:5432/postgres make test
`

func main() {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	os.Exit(run(context.Background(), os.Args[1:], os.Environ(), os.Stderr, signals, installPackage))
}

// usageCode is the exit code for wrong arguments, as flag's own.
const usageCode = 2

// run does all the work and returns the exit code. Signals are passed on to the
// command, whose end ends everything else. install is called when PostgreSQL is
// missing and makes it available, or says why not.
func run(ctx context.Context, args, environ []string, stderr io.Writer, signals <-chan os.Signal,
	install func(context.Context, io.Writer) error) int {
	flags := flag.NewFlagSet("withpostgres", flag.ContinueOnError)
	flags.SetOutput(stderr)
	bin := flags.String("bin", "", "`directory` of initdb and postgres (default: the newest that is found)")
	if err := flags.Parse(args); err != nil {
		return usageCode
	}
	if flags.NArg() == 0 {
		fmt.Fprintln(stderr, "usage: withpostgres [-bin DIR] -- CMD ARGS...")
		return usageCode
	}
	if lookup(environ, urlVariable) != "" {
		return runCommand(flags.Args(), environ, stderr, signals)
	}
	cluster, err := start(ctx, *bin, stderr, install)
	switch {
	case errors.Is(err, pgcluster.ErrNotInstalled) && lookup(environ, "CI") != "true":
		fmt.Fprint(stderr, missing, "withpostgres: going on without it; tests that need it are skipped\n")
		return runCommand(flags.Args(), environ, stderr, signals)
	case errors.Is(err, pgcluster.ErrNotInstalled):
		fmt.Fprint(stderr, missing)
		return 1
	case err != nil:
		fmt.Fprintln(stderr, "withpostgres:", err)
		return 1
	}
	code := runCommand(flags.Args(), append(environ, urlVariable+"="+cluster.URL("postgres")), stderr, signals)
	ctx, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	if err := cluster.Remove(ctx); err != nil {
		fmt.Fprintln(stderr, "withpostgres:", err)
		return max(code, 1)
	}
	return code
}

// start starts a cluster, after an attempt to install PostgreSQL when that is
// missing. The error is pgcluster.ErrNotInstalled when it is missing all the same.
func start(ctx context.Context, bin string, stderr io.Writer, install func(context.Context, io.Writer) error) (*pgcluster.Cluster, error) {
	if bin == "" {
		if _, err := pgcluster.Find(); err != nil {
			if err := install(ctx, stderr); err != nil {
				fmt.Fprintln(stderr, "withpostgres:", err)
			}
		}
	}
	return pgcluster.Start(ctx, pgcluster.Options{BinDir: bin})
}

// runCommand runs a command to its end, passing signals on to it, and returns its
// exit code; 128 and the signal's number when a signal ended it, as a shell does.
func runCommand(args, environ []string, stderr io.Writer, signals <-chan os.Signal) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = environ
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(stderr, "withpostgres:", err)
		return 127
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = cmd.Process.Signal(s) // it may have ended just now
		case err := <-ended:
			return exitCode(err, stderr)
		}
	}
}

func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		fmt.Fprintln(stderr, "withpostgres:", err)
		return 1
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}

// lookup returns the value of a variable in an environment, "" when it is not set.
func lookup(environ []string, name string) string {
	for _, entry := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}
