package storm_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"specialroutes.example/services/estate"
)

// suite is what the storms share.
type suite struct {
	soak time.Duration // how long the long form lasts; 0 is the small one

	estate  *estate.Estate
	backend *backend
}

// shared is set up by TestMain before any test runs.
var shared suite

func TestMain(m *testing.M) {
	flag.DurationVar(&shared.soak, "soak", 0, "`how long` the storms go on; 0 is once and short")
	flag.Parse()
	os.Exit(shared.run(m))
}

// hold is how long a storm lasts.
func (s *suite) hold() time.Duration {
	if s.soak > 0 {
		return 30 * time.Second
	}
	return 4 * time.Second
}

func (s *suite) run(m *testing.M) (code int) {
	dir, err := os.MkdirTemp("", "storm-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "storm:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := s.start(dir); err != nil {
		fmt.Fprintln(os.Stderr, "storm:", err)
		code = 1
	} else {
		code = m.Run()
	}
	if err := s.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "storm: stop:", err)
		code = 1
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "storm: goroutines are left:", err)
		code = 1
	}
	return code
}

// settings are laid over the gateways' configuration. Idle connections to upstreams
// go soon, so that a gateway comes to rest soon. To connect and to send a head may take
// long: on a busy machine thousands do it at the same time.
const settings = `
instances: {organizationservice: [{id: backend, address: %q}]}
upstream: {idleTimeout: 1s}
timeouts: {header: 8s, response: 60s, connect: 10s}
`

func (s *suite) start(dir string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	bin, err := estate.Build(ctx, filepath.Join(dir, "bin"))
	if err != nil {
		return err
	}
	// The race detector multiplies memory, which is measured here: the gateway goes
	// without it, whatever this test was built with.
	build := exec.CommandContext(ctx, "go", "build", "-o", bin.Path(estate.Gateway), "specialroutes.example/gateway")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if s.backend, err = startBackend(); err != nil {
		return err
	}
	s.estate, err = estate.Start(ctx, estate.Options{
		Dir: filepath.Join(dir, "estate"), Bin: bin, Gateways: 2,
		GatewayYAML: fmt.Sprintf(settings, s.backend.address),
		Env:         map[string][]string{estate.Gateway + "-1": {"GATEWAY_LOOP=false"}},
	})
	return err
}

func (s *suite) stop() error {
	var errs []error
	if s.estate != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		errs = append(errs, s.estate.Stop(ctx))
	}
	if s.backend != nil {
		errs = append(errs, s.backend.close())
	}
	client.CloseIdleConnections()
	return errors.Join(errs...)
}
