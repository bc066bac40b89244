package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"specialroutes.example/services/estate/pgcluster"
	"specialroutes.example/services/routing"
	"specialroutes.example/specialroutes/internal/store"
	"specialroutes.example/specialroutes/internal/store/postgres"
	"specialroutes.example/specialroutes/internal/store/postgres/postgrestest"
	"specialroutes.example/specialroutes/internal/store/storetest"
)

// back is how soon writes must be back after a database was away.
const back = 10 * time.Second

// cluster starts a server that a test may stop.
func cluster(t *testing.T) *pgcluster.Cluster {
	t.Helper()
	// One password, as servers have that stand in for each other.
	c, err := pgcluster.Start(t.Context(), pgcluster.Options{Password: "secret"})
	if errors.Is(err, pgcluster.ErrNotInstalled) && os.Getenv("CI") != "true" {
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

// migratedOn makes a migrated database on a cluster.
func migratedOn(t *testing.T, c *pgcluster.Cluster) (address string) {
	t.Helper()
	if err := postgres.Migrate(t.Context(), postgres.Options{URL: c.URL("postgres")}); err != nil {
		t.Fatal(err)
	}
	return c.URL("postgres")
}

// put writes a record.
func put(ctx context.Context, s store.Store, service string, weight int64) error {
	_, err := s.Write(ctx, service, store.Author{Who: "tester"}, func(*store.Stored) (*routing.Record, error) {
		return storetest.Record(service, weight), nil
	})
	return err
}

func mustPut(t *testing.T, s store.Store, service string, weight int64) {
	t.Helper()
	if err := put(t.Context(), s, service, weight); err != nil {
		t.Fatal(err)
	}
}

// wantWritesBack waits until a write succeeds; meanwhile each must say that the
// database is not available.
func wantWritesBack(t *testing.T, s store.Store, service string) {
	t.Helper()
	start := time.Now()
	waitFor(t, back, "write", func() bool {
		err := put(t.Context(), s, service, 1)
		if err != nil && !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("while the database comes back Write = %v, want ErrUnavailable", err)
		}
		return err == nil
	})
	t.Logf("writes were back after %v", time.Since(start).Round(time.Millisecond))
}

func TestConnectionsThatTheServerEndsAreReplaced(t *testing.T) {
	t.Parallel()
	address := postgrestest.New(t)
	s := open(t, postgres.Options{URL: address, PoolSize: 4})
	mustPut(t, s, "before", 1)
	after, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other := open(t, postgres.Options{URL: address + "&application_name=other"})
	postgrestest.Exec(t, address, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	wantWritesBack(t, other, "meanwhile")
	start := time.Now()
	waitFor(t, 2*time.Second, "change of the other process", func() bool {
		c, err := s.Changes(t.Context(), after)
		if err != nil && !errors.Is(err, store.ErrUnavailable) {
			t.Fatal(err)
		}
		return err == nil && !c.Full && len(c.Records) == 1
	})
	t.Logf("changes flowed again after %v", time.Since(start).Round(time.Millisecond))
}

func TestRestartsOfTheServerAreSurvived(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	address := migratedOn(t, c)
	s := open(t, postgres.Options{URL: address, PoolSize: 4})
	for name, end := range map[string]func(context.Context) error{"stopped": c.Stop, "crashed": c.Kill} {
		mustPut(t, s, "svc", 1)
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			start := time.Now()
			err := put(t.Context(), s, "svc", 2)
			if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUncertain) {
				t.Errorf("%s: Write = %v, want ErrUnavailable", name, err)
			}
			if _, err := s.Get(t.Context(), "svc"); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s: Get = %v, want ErrUnavailable", name, err)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("%s: it took %v to say so", name, took)
			}
		}
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantWritesBack(t, s, "svc")
	}
}

func TestOpenDoesNotNeedTheServer(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	address := migratedOn(t, c)
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := open(t, postgres.Options{URL: address})
	if err := s.Ping(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Ping() = %v, want ErrUnavailable", err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantWritesBack(t, s, "svc")
}

func TestAReadOnlyServerRefusesWritesOnly(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	address := migratedOn(t, c)
	s := open(t, postgres.Options{URL: address, PoolSize: 4})
	mustPut(t, s, "svc", 1)
	demote(t, address)
	var err error
	waitFor(t, back, "refusal", func() bool {
		err = put(t.Context(), s, "svc", 2)
		return err != nil
	})
	if !errors.Is(err, store.ErrReadOnly) || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Write = %v, want ErrReadOnly, which is ErrUnavailable", err)
	}
	if _, err := s.Get(t.Context(), "svc"); err != nil {
		t.Errorf("Get = %v", err)
	}
	if _, err := s.Changes(t.Context(), store.Cursor{}); err != nil {
		t.Errorf("Changes = %v", err)
	}
	promote(t, address)
	wantWritesBack(t, s, "svc")
}

