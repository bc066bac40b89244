package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is one program under test that a test started by itself, outside an
// estate, because it needs a configuration of its own.
type process struct {
	name string
	cmd  *exec.Cmd
	out  *output
	done chan struct{} // closed when the process has been waited for
}

// startProcess runs a binary with exactly the given environment (and PATH, HOME
// and TMPDIR), so that nothing of the developer's shell changes a result. It is
// killed when the test ends, and its output is shown when the test failed.
func startProcess(t testing.TB, name, binary string, environ []string, args ...string) *process {
	t.Helper()
	p := &process{name: name, out: &output{}, done: make(chan struct{})}
	p.cmd = exec.Command(binary, args...)
	p.cmd.Env = append(baseEnviron(), environ...)
	p.cmd.Dir = t.TempDir()
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // the exit code is read from ProcessState
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the end of the output of %s:\n%s", name, p.out.tail(15))
		}
	})
	return p
}

func baseEnviron() []string {
	var environ []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			environ = append(environ, name+"="+v)
		}
	}
	return environ
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) signal(t testing.TB, sig os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatalf("signal %v to %s: %v", sig, p.name, err)
	}
}

// kill ends the process at once and returns when it is gone. It may be called
// again.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // gone already is as good
	<-p.done
}

func (p *process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// wait returns the exit code, -1 if a signal ended the process.
func (p *process) wait(t testing.TB, limit time.Duration) int {
	t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		t.Fatalf("%s still runs after %v; the end of its output:\n%s", p.name, limit, p.out.tail(20))
		return 0
	}
}

// stop asks the process to end and returns its exit code.
func (p *process) stop(t testing.TB) int {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	return p.wait(t, 45*time.Second)
}

// ready waits until url answers 200. It fails the test at once when the process
// ends before that.
func (p *process) ready(t testing.TB, url string) {
	t.Helper()
	poll(t, 40*time.Second, p.name+" is ready", func() error {
		if p.exited() {
			t.Fatalf("%s ended with code %d before it was ready:\n%s", p.name, p.cmd.ProcessState.ExitCode(), p.out.tail(40))
		}
		return wantStatus(url, 200)
	})
}

// output keeps what a process wrote, both streams in one.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *output) tail(lines int) string {
	all := strings.Split(strings.TrimRight(o.String(), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// jsonLines returns the lines that are JSON objects and contain text.
func jsonLines(log, text string) []map[string]any {
	var found []map[string]any
	for line := range strings.Lines(log) {
		if !strings.Contains(line, text) {
			continue
		}
		var m map[string]any
		if json.Unmarshal([]byte(line), &m) == nil {
			found = append(found, m)
		}
	}
	return found
}

// poll calls condition until it returns nil, and fails the test with its last
// error when the limit is over.
func poll(t testing.TB, limit time.Duration, what string, condition func() error) {
	t.Helper()
	if err := pollErr(limit, condition); err != nil {
		t.Fatalf("waited %v until %s: %v", limit, what, err)
	}
}

func pollErr(limit time.Duration, condition func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := condition()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

func wantStatus(url string, want int) error {
	got, err := do("GET", url, nil, nil)
	if err != nil {
		return err
	}
	if got.status != want {
		return fmt.Errorf("GET %s: status %d, want %d: %s", url, got.status, want, got.body)
	}
	return nil
}

// ports hands out addresses on 127.0.0.1 that were free a moment ago and none of
// them twice.
type ports struct {
	mu    sync.Mutex
	given map[string]bool
}

func (p *ports) free(t testing.TB) string {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if !p.given[addr] {
			p.given[addr] = true
			return addr
		}
	}
	t.Fatal(errors.New("no free port found"))
	return ""
}
