package bench

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"specialroutes.example/services/estate/procfs"
)

// The cores: what is measured has one alone.
const (
	coreLoad     = 0 // load, backends, all that only stands by
	coreMeasured = 1
)

// answerLimit is how long a program may take until it answers.
const answerLimit = 10 * time.Second

// child is a program that is neither of the estate nor ours.
type child struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// startChild starts a program on a core.
func startChild(core int, name string, args ...string) (*child, error) {
	c := &child{ended: make(chan struct{})}
	c.cmd = exec.Command("taskset", append([]string{"-c", strconv.Itoa(core), name}, args...)...)
	c.cmd.SysProcAttr = childAttr()
	started := make(chan error)
	go c.whole(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("bench: start %s: %w", name, err)
	}
	return c, nil
}

// run starts the program, says so, and waits for its end.
func (c *child) run(started chan<- error) {
	err := c.cmd.Start()
	started <- err
	if err == nil {
		_ = c.cmd.Wait() // it ends when we say so, one way or another
	}
	close(c.ended)
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// stop ends the program and what it has started, and returns when it is gone.
func (c *child) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // gone already is as good
	select {
	case <-c.ended:
	case <-time.After(2 * time.Second):
		_ = syscall.Kill(-c.pid(), syscall.SIGKILL)
		<-c.ended
	}
}

// pin puts all threads of a process and of its children on a core.
func pin(ctx context.Context, pid, core int) error {
	children, err := procfs.Children(pid)
	if err != nil {
		return err
	}
	for _, p := range append([]int{pid}, children...) {
		cmd := exec.CommandContext(ctx, "taskset", "-a", "-p", "-c", strconv.Itoa(core), strconv.Itoa(p))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("bench: %w: %s", err, out)
		}
	}
	return nil
}

// await returns when a URL answers 200.
func await(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := get(ctx, url)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("bench: no answer: %w", err)
		case <-tick.C:
		}
	}
}

// freeAddresses returns addresses on which nobody listened a moment ago, below those
// that the system gives to outgoing connections.
func freeAddresses(n int) ([]string, error) {
	const lowest, highest = 12000, 17999
	var found []string
	for port := lowest + os.Getpid()%1000; port <= highest && len(found) < n; port++ {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			found = append(found, address)
		}
	}
	if len(found) < n {
		return nil, fmt.Errorf("bench: no %d free ports from %d to %d", n, lowest, highest)
	}
	return found, nil
}

// newClient returns a client of this package's own, without the environment's proxy.
func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}
