package consulagent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// run is one run of the program.
type run struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process is gone and err is set
	err    error         // how it ended
}

// pollInterval is how often the agent is asked whether it is ready.
const pollInterval = 50 * time.Millisecond

// start runs the agent and waits until it answers. The process outlives ctx: it
// ends by end, or with this process where the system can do that.
func (a *Agent) start(ctx context.Context) (*run, error) {
	log := &agentLog{out: a.options.Output}
	cmd := a.command()
	cmd.Stdout, cmd.Stderr = log, log
	r := &run{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error)
	go r.whole(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("consulagent: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, a.options.StartLimit, ErrStartTimeout)
	defer cancel()
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	url := fmt.Sprintf("http://127.0.0.1:%d/v1/health/service/consul?passing=1", a.ports.http)
	for !answers(ctx, url) {
		select {
		case <-r.exited:
			return nil, fmt.Errorf("consulagent: the agent ended at its start: %w\n%s", r.err, log.text())
		case <-ctx.Done():
			err := r.end(context.WithoutCancel(ctx), syscall.SIGKILL)
			return nil, errors.Join(fmt.Errorf("%w\n%s", context.Cause(ctx), log.text()), err)
		case <-poll.C:
		}
	}
	return r, nil
}

// answers reports whether the agent knows a leader and has registered itself.
func answers(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	var instances []json.RawMessage
	err = json.NewDecoder(res.Body).Decode(&instances)
	return err == nil && res.StatusCode == http.StatusOK && len(instances) > 0
}

// startAndWait starts the process, reports on started how that went, and waits for
// its end.
func (r *run) startAndWait(started chan<- error) {
	err := r.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	r.err = r.cmd.Wait()
	close(r.exited)
}

// end sends a signal and waits until the process is gone; when ctx ends first, it
// is killed.
func (r *run) end(ctx context.Context, signal syscall.Signal) error {
	// An error says that it is gone already, which is what is wanted.
	_ = r.cmd.Process.Signal(signal)
	select {
	case <-r.exited:
		return nil
	case <-ctx.Done():
		_ = r.cmd.Process.Kill()
		<-r.exited
		return fmt.Errorf("consulagent: the agent had to be killed: %w", ctx.Err())
	}
}

// agentLog passes the agent's log on and keeps its first part for errors.
type agentLog struct {
	out io.Writer // nil: nowhere

	mu   sync.Mutex
	kept bytes.Buffer
}

const maxKept = 16 << 10

// Write never fails, since an error would end the copying and block the agent.
func (l *agentLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out != nil {
		_, _ = l.out.Write(p)
	}
	if room := maxKept - l.kept.Len(); room > 0 {
		l.kept.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (l *agentLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.String()
}
