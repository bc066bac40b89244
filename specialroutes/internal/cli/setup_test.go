package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// binary is the program, built once for all tests.
var binary string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "specialroutes-cli-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "specialroutes")
	build := exec.Command("go", "build", "-o", binary, "specialroutes.example/specialroutes")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// outcome is how a command ended.
type outcome struct {
	args           []string
	code           int
	stdout, stderr string
}

// command is a command of the program as a process of its own.
type command struct {
	t     testing.TB
	env   []string // all of its environment
	stdin string
}

// run runs the program to its end.
func (c command) run(args ...string) outcome {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), binary, args...)
	cmd.Env = append([]string{"LC_ALL=C"}, c.env...) // not that of whoever runs the test
	cmd.Dir = c.t.TempDir()
	cmd.Stdin = strings.NewReader(c.stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatalf("%q: %v", args, err)
	}
	return outcome{args, cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// expect fails the test unless a command ended with a code.
func (o outcome) expect(t testing.TB, code int) outcome {
	t.Helper()
	if o.code != code {
		t.Fatalf("%q ended with %d, want %d\nstdout: %s\nstderr: %s", o.args, o.code, code, o.stdout, o.stderr)
	}
	return o
}

// says fails the test unless standard output holds all of texts.
func (o outcome) says(t testing.TB, texts ...string) outcome {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(o.stdout, text) {
			t.Errorf("%q prints\n%swithout %q", o.args, o.stdout, text)
		}
	}
	return o
}

// complains fails the test unless standard error holds all of texts.
func (o outcome) complains(t testing.TB, texts ...string) outcome {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(o.stderr, text) {
			t.Errorf("%q complains\n%swithout %q", o.args, o.stderr, text)
		}
	}
	return o
}

// json decodes standard output.
func (o outcome) json(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(o.stdout), v); err != nil {
		t.Fatalf("%q prints %q: %v", o.args, o.stdout, err)
	}
}

// server is a specialroutes that serves, as a process of its own, on SQLite.
type server struct {
	t    testing.TB
	url  string
	file string // the database
}

// serve starts a server on a free port and returns when it has its database.
func serve(t testing.TB, args ...string) *server {
	t.Helper()
	return serveWith(t, nil, args...)
}

// serveWith is serve where a command needs more in its environment to be let in.
func serveWith(t testing.TB, env []string, args ...string) *server {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"serve", "--listen=127.0.0.1:0", "--drain-delay=0s"}, args...)...)
	s := &server{t: t, file: filepath.Join(t.TempDir(), "specialroutes.db")}
	cmd.Env = []string{"DATABASE_URL=sqlite://" + s.file}
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	addresses, read := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(read)
		s.follow(log, addresses)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-read
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	select {
	case address := <-addresses:
		s.url = "http://" + address
		if slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--tls-cert=") }) {
			s.url = "https://" + address
		}
	case <-read:
		t.Fatal("the server ended before it listened")
	}
	s.ready(env)
	return s
}

// follow reads the server's log to its end and sends the address that it names.
func (s *server) follow(log io.Reader, addresses chan<- string) {
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var line struct{ Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
			addresses <- line.Address
		}
	}
}

// ready waits for the server's database.
func (s *server) ready(env []string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		if s.with(env...).run("routes", "list").code == 0 {
			return
		}
	}
	s.t.Fatal("the server is not ready")
}

// with returns a command that asks the server.
func (s *server) with(env ...string) command {
	return command{t: s.t, env: append([]string{"SPECIALROUTES_URL=" + s.url}, env...)}
}

// run runs a command that asks the server.
func (s *server) run(args ...string) outcome { s.t.Helper(); return s.with().run(args...) }

// put writes a record, by standard input.
func (s *server) put(service, document string, args ...string) outcome {
	s.t.Helper()
	c := s.with()
	c.stdin = document
	return c.run(append([]string{"routes", "put", service}, args...)...)
}

// writeFile writes a file that only this test knows, and returns its name.
func writeFile(t testing.TB, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
