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

	// FixedPorts gives the processes the ports that the documentation names, those
	// of further gateways excepted. Otherwise all ports are free ones.
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

// Estate is a running estate. Its methods are safe for concurrent use.
type Estate struct {
	at        addresses
	output    *progress
	processes []*Process // in the order in which they stop
}

// Start starts the estate and returns when every process is ready. If one does
// not get there, all are killed, and the error is a *StartError with the last
// lines of its log. A port in use is a *service.ListenError, before anything has
// started. Cancelling ctx ends the start, but not an estate that is up: Stop does.
func Start(ctx context.Context, o Options) (*Estate, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("estate: %w", err)
	}
	o.Dir = dir
	o.Gateways = max(o.Gateways, 1)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("estate: %w", err)
	}
	at, err := reserve(o.FixedPorts, o.Gateways)
	if err != nil {
		return nil, err
	}
	e := &Estate{at: at, output: &progress{w: o.Output}}
	services, gateways, err := plan(o, at)
	if err != nil {
		return nil, err
	}
	e.processes = append(gateways, services...)
	// A gateway that finds specialroutes answering opens at once.
	for _, together := range [][]*Process{services, gateways} {
		if err := e.startAll(ctx, together); err != nil {
			return nil, errors.Join(err, each(e.processes, func(p *Process) error { p.Kill(); return nil }))
		}
	}
	return e, nil
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
