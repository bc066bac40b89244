package service_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"specialroutes.example/services/service"
)

// The test binary runs itself as the process under test when this is set: to the
// drain delay and limit, and to what else the process shall do.
const programEnv = "SERVICE_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if plan := os.Getenv(programEnv); plan != "" {
		service.Main("program", func(ctx context.Context, _, _ []string, stderr io.Writer, force <-chan os.Signal) error {
			return program(ctx, plan, stderr, force)
		})
		return
	}
	goleak.VerifyTestMain(m)
}

// program serves /hold, which answers after a POST of /release, and /takeover,
// which takes the connection from net/http and holds it until the same.
func program(ctx context.Context, plan string, stderr io.Writer, force <-chan os.Signal) error {
	words := strings.Fields(plan) // delay, limit, "fail", "refuse", "log" or "-", address
	delay, err := time.ParseDuration(words[0])
	if err != nil {
		return err
	}
	limit, err := time.ParseDuration(words[1])
	if err != nil {
		return err
	}
	draining := new(service.Draining)
	released := make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", service.Live())
	mux.Handle("GET /readyz", service.Ready(draining, nil))
	mux.HandleFunc("POST /release", func(http.ResponseWriter, *http.Request) { release() })
	mux.HandleFunc("GET /hold", func(w http.ResponseWriter, req *http.Request) {
		_ = http.NewResponseController(w).Flush()
		select {
		case <-released:
			_, _ = io.WriteString(w, "held to the end")
		case <-req.Context().Done():
			fmt.Fprintln(stderr, "the handler noticed the cut")
		}
	})
	mux.HandleFunc("GET /takeover", func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\n")
		<-released
		_, _ = io.WriteString(conn, "held to the end")
	})
	var background []func(context.Context) error
	if words[2] == "refuse" {
		return fmt.Errorf("at the start: %w", &service.ExitError{Code: 4, Err: errors.New("the plan is refused")})
	}
	if words[2] == "log" { // much more than a pipe and our buffer hold, before anything is served
		for log, i := service.NewLogger(stderr, slog.LevelInfo, "program"), 0; i < 40_000; i++ {
			log.Info("a line like those that requests leave", "number", i)
		}
	}
	if words[2] == "fail" {
		background = append(background, func(context.Context) error { return errors.New("the follower lost its way") })
	}
	return service.Run(ctx, service.Options{
		Name: "program", Log: service.NewLogger(stderr, slog.LevelInfo, "program"),
		Endpoints:  []service.Endpoint{{Name: "data", Address: words[3], Server: service.HTTPServer(draining.Wrap(mux))}},
		Background: background, Draining: draining, Drain: service.DrainTimes{Delay: delay, Limit: limit}, Force: force,
		OnListen: func(_ string, addr net.Addr) { fmt.Println(addr) },
	})
}

// process is a running program.
type process struct {
	cmd    *exec.Cmd
	base   string // http://host:port
	stderr *bytes.Buffer
	exited chan struct{}
}

func launch(t *testing.T, plan string) *process {
	t.Helper()
	return launchTo(t, plan, nil)
}

// launchTo has the program write standard error to a file, where there is one.
func launchTo(t *testing.T, plan string, stderr *os.File) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0]), stderr: new(bytes.Buffer), exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), programEnv+"="+plan)
	p.cmd.Stderr = p.stderr
	if stderr != nil {
		p.cmd.Stderr = stderr
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	p.base = "http://" + strings.TrimSpace(line)
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // its code is in ProcessState
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.exited
	})
	return p
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// exitCode waits for the end of the process.
func (p *process) exitCode(t *testing.T) int {
	t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(20 * time.Second):
		t.Fatal("the process did not end")
		return -1
	}
}

// untilDraining returns when /readyz answers 503, with that answer.
func (p *process) untilDraining(t *testing.T) *http.Response {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if res := ask(t, http.MethodGet, p.base+"/readyz"); res.StatusCode == http.StatusServiceUnavailable {
			return res
		}
	}
	t.Fatal("/readyz never answered 503")
	return nil
}

// ask sends one request on a connection of its own and reads the whole answer.
func ask(t *testing.T, method, url string) *http.Response {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	return res
}

// hold opens a request that stays in flight; the function reads the rest of it.
func (p *process) hold(t *testing.T, path string) (rest func() string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
	r := bufio.NewReader(conn)
	if _, err := r.ReadString('\n'); err != nil { // the status line: the handler runs
		t.Fatal(err)
	}
	return func() string {
		all, _ := io.ReadAll(r)
		return string(all)
	}
}

