// Package consulagent runs a private Consul agent: a server of its own in
// development mode, on free ports of 127.0.0.1, whose state is in memory. An agent
// that was stopped or killed comes back empty, on the same ports, as one does whose
// disk was lost. Tests stand on it.
package consulagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// ErrStartTimeout says that the agent did not become ready in time.
var ErrStartTimeout = errors.New("consulagent: the agent did not become ready")

// Options say how the agent is run. The zero value is useful.
type Options struct {
	// Binary is the consul program; "" looks for one, see Find.
	Binary string

	// Config is further configuration in HCL, over that of this package.
	Config string

	// Output takes what the agent logs; nil drops it.
	Output io.Writer

	// StartLimit bounds the wait for the agent to be ready; 0 is 60 s.
	StartLimit time.Duration
}

// Agent is a Consul agent. Its methods are safe for concurrent use.
type Agent struct {
	options Options
	dir     string

	mu    sync.Mutex
	ports ports
	run   *run // nil: stopped
}

// ports are where the agent listens.
type ports struct{ http, serf, server int }

// Start runs an agent and returns when it answers. The error is ErrNotInstalled
// when there is no program. The caller must call Remove.
func Start(ctx context.Context, o Options) (*Agent, error) {
	if o.Binary == "" {
		var err error
		if o.Binary, err = Find(); err != nil {
			return nil, err
		}
	}
	if o.StartLimit == 0 {
		o.StartLimit = 60 * time.Second
	}
	dir, err := os.MkdirTemp("", "consul")
	if err != nil {
		return nil, fmt.Errorf("consulagent: %w", err)
	}
	a := &Agent{options: o, dir: dir}
	if err := a.Start(ctx); err != nil {
		return nil, errors.Join(err, a.Remove(context.WithoutCancel(ctx)))
	}
	return a, nil
}

// Address is host:port of the agent's HTTP interface. It stays the same over Stop
// and Start.
func (a *Agent) Address() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(a.ports.http))
}

// Start starts the agent again, empty, and returns when it answers. It does nothing
// when the agent runs.
func (a *Agent) Start(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.run != nil {
		return nil
	}
	const tries = 5
	var err error
	for range tries {
		fixed := a.ports.http != 0
		if !fixed {
			if a.ports, err = freePorts(); err != nil {
				return err
			}
		}
		if a.run, err = a.start(ctx); err == nil {
			return nil
		}
		if fixed || ctx.Err() != nil {
			return err
		}
		a.ports = ports{} // somebody may have taken one meanwhile: try others
	}
	return err
}

// Stop asks the agent to leave. When ctx ends first it is killed. It does nothing
// when the agent is stopped.
func (a *Agent) Stop(ctx context.Context) error { return a.end(ctx, syscall.SIGINT) }

// Kill ends the agent as a crash does.
func (a *Agent) Kill(ctx context.Context) error { return a.end(ctx, syscall.SIGKILL) }

func (a *Agent) end(ctx context.Context, signal syscall.Signal) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.run == nil {
		return nil
	}
	err := a.run.end(ctx, signal)
	a.run = nil
	return err
}

// Remove stops the agent and deletes its directory. The agent is not usable
// afterwards.
func (a *Agent) Remove(ctx context.Context) error {
	return errors.Join(a.Stop(ctx), os.RemoveAll(a.dir))
}

// command prepares the program with as little environment as it needs: CONSUL_*
// variables of the caller would change what it does.
func (a *Agent) command() *exec.Cmd {
	cmd := exec.Command(a.options.Binary, "agent", "-dev",
		"-node=agent", "-bind=127.0.0.1", "-client=127.0.0.1", "-disable-host-node-id",
		fmt.Sprintf("-http-port=%d", a.ports.http), fmt.Sprintf("-serf-lan-port=%d", a.ports.serf),
		fmt.Sprintf("-server-port=%d", a.ports.server),
		"-serf-wan-port=-1", "-dns-port=-1", "-grpc-port=-1",
		"-hcl=disable_update_check=true ports { grpc_tls = -1 }",
		"-hcl="+a.options.Config)
	cmd.Dir = a.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + a.dir}
	cmd.SysProcAttr = sysProcAttr()
	return cmd
}

// Free ports are taken from below those that systems give to outgoing connections,
// so that an agent that is stopped finds its ports again when it starts.
const (
	lowestFreePort  = 14000
	highestFreePort = 17999
	freePortTries   = 1000
)

// freePorts finds ports that nobody uses at the moment, for TCP and UDP.
func freePorts() (ports, error) {
	var p ports
	for _, to := range []*int{&p.http, &p.serf, &p.server} {
		for try := 0; *to == 0; try++ {
			if try == freePortTries {
				return ports{}, errors.New("consulagent: no free port")
			}
			port := lowestFreePort + rand.IntN(highestFreePort-lowestFreePort+1)
			if port != p.http && port != p.serf && free(port) {
				*to = port
			}
		}
	}
	return p, nil
}

func free(port int) bool {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	stream, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	defer stream.Close()
	packets, err := net.ListenPacket("udp", address) //nolint:noctx // it ends at once by its Close
	if err != nil {
		return false
	}
	return packets.Close() == nil
}
