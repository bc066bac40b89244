package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"specialroutes.example/services/estate"
)

// contender is one of those that are compared.
type contender struct {
	name    string
	address string // host:port of its data port
	pid     func() int
	restart func(ctx context.Context) error
}

func (c *contender) url(path string) string { return "http://" + c.address + prefix + path }

// setup is everything that runs during a measurement.
type setup struct {
	dir      string
	at       addresses
	estate   *estate.Estate
	children map[string]*child // by name
	logs     func()            // waits until HAProxy's log is closed
	endLogs  context.CancelFunc

	contenders []*contender
}

// The names of the contenders, as they are printed.
const (
	nameGateway = "gateway"
	nameWithout = "gateway, `loop: false`"
	nameNginx   = "nginx"
	nameHAProxy = "HAProxy"

	nameBackends = "backends"
)

// stopLimit is for the estate to end.
const stopLimit = 20 * time.Second

// start starts it all in a directory of its own.
func start(ctx context.Context, o Options) (_ *setup, err error) {
	s := &setup{children: map[string]*child{}, logs: func() {}, endLogs: func() {}}
	if s.dir, err = os.MkdirTemp("", "bench-"); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	bin, err := build(ctx, filepath.Join(s.dir, "bin"), o.Profile)
	if err != nil {
		return nil, err
	}
	// From here on: what is not measured stays on the other core, with its children.
	if err := pin(ctx, os.Getpid(), coreLoad); err != nil {
		return nil, err
	}
	if err := s.startOthers(ctx, o); err != nil {
		return nil, err
	}
	if err := s.startEstate(ctx, bin, o); err != nil {
		return nil, err
	}
	return s, s.ready(ctx)
}

// startOthers starts the backends and, if they are wanted, the peers.
func (s *setup) startOthers(ctx context.Context, o Options) error {
	free, err := freeAddresses(4)
	if err != nil {
		return err
	}
	s.at = addresses{old: free[0], new: free[1], nginx: free[2], haproxy: free[3]}
	if len(o.Backends) == 2 {
		s.at.old, s.at.new = o.Backends[0], o.Backends[1]
	}
	if err := os.Chmod(s.dir, 0o755); err != nil { // nginx's workers run as another user
		return fmt.Errorf("bench: %w", err)
	}
	if err := writeFiles(s.dir, s.at); err != nil {
		return err
	}
	if len(o.Backends) != 2 {
		if s.children[nameBackends], err = startNginx(s.dir, "backends", coreLoad); err != nil {
			return err
		}
	}
	if o.Alone {
		return nil
	}
	ctx, s.endLogs = context.WithCancel(context.WithoutCancel(ctx))
	if s.logs, err = keepLog(ctx, s.dir); err != nil {
		s.logs = func() {}
		return err
	}
	s.addPeer(nameNginx, s.at.nginx, func() (*child, error) { return startNginx(s.dir, "nginx", coreMeasured) })
	s.addPeer(nameHAProxy, s.at.haproxy, func() (*child, error) { return startHAProxy(s.dir, coreMeasured) })
	return nil
}

// addPeer adds a contender that is a child. It does not run yet.
func (s *setup) addPeer(name, address string, start func() (*child, error)) {
	s.contenders = append(s.contenders, &contender{
		name: name, address: address,
		pid: func() int { return s.children[name].pid() },
		restart: func(ctx context.Context) error {
			if old := s.children[name]; old != nil {
				old.stop()
			}
			c, err := start()
			if err != nil {
				return err
			}
			s.children[name] = c
			return await(ctx, "http://"+address+prefix+smallPath)
		},
	})
}

// startEstate starts specialroutes and two gateways, the second without the loop; of
// a profile only the first.
// Their instance of the organization service is the first backend.
func (s *setup) startEstate(ctx context.Context, bin estate.Binaries, o Options) (err error) {
	const second = estate.Gateway + "-1"
	env, gateways := map[string][]string{second: {"GATEWAY_LOOP=false"}}, 2
	if o.Profile != "" {
		env[estate.Gateway], gateways = []string{profileVariable + "=" + o.Profile}, 1
	}
	s.estate, err = estate.Start(ctx, estate.Options{
		Dir: filepath.Join(s.dir, "estate"), Bin: bin, Gateways: gateways, Env: env,
		GatewayYAML: fmt.Sprintf("instances: {organizationservice: [{id: old, address: %q}]}\n%s", s.at.old, o.GatewayYAML),
	})
	if err != nil {
		return err
	}
	ours := []*contender{s.gateway(nameGateway, estate.Gateway, s.estate.GatewayURL(0))}
	if gateways > 1 {
		ours = append(ours, s.gateway(nameWithout, second, s.estate.GatewayURL(1)))
	}
	s.contenders = append(ours, s.contenders...)
	record := fmt.Sprintf(`{"serviceName":"organizationservice","active":"Y","endpoint":"http://%s","weight":5}`, s.at.new)
	_, err = call(ctx, http.MethodPut, s.estate.SpecialRoutesURL()+"/v1/route/abtesting/organizationservice?wait=applied", record)
	return err
}

// gateway is the contender that is a process of the estate.
func (s *setup) gateway(name, process, url string) *contender {
	p := s.estate.Process(process)
	return &contender{
		name: name, address: strings.TrimPrefix(url, "http://"), pid: p.PID,
		restart: func(ctx context.Context) error {
			if err := p.Stop(ctx); err != nil {
				return err
			}
			if err := p.Start(ctx); err != nil {
				return err
			}
			return pin(ctx, p.PID(), coreMeasured)
		},
	}
}

// ready starts the peers, gives all contenders their core, and checks that each does
// its work.
func (s *setup) ready(ctx context.Context) error {
	for _, c := range s.contenders {
		if c.name == nameNginx || c.name == nameHAProxy {
			if err := c.restart(ctx); err != nil {
				return err
			}
		}
		if err := pin(ctx, c.pid(), coreMeasured); err != nil {
			return err
		}
		if err := splits(ctx, c.url(smallPath)); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// stop ends it all and removes the directory.
func (s *setup) stop() error {
	var err error
	if s.estate != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
		defer cancel()
		err = s.estate.Stop(ctx)
	}
	for _, c := range s.children {
		if c != nil {
			c.stop()
		}
	}
	s.endLogs()
	s.logs()
	return errors.Join(err, os.RemoveAll(s.dir))
}