func TestMain_FinishesWhatIsInFlight(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/hold", "/takeover"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			p := launch(t, "2s 20s - 127.0.0.1:0")
			if res := ask(t, http.MethodGet, p.base+"/readyz"); res.StatusCode != http.StatusOK || res.Close {
				t.Errorf("/readyz before = %s, close %t, want 200 on a kept connection", res.Status, res.Close)
			}
			rest := p.hold(t, path)
			p.signal(t, syscall.SIGTERM)
			if res := p.untilDraining(t); !res.Close {
				t.Error("the answer while draining lacks Connection: close")
			}
			if res := ask(t, http.MethodPost, p.base+"/release"); res.StatusCode != http.StatusOK {
				t.Errorf("a new request while draining = %s, want 200", res.Status)
			}
			if got := rest(); !strings.Contains(got, "held to the end") {
				t.Errorf("the request in flight got %q", got)
			}
			if code := p.exitCode(t); code != 0 {
				t.Errorf("exit code = %d, want 0; %s", code, p.stderr)
			}
			if conn, err := net.Dial("tcp", strings.TrimPrefix(p.base, "http://")); err == nil {
				_ = conn.Close()
				t.Error("the port is still open")
			}
		})
	}
}

func TestMain_ExitCodeTellsOfACut(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/hold", "/takeover"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			p := launch(t, "0s 100ms - 127.0.0.1:0")
			p.hold(t, path)
			p.signal(t, syscall.SIGTERM)
			if code := p.exitCode(t); code != 1 {
				t.Errorf("exit code = %d, want 1", code)
			}
			if got := p.stderr.String(); !strings.Contains(got, service.ErrCut.Error()) {
				t.Errorf("stderr = %q, want the cut named", got)
			}
		})
	}
}

func TestMain_SecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		inHand bool
		code   int
	}{{"with a request in flight", true, 1}, {"idle", false, 0}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := launch(t, "10m 10m - 127.0.0.1:0")
			if tt.inHand {
				p.hold(t, "/hold")
			}
			p.signal(t, os.Interrupt)
			p.untilDraining(t)
			p.signal(t, os.Interrupt)
			if code := p.exitCode(t); code != tt.code {
				t.Errorf("exit code = %d, want %d; %s", code, tt.code, p.stderr)
			}
		})
	}
}

func TestMain_PortInUseIsNamed(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	p := launch(t, "0s 1s - "+ln.Addr().String())
	if code := p.exitCode(t); code != 1 {
		t.Errorf("exit code = %d, want 1", code)
	}
	want := "program: the data port cannot be opened: " + ln.Addr().String() + " is in use by another process\n"
	if got := p.stderr.String(); got != want {
		t.Errorf("stderr = %q, want %q", got, want)
	}
}

func TestMain_FailureInTheBackgroundEndsTheProcess(t *testing.T) {
	t.Parallel()
	p := launch(t, "0s 1s fail 127.0.0.1:0")
	if code := p.exitCode(t); code != 1 {
		t.Errorf("exit code = %d, want 1", code)
	}
	if got := p.stderr.String(); !strings.Contains(got, "program: the follower lost its way\n") {
		t.Errorf("stderr = %q, want the cause", got)
	}
}

func TestMain_AnErrorMayBringItsExitCode(t *testing.T) {
	t.Parallel()
	p := launch(t, "0s 1s refuse 127.0.0.1:0")
	if code := p.exitCode(t); code != 4 {
		t.Errorf("exit code = %d, want 4", code)
	}
	if got, want := p.stderr.String(), "program: at the start: the plan is refused\n"; got != want {
		t.Errorf("stderr = %q, want %q", got, want)
	}
}

func TestMain_StandardErrorThatNobodyReadsHoldsUpNothing(t *testing.T) {
	t.Parallel()
	unread, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer unread.Close()
	p := launchTo(t, "0s 10s log 127.0.0.1:0", stderr)
	_ = stderr.Close()
	if res := ask(t, http.MethodGet, p.base+"/healthz"); res.StatusCode != http.StatusOK {
		t.Errorf("/healthz = %d", res.StatusCode)
	}
	p.signal(t, syscall.SIGTERM)
	if code := p.exitCode(t); code != 0 {
		t.Errorf("exit code = %d after SIGTERM, want 0", code)
	}
}

func TestMain_TellsOfLinesThatWereDropped(t *testing.T) {
	t.Parallel()
	read, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	p := launchTo(t, "0s 10s log 127.0.0.1:0", stderr)
	_ = stderr.Close()
	// It serves, so all lines were written or dropped; now somebody reads.
	p.signal(t, syscall.SIGTERM)
	text, err := io.ReadAll(read)
	if err != nil {
		t.Fatal(err)
	}
	if code := p.exitCode(t); code != 0 {
		t.Errorf("exit code = %d, want 0", code)
	}
	if lines := bytes.Count(text, []byte("a line like those")); lines == 0 || lines == 40_000 || !bytes.Contains(text, []byte("were dropped")) {
		t.Errorf("%d lines, and the end %q, want some, and that others were dropped", lines, text[max(0, len(text)-300):])
	}
}
