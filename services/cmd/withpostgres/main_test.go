package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"specialroutes.example/services/estate/pgcluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// without returns this process's environment without the variables that run reads,
// and with others.
func without(with ...string) []string {
	environ := slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "CI=") || strings.HasPrefix(s, urlVariable+"=")
	})
	return append(environ, with...)
}

func noInstall(context.Context, io.Writer) error { return nil }

func needPostgres(t *testing.T) {
	t.Helper()
	if _, err := pgcluster.Find(); err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
}

func TestTheServersAddressIsHandedToTheCommandAndNothingIsLeft(t *testing.T) {
	needPostgres(t)
	saved := filepath.Join(t.TempDir(), "url")
	dir := openDir(t)
	t.Setenv("TMPDIR", dir)
	script := `echo "$TEST_DATABASE_URL" > ` + saved + `; "$0"/psql -XAtqc "SELECT 40+2" "$TEST_DATABASE_URL" >> ` + saved
	bin, err := pgcluster.Find()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	if code := run(t.Context(), []string{"--", "sh", "-c", script, bin}, without(), &stderr, nil, noInstall); code != 0 {
		t.Fatalf("exit code %d, want 0: %s", code, &stderr)
	}
	lines := readLines(t, saved)
	if len(lines) != 2 || lines[1] != "42" {
		t.Fatalf("the command saw %q, want an address and 42", lines)
	}
	if conn, err := net.Dial("tcp", host(t, lines[0])); err == nil {
		conn.Close()
		t.Error("the server still listens")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestTheExitCodeIsTheCommands(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -9 $$": 137} {
		args := []string{"--", "sh", "-c", script}
		if code := run(t.Context(), args, without(urlVariable+"=given"), io.Discard, nil, noInstall); code != want {
			t.Errorf("%q: exit code %d, want %d", script, code, want)
		}
	}
}

func TestAGivenServerIsUsedAsItIs(t *testing.T) {
	t.Parallel()
	args := []string{"-bin", "/does-not-exist", "--", "sh", "-c", `test "$TEST_DATABASE_URL" = given`}
	if code := run(t.Context(), args, without(urlVariable+"=given"), io.Discard, nil, noInstall); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

func TestWithoutPostgreSQLTheCommandRunsWarnedAndInCINotAtAll(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		environ []string
		code    int
		ran     bool
	}{
		{"at home", without(), 0, true},
		{"in CI", without("CI=true"), 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mark := filepath.Join(t.TempDir(), "ran")
			var stderr bytes.Buffer
			// Its absence is played by a directory without programs.
			args := []string{"-bin", t.TempDir(), "--", "touch", mark}
			code := run(t.Context(), args, tc.environ, &stderr, nil, noInstall)
			_, err := os.Stat(mark)
			if ran := err == nil; code != tc.code || ran != tc.ran {
				t.Errorf("exit code %d, ran %v, want %d, %v", code, ran, tc.code, tc.ran)
			}
			if !strings.Contains(stderr.String(), "apt-get install postgresql") {
				t.Errorf("it does not say what to install: %s", &stderr)
			}
		})
	}
}

func TestWrongArgumentsAreRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--"}, {"-unknown", "--", "true"}} {
		if code := run(t.Context(), args, without(), io.Discard, nil, noInstall); code != usageCode {
			t.Errorf("run(%q) = %d, want %d", args, code, usageCode)
		}
	}
}

func TestSignalsReachTheCommand(t *testing.T) {
	t.Parallel()
	ready := filepath.Join(t.TempDir(), "ready")
	if err := syscall.Mkfifo(ready, 0o600); err != nil {
		t.Fatal(err)
	}
	signals := make(chan os.Signal, 1)
	code := make(chan int)
	go func() {
		script := `trap "exit 9" TERM; echo > "$0"; while :; do sleep 0.05; done`
		args := []string{"--", "sh", "-c", script, ready}
		code <- run(t.Context(), args, without(urlVariable+"=given"), io.Discard, signals, noInstall)
	}()
	if _, err := os.ReadFile(ready); err != nil { // until the command has set its trap
		t.Fatal(err)
	}
	signals <- syscall.SIGTERM
	if got := <-code; got != 9 {
		t.Errorf("exit code %d, want 9", got)
	}
}

func TestTheServerEndsWhenTheProgramIsKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a process with its parent")
	}
	needPostgres(t)
	program := filepath.Join(t.TempDir(), "withpostgres")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	cmd := exec.Command(program, "--", "sh", "-c", `echo "$TEST_DATABASE_URL"; exec cat`)
	cmd.Env = without("TMPDIR=" + openDir(t)) // where its data stays behind
	stdin, errIn := cmd.StdinPipe()           // its end lets cat end too
	stdout, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 1024)
	n, err := stdout.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	address := host(t, strings.TrimSpace(string(buf[:n])))
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	stdin.Close()
	_ = cmd.Wait() // it was killed
	deadline := time.Now().Add(20 * time.Second)
	for {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		conn.Close()
		if time.Now().After(deadline) {
			t.Fatal("the server still listens 20 s after the program was killed")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// openDir returns a directory that the user postgres may enter, which those of
// t.TempDir are not.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "open")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func readLines(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

func host(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		t.Fatalf("not an address: %q, %v", address, err)
	}
	return u.Host
}
