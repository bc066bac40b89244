package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/records/recordstest"
)

// built is the binary, built when the first test wants it.
var built struct {
	once sync.Once
	dir  string
	err  error
}

// binary returns the path of the real program.
func binary(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "gateway"); built.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-o", built.dir, ".")
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "gateway")
}

// process is a running binary.
type process struct {
	*exec.Cmd
	stderr      *buffer
	data, admin string        // base URLs
	ended       chan struct{} // closed then
}

// launch starts the binary on free ports with settings in YAML, and waits until the
// data port is open. stdout may be nil.
func launch(t *testing.T, settings string, stdout *os.File) *process {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(file, []byte("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n"+settings), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(binary(t)), stderr: new(buffer), ended: make(chan struct{})}
	p.Env, p.Stderr = []string{"GATEWAY_CONFIG=" + file}, p.stderr
	if stdout != nil {
		p.Stdout = stdout
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.Wait() // the exit code says it
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.ended
	})
	eventually(t, "both ports are open", func() bool {
		p.data, p.admin = p.address("data"), p.address("admin")
		return p.data != "" && p.admin != ""
	})
	return p
}

// address finds in the log where an endpoint listens.
func (p *process) address(endpoint string) string {
	_, rest, _ := strings.Cut(p.stderr.String(), `"endpoint":"`+endpoint+`","address":"`)
	address, _, found := strings.Cut(rest, `"`)
	if !found {
		return ""
	}
	return "http://" + address
}

// terminate sends SIGTERM and returns the exit code.
func (p *process) terminate(t *testing.T) int {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.ended:
		return p.ProcessState.ExitCode()
	case <-time.After(20 * time.Second):
		t.Fatalf("the process does not end\n%s", p.stderr)
		return -1
	}
}

func TestABadFileStopsTheStartWithLineAndField(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	text := "listen: 127.0.0.1:0\nroutes:\n  - prefix: api\n    service: org\n    servcie: org\ntimeouts:\n  response: 2.5\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary(t), "--config", file).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("got %v, want exit code 1\n%s", err, out)
	}
	for _, want := range []string{
		file + ":3: routes[0].prefix: ",
		file + ":5: routes[0].servcie: unknown setting",
		file + `:7: timeouts.response: "2.5" is not a duration`,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("got\n%s\nwant it to contain %q", out, want)
		}
	}
}

func TestAPortInUseIsNamed(t *testing.T) {
	t.Parallel()
	feed, before := recordstest.NewFeed(t), upstream(t, "OLD")
	taken := upstream(t, "taken")
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: %q\n%s", host(taken), settings(feed.URL, before, ""))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary(t), "--config", file).CombinedOutput()
	if err == nil || !strings.Contains(string(out), host(taken)+" is in use") {
		t.Errorf("got %v\n%s\nwant it to name %s", err, out, host(taken))
	}
}

func TestTermEndsTheProcessWithZero(t *testing.T) {
	t.Parallel()
	feed, before := recordstest.NewFeed(t), upstream(t, "OLD")
	stdout, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	p := launch(t, settings(feed.URL, before, ""), stdout)
	const calls = 50
	for range calls {
		if status, _, body := get(t, p.data+"/api/org/x"); status != http.StatusOK || body != "OLD /x" {
			t.Fatalf("got %d %s", status, body)
		}
	}
	if code := p.terminate(t); code != 0 {
		t.Errorf("got exit code %d, want 0\n%s", code, p.stderr)
	}
	log, err := os.ReadFile(stdout.Name())
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(log), "\n"); n != calls {
		t.Errorf("got %d lines of access log, want %d", n, calls)
	}
}

func TestARequestThatIsCutMakesTheExitCodeOne(t *testing.T) {
	t.Parallel()
	feed := recordstest.NewFeed(t)
	asked, release := make(chan struct{}, 1), make(chan struct{})
	slow := upstream(t, "SLOW")
	slow.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-release
	})
	t.Cleanup(func() { close(release) }) // before the server is closed
	p := launch(t, strings.Replace(settings(feed.URL, slow, ""), "limit: 5s", "limit: 100ms", 1), nil)
	failed := make(chan struct{})
	go func() {
		defer close(failed)
		if res, err := client.Get(p.data + "/api/org/x"); err == nil {
			res.Body.Close()
		}
	}()
	<-asked
	if code := p.terminate(t); code != 1 {
		t.Errorf("got exit code %d, want 1\n%s", code, p.stderr)
	}
	<-failed
}

func TestAnAccessLogThatNobodyReadsDelaysNoRequest(t *testing.T) {
	t.Parallel()
	feed, before := recordstest.NewFeed(t), upstream(t, "OLD")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	p := launch(t, settings(feed.URL, before, ""), write)
	write.Close()
	// Lines of 2 KiB fill the pipe, and then what may wait.
	long := p.data + "/api/org/" + strings.Repeat("x", 4096)
	eventually(t, "lines are dropped", func() bool {
		for range 100 {
			if status, _, _ := get(t, long); status != http.StatusOK {
				t.Fatalf("got %d", status)
			}
		}
		return dropped(t, p) > 0
	})
	if code := p.terminate(t); code != 0 {
		t.Errorf("got exit code %d, want 0\n%s", code, p.stderr)
	}
}

// dropped reads the counter of dropped lines.
func dropped(t *testing.T, p *process) int {
	t.Helper()
	_, _, metrics := get(t, p.admin+"/metrics")
	_, rest, found := strings.Cut(metrics, "\ngateway_access_log_dropped_total ")
	text, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(text)
	if !found || err != nil {
		t.Fatalf("no counter of dropped lines: %v", err)
	}
	return n
}

func TestAReaderOfTheAccessLogThatGoesAwayEndsNothing(t *testing.T) {
	t.Parallel()
	feed, before := recordstest.NewFeed(t), upstream(t, "OLD")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := launch(t, settings(feed.URL, before, ""), write)
	write.Close()
	read.Close()
	eventually(t, "lines are dropped", func() bool {
		if status, _, _ := get(t, p.data+"/api/org/x"); status != http.StatusOK {
			t.Fatalf("got %d", status)
		}
		return dropped(t, p) > 0
	})
	if code := p.terminate(t); code != 0 {
		t.Errorf("got exit code %d, want 0\n%s", code, p.stderr)
	}
}
