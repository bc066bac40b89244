package postgres_test

import (
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"specialroutes.example/specialroutes/internal/store"
	"specialroutes.example/specialroutes/internal/store/postgres"
	"specialroutes.example/specialroutes/internal/store/postgres/postgrestest"
	"specialroutes.example/specialroutes/internal/store/storetest"
)

func TestMain(m *testing.M) {
	if code, isChild := child(); isChild {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

// open opens a store that is closed at the end of the test.
func open(t *testing.T, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() }) // it may be closed twice
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	server := postgrestest.Server(t)
	storetest.Exercise(t, func(t *testing.T) storetest.Database {
		address := postgrestest.New(t)
		return storetest.Database{
			Shared: true,
			Open: func(t *testing.T, sources store.Sources) store.Store {
				return open(t, postgres.Options{URL: address, PoolSize: 4, Sources: sources})
			},
			Exec: func(t *testing.T, sql string) { postgrestest.Exec(t, address, sql) },
			Backup: func(t *testing.T) func(*testing.T) {
				name := postgrestest.Name(t, address)
				saved := name + "_saved"
				postgrestest.Exec(t, server, "CREATE DATABASE "+saved+" TEMPLATE "+name)
				return func(t *testing.T) {
					postgrestest.Exec(t, server, "DROP DATABASE "+name)
					postgrestest.Exec(t, server, "ALTER DATABASE "+saved+" RENAME TO "+name)
				}
			},
		}
	})
}

// TestNamesSortByBytesWhateverTheDatabasesLocale works on a database that sorts by
// letters first, as many languages do and C does not.
func TestNamesSortByBytesWhateverTheDatabasesLocale(t *testing.T) {
	t.Parallel()
	server := postgrestest.Server(t)
	if column(t, server, `SELECT count(*)::text FROM pg_collation
		WHERE collname = 'en-x-icu' AND current_setting('server_version_num')::int >= 150000`)[0] == "0" {
		t.Skip("the server cannot make a database that sorts by ICU's rules")
	}
	address := postgrestest.NewOn(t, server, `LOCALE_PROVIDER icu ICU_LOCALE 'en-u-ka-shifted' TEMPLATE template0`)
	if got := column(t, address, `SELECT x FROM (VALUES ('a-c'), ('ab')) AS v (x) ORDER BY x`); got[0] != "ab" {
		t.Fatalf("the database sorts %v, want by letters before hyphens", got)
	}
	if err := postgres.Migrate(t.Context(), postgres.Options{URL: address}); err != nil {
		t.Fatal(err)
	}
	s := open(t, postgres.Options{URL: address})
	for _, service := range []string{"ab", "a-c"} {
		mustPut(t, s, service, 1)
	}
	want := []string{"a-c", "ab"}
	list, err := s.List(t.Context(), "", 0)
	if err != nil || list[0].Service != want[0] || list[1].Service != want[1] {
		t.Errorf("List() = %v, %v, want %v", list, err, want)
	}
	rest, err := s.List(t.Context(), "a-c", 0)
	if err != nil || len(rest) != 1 {
		t.Errorf("List() after a-c = %v, %v, want ab", rest, err)
	}
}

func TestOpenDoesNotRepeatAPasswordInItsError(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"postgres://user:hunter2@host:notaport/db",
		"postgres://user:hunter2@host/db?sslmode=perhaps",
		"postgres://user:hunter2@host/db?pool_max_conns=many",
		"postgres://user:hun%ter2@host/db",
	} {
		_, err := postgres.Open(t.Context(), postgres.Options{URL: address})
		if err == nil {
			t.Errorf("Open(%q) gave no error", address)
		} else if strings.Contains(err.Error(), "ter2") {
			t.Errorf("the error repeats the password: %v", err)
		}
		if err := postgres.Migrate(t.Context(), postgres.Options{URL: strings.ReplaceAll(address, "pool_max_conns", "sslmode")}); err == nil {
			t.Errorf("Migrate(%q) gave no error", address)
		} else if strings.Contains(err.Error(), "ter2") {
			t.Errorf("the error of Migrate repeats the password: %v", err)
		}
	}
}
