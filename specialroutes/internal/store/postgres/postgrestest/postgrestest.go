// Package postgrestest makes databases for tests on a real PostgreSQL server: the
// one that TEST_DATABASE_URL names, which `make test` and the command withpostgres
// provide.
package postgrestest

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"specialroutes.example/specialroutes/internal/store/postgres"
)

// Variable names the environment variable with the address of a server on which
// databases may be created.
const Variable = "TEST_DATABASE_URL"

// Server returns the server's address. Without one the test is skipped, or fails
// where the variable CI is "true": there, tests that do not run must be seen.
func Server(t testing.TB) string {
	t.Helper()
	address := os.Getenv(Variable)
	switch {
	case address != "":
	case os.Getenv("CI") == "true":
		t.Fatalf("%s is not set; run the tests with make test", Variable)
	default:
		t.Skipf("%s is not set; make test starts a server", Variable)
	}
	return address
}

// NewEmpty makes a database without tables, which is dropped at the end of the
// test, and returns its address.
func NewEmpty(t testing.TB) string {
	t.Helper()
	return NewOn(t, Server(t))
}

// New makes a database with this binary's schema, which is dropped at the end of
// the test, and returns its address.
func New(t testing.TB) string {
	t.Helper()
	address := NewEmpty(t)
	if err := postgres.Migrate(t.Context(), postgres.Options{URL: address}); err != nil {
		t.Fatal(err)
	}
	return address
}

// NewOn makes a database without tables on a given server, with options of CREATE
// DATABASE.
func NewOn(t testing.TB, server string, options ...string) string {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text()[:12])
	Exec(t, server, "CREATE DATABASE "+name+" "+strings.Join(options, " "))
	t.Cleanup(func() {
		run(context.WithoutCancel(t.Context()), t, server, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	})
	return Sibling(t, server, name)
}

// Sibling returns the address of another database on the same server.
func Sibling(t testing.TB, address, name string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatalf("%s is not a URL", Variable)
	}
	u.Path = "/" + name
	return u.String()
}

// As returns the address with another role.
func As(t testing.TB, address, role, password string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatalf("%s is not a URL", Variable)
	}
	u.User = url.UserPassword(role, password)
	return u.String()
}

// Name returns the name of the database in an address.
func Name(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal("not a URL")
	}
	return strings.TrimPrefix(u.Path, "/")
}

// Exec runs SQL by hand, on a connection of its own.
func Exec(t testing.TB, address, sql string) {
	t.Helper()
	run(t.Context(), t, address, sql)
}

func run(ctx context.Context, t testing.TB, address, sql string) {
	t.Helper()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
