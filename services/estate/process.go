package estate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// Process is one program of the estate. It can be stopped, killed and started
// again; it keeps its ports. Its methods are safe for concurrent use, but who
// starts and stops it at the same time gets either.
type Process struct {
	spec spec

	mu  sync.Mutex
	run *run // the present one, or the last; nil before the first
}

// run is one run of the program.
type run struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process is gone and its code is known
	asked  bool          // Stop or Kill was called
}

// ExitError is a process that did not end as it should: by itself, or with
// another code than 0 after it was asked to.
type ExitError struct {
	Process string
	Code    int // -1 if a signal ended it
	Asked   bool
	Log     string // its last lines
}

func (e *ExitError) Error() string {
	how := "ended by itself"
	if e.Asked {
		how = "was stopped and ended"
	}
	return fmt.Sprintf("estate: %s %s with code %d; its log ends:\n%s", e.Process, how, e.Code, e.Log)
}

// Name is the name of the process.
func (p *Process) Name() string { return p.spec.name }

// URL is the base URL that the process serves on.
func (p *Process) URL() string { return p.spec.url }

// LogPath is the file with all that the process has written. It is begun anew by
// estate.Start and continued by Process.Start.
func (p *Process) LogPath() string { return p.spec.log }

// Start starts the process again, on the same ports, and returns when it is
// ready. A process that runs is left alone. The error is a *StartError, and then
// the process does not run.
func (p *Process) Start(ctx context.Context) error { return p.start(ctx, os.O_APPEND) }

// start takes the flag that the log is opened with.
func (p *Process) start(ctx context.Context, logFlag int) error {
	r, from, err := p.launch(logFlag)
	if err != nil || r == nil {
		return err
	}
	err = awaitReady(ctx, p.spec.ready, r.exited)
	if err != nil {
		p.Kill()
		if errors.Is(err, errExited) {
			err = fmt.Errorf("%w with code %d", err, r.cmd.ProcessState.ExitCode())
		}
		return &StartError{Process: p.spec.name, Err: err, Log: tail(p.spec.log, from)}
	}
	return nil
}

// launch runs the program unless it runs, and returns the run and where its part
// of the log begins.
func (p *Process) launch(logFlag int) (*run, int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil && !p.run.over() {
		return nil, 0, nil
	}
	log, err := os.OpenFile(p.spec.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND|logFlag, 0o600)
	if err != nil {
		return nil, 0, &StartError{Process: p.spec.name, Err: err}
	}
	defer log.Close() // the process has its own copy
	from, err := log.Seek(0, 2)
	if err != nil {
		return nil, 0, &StartError{Process: p.spec.name, Err: err}
	}
	cmd := exec.Command(p.spec.file)
	cmd.Env, cmd.Dir = p.spec.env, p.spec.dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = sysProcAttr()
	r := &run{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error)
	go r.whole(started)
	if err := <-started; err != nil {
		return nil, 0, &StartError{Process: p.spec.name, Err: err}
	}
	p.run = r
	return r, from, nil
}

// startAndWait is the life of a run.
func (r *run) startAndWait(started chan<- error) {
	err := r.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	_ = r.cmd.Wait() // how it ended is in ProcessState
	close(r.exited)
}

func (r *run) over() bool {
	select {
	case <-r.exited:
		return true
	default:
		return false
	}
}

// Stop asks the process to end, with SIGTERM, and returns when it is gone. When
// ctx ends first, it is killed. The error is an *ExitError if it did not end with
// code 0, and wraps that of ctx if it was killed. A process that does not run is
// left alone.
func (p *Process) Stop(ctx context.Context) error {
	r := p.ask()
	if r == nil || r.over() {
		return nil
	}
	// An error says that it is gone already, which is what is wanted.
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-r.exited:
		return p.exit(r)
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("estate: %s had to be killed: %w; its log ends:\n%s", p.spec.name, ctx.Err(), tail(p.spec.log, 0))
	}
}

// finish is Stop, for the end of the estate: a process that is gone though nobody
// asked for it is an error too.
func (p *Process) finish(ctx context.Context) error {
	p.mu.Lock()
	r := p.run
	lost := r != nil && r.over() && !r.asked
	p.mu.Unlock()
	if lost {
		return p.exit(r)
	}
	return p.Stop(ctx)
}

// ask returns the present run, marked as one that shall end.
func (p *Process) ask() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil && !p.run.over() {
		p.run.asked = true
	}
	return p.run
}

// exit returns the error of a run that is over, if there is one.
func (p *Process) exit(r *run) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	code := r.cmd.ProcessState.ExitCode()
	if code == 0 && r.asked {
		return nil
	}
	return &ExitError{Process: p.spec.name, Code: code, Asked: r.asked, Log: tail(p.spec.log, 0)}
}

// Kill ends the process at once, and what it may have started, and returns when
// it is gone.
func (p *Process) Kill() {
	r := p.ask()
	if r == nil || r.over() {
		return
	}
	_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL) // gone already is as good
	<-r.exited
}

// PID is the process ID, 0 while it does not run.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil || p.run.over() {
		return 0
	}
	return p.run.cmd.Process.Pid
}

// ExitCode is the code of the last run, -1 while it runs or if a signal ended it.
func (p *Process) ExitCode() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil || !p.run.over() {
		return -1
	}
	return p.run.cmd.ProcessState.ExitCode()
}

// Exited is closed when the present run is over.
func (p *Process) Exited() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	return p.run.exited
}
