// Package estate starts the whole estate on this machine as real processes:
// specialroutes, gateways, both organization services and the licensing service.
// `make demo` is made of it, and the end-to-end tests and benchmarks stand on it.
package estate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// The names of the processes. Further gateways are gateway-1, gateway-2 and so on.
const (
	SpecialRoutes    = "specialroutes"
	Gateway          = "gateway"
	OrgServiceOld    = "orgservice-old"
	OrgServiceNew    = "orgservice-new"
	LicensingService = "licensingservice"
)

// Options is what Start starts.
type Options struct {
	// Dir is the directory of the logs, the configuration and the state. It is made
	// if it is missing; state that is there is used again. Required.
	Dir string

	// Bin are the programs, from Build. Required.
	Bin Binaries

	// DatabaseURL is where specialroutes keeps its records; "" is an SQLite file in
	// Dir.
	DatabaseURL string

	// Gateways is the number of gateways; 0 is one.
	Gateways int

	// Instances are started beside the estate's own services.
	Instances []Instance

	// Consul is the address of a Consul agent, host:port, that the caller runs, as
	// with package consulagent: every process registers there, and the gateways take
	// the instances from it. Start returns when it lists all that gateways call. The
	// agent may go and come while the estate runs. "" tells the gateways a fixed list.
	Consul string

	// FixedPorts gives the processes the ports that the documentation names, those
	// of Instances and further gateways excepted. Otherwise all ports are free ones.
	FixedPorts bool

	// Output is told of each process that is ready, a line each. Nil is nobody.
	Output io.Writer

	// GatewayYAML is laid over the gateways' configuration: mappings are merged,
	// all else is replaced.
	GatewayYAML string

	// Env holds further variables, "NAME=value", by the name of the process; they
	// win over those that Start sets. A process inherits PATH, HOME and TMPDIR and
	// nothing else, so that the caller's shell changes no result.
	Env map[string][]string
}

// Instance is a further copy of the old organization service. It runs as a process
// of its own, whose name is the ID.
type Instance struct {
	ID      string            // names it in the registry and as X-Served-By; unique in the estate
	Service string            // the name in the registry: organizationservice, or one that a record leads to
	Labels  map[string]string // what gateways choose it by; names and values without commas and blanks at their ends
	Prefix  string            // before the contact names of its answers; "" is OLD::
}

// Estate is a running estate. Its methods are safe for concurrent use.
type Estate struct {
	at        addresses
	output    *progress
	claim     *claim
	processes []*Process // in the order in which they stop
}

// Start starts the estate and returns when every process is ready. If one does
// not get there, all are killed, and the error is a *StartError with the last
// lines of its log. A port in use is a *service.ListenError, and a directory in use
// ErrInUse, before anything has started. Cancelling ctx ends the start, but not an
// estate that is up: Stop does.
func Start(ctx context.Context, o Options) (*Estate, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("estate: %w", err)
	}
	o.Dir = dir
	o.Gateways = max(o.Gateways, 1)
	claim, err := claimDir(dir)
	if err != nil {
		return nil, err
	}
	e := &Estate{output: &progress{w: o.Output}, claim: claim}
	if err := e.start(ctx, o); err != nil {
		err = errors.Join(err, each(e.processes, func(p *Process) error { p.Kill(); return nil }))
		claim.release()
		return nil, err
	}
	return e, nil
}

// start starts what o says, and fails where one of it does.
func (e *Estate) start(ctx context.Context, o Options) error {
	var err error
	if e.at, err = reserve(o.FixedPorts, o.Gateways, o.Instances); err != nil {
		return err
	}
	services, gateways, err := plan(o, e.at)
	if err != nil {
		return err
	}
	e.processes = append(gateways, services...)
	if err := e.startAll(ctx, services); err != nil {
		return err
	}
	// A gateway that finds specialroutes answering, and all instances in Consul, opens
	// at once and fails no call.
	if o.Consul != "" {
		if err := awaitListed(ctx, o); err != nil {
			return err
		}
	}
	return e.startAll(ctx, gateways)
}

// errGivenUp ends the start of processes because another one has failed.
var errGivenUp = errors.New("another process failed")

func (e *Estate) startAll(ctx context.Context, processes []*Process) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	return each(processes, func(p *Process) error {
		err := p.start(ctx, os.O_TRUNC)
		switch {
		case err == nil:
			e.output.line("%s is ready on %s", p.Name(), p.spec.url)
		case errors.Is(err, errGivenUp):
			return nil // the one that failed says why
		default:
			cancel(errGivenUp) // the others need not go on
		}
		return err
	})
}

// each calls f for all the processes at the same time.
func each(processes []*Process, f func(*Process) error) error {
	errs := make([]error, len(processes))
	var group sync.WaitGroup
	for i, p := range processes {
		group.Go(func() { errs[i] = f(p) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// Stop stops the gateways, then all others, and returns when no process is left.
// Processes that still run when ctx ends are killed. The error names those, and
// those that ended by themselves or with another code than 0 (*ExitError).
func (e *Estate) Stop(ctx context.Context) error {
	var gateways, others []*Process
	for _, p := range e.processes {
		if p.spec.binary == Gateway {
			gateways = append(gateways, p)
		} else {
			others = append(others, p)
		}
	}
	defer e.claim.release()
	err := each(gateways, func(p *Process) error { return p.finish(ctx) })
	return errors.Join(err, each(others, func(p *Process) error { return p.finish(ctx) }))
}

// Process returns the process of a name, or nil.
func (e *Estate) Process(name string) *Process {
	for _, p := range e.processes {
		if p.Name() == name {
			return p
		}
	}
	return nil
}

// Processes returns all processes.
func (e *Estate) Processes() []*Process { return append([]*Process(nil), e.processes...) }

// GatewayURL is the base URL of a gateway's data port; gateways count from 0.
func (e *Estate) GatewayURL(i int) string { return "http://" + e.at.gateways[i].data }

// GatewayAdminURL is the base URL of a gateway's admin port.
func (e *Estate) GatewayAdminURL(i int) string { return "http://" + e.at.gateways[i].admin }

// SpecialRoutesURL is the base URL of specialroutes.
func (e *Estate) SpecialRoutesURL() string { return "http://" + e.at.specialRoutes }

// OldURL is the base URL of the old organization service.
func (e *Estate) OldURL() string { return "http://" + e.at.old }

// NewURL is the base URL of the new organization service.
func (e *Estate) NewURL() string { return "http://" + e.at.new }

// LicensingURL is the base URL of the licensing service.
func (e *Estate) LicensingURL() string { return "http://" + e.at.licensing }

// progress writes lines from several goroutines.
type progress struct {
	mu sync.Mutex
	w  io.Writer
}

func (p *progress) line(format string, args ...any) {
	if p.w == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, format+"\n", args...)
}
