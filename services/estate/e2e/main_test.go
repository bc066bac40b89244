package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"specialroutes.example/services/estate"
)

// suite holds what the tests of this package share: the binaries, built once, and
// one estate as `make demo` would start it, with a second gateway.
type suite struct {
	dir   string
	ports *ports

	build    func() (estate.Binaries, error)
	demo     func() (*estate.Estate, error)
	database func() (*server, error)

	mu      sync.Mutex
	started *estate.Estate
	server  *server
}

// shared is set up by TestMain before any test runs.
var shared = &suite{ports: &ports{given: map[string]bool{}}}

func TestMain(m *testing.M) {
	os.Exit(shared.run(m))
}

func (s *suite) run(m *testing.M) (code int) {
	dir, err := os.MkdirTemp("", "e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s.dir = dir
	s.build = sync.OnceValues(func() (estate.Binaries, error) {
		return estate.Build(context.Background(), filepath.Join(dir, "bin"))
	})
	s.demo = sync.OnceValues(s.startDemo)
	s.database = sync.OnceValues(s.startDatabase)

	code = m.Run()
	if err := s.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: stop the estate:", err)
		code = 1
	}
	client.CloseIdleConnections()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: goroutines are left:", err)
		code = 1
	}
	return code
}

func (s *suite) startDemo() (*estate.Estate, error) {
	bin, err := s.build()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	est, err := estate.Start(ctx, estate.Options{Dir: filepath.Join(s.dir, "demo"), Bin: bin, Gateways: 2})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = est
	return est, nil
}

func (s *suite) startDatabase() (*server, error) {
	started, err := startServer()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server = started
	return started, nil
}

// stop ends what the tests shared.
func (s *suite) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	if s.started != nil {
		errs = append(errs, stopEstate(ctx, s.started))
	}
	if s.server != nil && s.server.cluster != nil {
		errs = append(errs, s.server.cluster.Remove(ctx))
	}
	return errors.Join(errs...)
}

// stopEstate ends an estate with two gateways and checks that nothing is left.
func stopEstate(ctx context.Context, est *estate.Estate) error {
	addresses := []string{est.GatewayURL(0), est.GatewayURL(1), est.SpecialRoutesURL(), est.OldURL(), est.NewURL(), est.LicensingURL()}
	errs := []error{est.Stop(ctx)}
	for _, url := range addresses {
		if _, err := do("GET", url, nil, nil); err == nil {
			errs = append(errs, fmt.Errorf("%s still answers", url))
		}
	}
	return errors.Join(errs...)
}

// binaryPath returns the path of one program.
func binaryPath(t testing.TB, name string) string {
	t.Helper()

	return binaries(t).Path(name)
}

// binaries returns the programs, built by the first test that asks.
func binaries(t testing.TB) estate.Binaries {
	t.Helper()
	bin, err := shared.build()
	if err != nil {
		t.Fatalf("build: %v", err)
	}
	return bin
}

// demo returns the shared estate and its records' client. A test that uses it
// writes the record that it needs before anything else.
func demo(t testing.TB) (*estate.Estate, routes) {
	t.Helper()
	est, err := shared.demo()
	if err != nil {
		t.Fatalf("start the estate: %v", err)
	}
	return est, routes{url: est.SpecialRoutesURL(), admins: []string{est.GatewayAdminURL(0), est.GatewayAdminURL(1)}}
}

// long tells whether the waits that a user would see at full length are wanted at
// full length.
func long() bool { return os.Getenv("E2E_LONG") == "1" }

// inCI tells whether a missing tool is a failure and not a reason to skip.
func inCI() bool { return os.Getenv("CI") == "true" }