// TestAFailoverIsFollowed lets a standby take over, which has not got the last
// change.
func TestAFailoverIsFollowed(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, primary *pgcluster.Cluster){
		"from a primary that died": func(t *testing.T, primary *pgcluster.Cluster) {
			if err := primary.Kill(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		// Its connections stay as they are, so the pool must be told to look elsewhere.
		"from a primary that lives on as a standby": func(t *testing.T, primary *pgcluster.Cluster) {
			demote(t, primary.URL("postgres"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failover(t, end)
		})
	}
}

func failover(t *testing.T, end func(t *testing.T, primary *pgcluster.Cluster)) {
	primary, standby := cluster(t), cluster(t)
	address := bothHosts(t, migratedOn(t, primary), standby.URL("postgres"))
	s := open(t, postgres.Options{URL: address, PoolSize: 4})
	mustPut(t, s, "svc", 1)
	copyDatabase(t, primary, standby)
	demote(t, standby.URL("postgres"))
	mustPut(t, s, "lost", 1)
	seen, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	end(t, primary)
	waitFor(t, back, "refusal", func() bool {
		err := put(t.Context(), s, "lost", 2)
		if err != nil && !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("before the standby takes over Write = %v, want ErrUnavailable", err)
		}
		return err != nil
	})
	promote(t, standby.URL("postgres"))
	wantWritesBack(t, s, "svc")
	c, err := s.Changes(t.Context(), seen)
	if err != nil || !c.Full || len(c.Records) != 1 || c.Records[0].Service != "svc" {
		t.Errorf("who has seen the lost change gets %+v, %v, want everything, without it", c, err)
	}
}

// demote makes a server read-only.
func demote(t *testing.T, address string) {
	t.Helper()
	postgrestest.Exec(t, address, `ALTER SYSTEM SET default_transaction_read_only = on`)
	postgrestest.Exec(t, address, `SELECT pg_reload_conf()`)
}

// promote makes a read-only server writable.
func promote(t *testing.T, address string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("default_transaction_read_only", "off")
	u.RawQuery = q.Encode()
	postgrestest.Exec(t, u.String(), `ALTER SYSTEM RESET default_transaction_read_only`)
	postgrestest.Exec(t, u.String(), `SELECT pg_reload_conf()`)
}

func TestFiftyWritersShareAPoolOfFour(t *testing.T) {
	t.Parallel()
	const writers = 50
	s := open(t, postgres.Options{URL: postgrestest.New(t), PoolSize: 4,
		Limits: postgres.Limits{Acquire: time.Minute, Write: time.Minute, Read: time.Minute, Bulk: time.Minute}})
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			service := fmt.Sprintf("svc-%d", i)
			if err := put(t.Context(), s, service, 5); err != nil {
				t.Error(err)
			}
			if got, err := s.Get(t.Context(), service); err != nil || got.Broken != "" {
				t.Errorf("Get = %+v, %v", got, err)
			}
			if _, err := s.Changes(t.Context(), store.Cursor{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if head, err := s.Head(t.Context()); err != nil || head.Revision != writers {
		t.Errorf("Head() = %v, %v, want revision %d", head, err, writers)
	}
}

func TestWritersWaitForEachOtherWhateverTheDefaultIsolation(t *testing.T) {
	t.Parallel()
	const writers = 10
	address := postgrestest.New(t)
	postgrestest.Exec(t, address, `ALTER DATABASE `+postgrestest.Name(t, address)+
		` SET default_transaction_isolation = 'serializable'`)
	s := open(t, postgres.Options{URL: address})
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range 5 {
				if err := put(t.Context(), s, "svc", 5); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestAWaitForAFreeConnectionEnds(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Options{URL: postgrestest.New(t), PoolSize: 1,
		Limits: postgres.Limits{Acquire: 100 * time.Millisecond}})
	mustPut(t, s, "svc", 1)
	_, err := s.Write(t.Context(), "svc", store.Author{}, func(*store.Stored) (*routing.Record, error) {
		// The only connection is ours, so this one waits in vain.
		if _, err := s.Get(t.Context(), "svc"); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Get = %v, want ErrUnavailable", err)
		}
		return storetest.Record("svc", 2), nil
	})
	if err != nil {
		t.Errorf("Write = %v", err)
	}
	if got, err := s.Get(t.Context(), "svc"); err != nil || *got.Record.Variants[0].Weight != 2 {
		t.Errorf("afterwards Get = %s, %v, want weight 2", got.Raw, err)
	}
}

// TestAWaitForAnotherWriterEnds holds the counter's lock from outside.
func TestAWaitForAnotherWriterEnds(t *testing.T) {
	t.Parallel()
	address := postgrestest.New(t)
	s := open(t, postgres.Options{URL: address, Limits: postgres.Limits{Write: 200 * time.Millisecond}})
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT FROM counter FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	if err := put(t.Context(), s, "svc", 1); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Write = %v, want ErrUnavailable", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, "svc", 2)
	if head, err := s.Head(t.Context()); err != nil || head.Revision != 1 {
		t.Errorf("Head() = %v, %v, want revision 1", head, err)
	}
}

func TestASilentNetworkIsNoticed(t *testing.T) {
	t.Parallel()
	address := postgrestest.New(t)
	p := newProxy(t, address)
	s := open(t, postgres.Options{URL: p.address(t, address), PoolSize: 4})
	direct := open(t, postgres.Options{URL: address})
	inParallel := func(n int, f func()) {
		var wg sync.WaitGroup
		for range n {
			wg.Go(f)
		}
		wg.Wait()
	}
	inParallel(20, func() { // opens all four connections
		if err := put(t.Context(), s, "before", 1); err != nil {
			t.Error(err)
		}
	})
	p.silence() // what is connected stays so, and says nothing any more
	mustPut(t, direct, "meanwhile", 1)
	start := time.Now()
	inParallel(8, func() { // finds each of the four dead
		if _, err := s.Get(t.Context(), "meanwhile"); err != nil && !errors.Is(err, store.ErrUnavailable) {
			t.Error(err)
		}
	})
	waitFor(t, 5*time.Second, "record of the other process", func() bool {
		_, err := s.Get(t.Context(), "meanwhile")
		if err != nil && !errors.Is(err, store.ErrUnavailable) {
			t.Fatal(err)
		}
		return err == nil
	})
	t.Logf("changes flowed again after %v", time.Since(start).Round(time.Millisecond))
	wantWritesBack(t, s, "after")
}

// TestAWriterWhoVanishesGivesTheLockBack cuts a process off while it holds the lock
// that orders all writers.
func TestAWriterWhoVanishesGivesTheLockBack(t *testing.T) {
	t.Parallel()
	address := postgrestest.New(t)
	p := newProxy(t, address)
	vanishing := open(t, postgres.Options{URL: p.address(t, address),
		Limits: postgres.Limits{Write: 500 * time.Millisecond}})
	_, err := vanishing.Write(t.Context(), "svc", store.Author{}, func(*store.Stored) (*routing.Record, error) {
		p.silence()
		return storetest.Record("svc", 1), nil
	})
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the vanished writer's Write = %v, want ErrUnavailable", err)
	}
	other := open(t, postgres.Options{URL: address, Limits: postgres.Limits{Write: back}})
	start := time.Now()
	mustPut(t, other, "svc", 2)
	t.Logf("the other writer had its turn after %v", time.Since(start).Round(time.Millisecond))
}

// TestALostCommitIsUncertain cuts the connection off when the commit was sent and
// its answer is on its way.
func TestALostCommitIsUncertain(t *testing.T) {
	t.Parallel()
	address := postgrestest.New(t)
	p := newProxy(t, address)
	s := open(t, postgres.Options{URL: p.address(t, address), Limits: postgres.Limits{Read: 500 * time.Millisecond}})
	mustPut(t, s, "svc", 1)
	p.silenceAnswersAfter("commit\x00") // not "read committed"
	err := put(t.Context(), s, "svc", 2)
	if !errors.Is(err, store.ErrUncertain) || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Write = %v, want ErrUncertain, which is ErrUnavailable", err)
	}
	direct := open(t, postgres.Options{URL: address})
	if got, err := direct.Get(t.Context(), "svc"); err != nil || *got.Record.Variants[0].Weight != 2 {
		t.Errorf("Get = %s, %v; this one was stored all the same", got.Raw, err)
	}
}
