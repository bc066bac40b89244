package pgcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// readyLine is what the server logs once it takes connections (lc_messages is C).
const readyLine = "database system is ready to accept connections"

const (
	defaultStartLimit = 60 * time.Second

	// waitDelay is for the server's children, which hold its log open, to notice
	// that it is gone.
	waitDelay = 5 * time.Second
)

// server is one run of the postgres program.
type server struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process is gone and err is set
	err    error         // how it ended
}

// startServer runs postgres and waits until it takes connections. The process
// outlives ctx: it ends by end, or with this process where the system can do that.
func (c *Cluster) startServer(ctx context.Context) (*server, error) {
	log := &serverLog{out: c.options.Output, ready: make(chan struct{})}
	cmd := c.command(context.WithoutCancel(ctx), "postgres", c.serverArgs()...)
	cmd.Stderr = log
	cmd.WaitDelay = waitDelay
	s := &server{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error)
	go s.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("pgcluster: %w", err)
	}
	limit := c.options.StartLimit
	if limit == 0 {
		limit = defaultStartLimit
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, ErrStartTimeout)
	defer cancel()
	select {
	case <-log.ready:
		return s, nil
	case <-s.exited:
		return nil, fmt.Errorf("pgcluster: postgres ended at its start: %w\n%s", s.err, log.head())
	case <-ctx.Done():
		err := s.end(context.WithoutCancel(ctx), syscall.SIGQUIT)
		return nil, errors.Join(fmt.Errorf("%w\n%s", context.Cause(ctx), log.head()), err)
	}
}

// end sends a signal and waits until the process is gone; when ctx ends first, it
// is killed.
func (s *server) end(ctx context.Context, signal syscall.Signal) error {
	// An error says that it is gone already, which is what is wanted.
	_ = s.cmd.Process.Signal(signal)
	select {
	case <-s.exited:
	case <-ctx.Done():
		_ = s.cmd.Process.Kill()
		<-s.exited
		return fmt.Errorf("pgcluster: the server had to be killed: %w", ctx.Err())
	}
	return nil
}

// serverLog passes the server's log on, keeps its first part for errors, and
// notices when the server is ready.
type serverLog struct {
	out   io.Writer // nil: nowhere
	ready chan struct{}

	mu      sync.Mutex
	kept    bytes.Buffer
	isReady bool
}

const maxKept = 16 << 10

// Write never fails, since an error would end the copying and block the server.
func (l *serverLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out != nil {
		_, _ = l.out.Write(p)
	}
	if room := maxKept - l.kept.Len(); room > 0 {
		l.kept.Write(p[:min(room, len(p))])
	}
	if !l.isReady && bytes.Contains(l.kept.Bytes(), []byte(readyLine)) {
		l.isReady = true
		close(l.ready)
	}
	return len(p), nil
}

func (l *serverLog) head() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.String()
}

// startAndWait starts the process, reports on started how that went, and waits
// for its end.
func (s *server) startAndWait(started chan<- error) {
	err := s.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	s.err = s.cmd.Wait()
	close(s.exited)
}
