package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"specialroutes.example/specialroutes/internal/store/sqlite"
)

// serveVariable names the file that a child process shall keep open.
const serveVariable = "SQLITE_TEST_SERVE"

// serve is a child process that keeps a file open until its standard input ends.
func serve(path string) (code int) {
	s, err := sqlite.Open(context.Background(), sqlite.Options{Path: path})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer s.Close()
	fmt.Println("open")
	_, _ = io.Copy(io.Discard, os.Stdin) // its end is what counts
	return 0
}

// startServing starts a child process that has the file open.
func startServing(t *testing.T, path string) (cmd *exec.Cmd, stop func()) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveVariable+"="+path)
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	stop = func() {
		in.Close()
		_ = cmd.Wait() // it may have been killed
	}
	t.Cleanup(stop)
	return cmd, stop
}

func TestASecondProcessIsToldWhoHasTheFile(t *testing.T) {
	t.Parallel()
	path := create(t)
	other, stop := startServing(t, path)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]func() error{
		"Open": func() error {
			_, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
			return err
		},
		"Open by another name": func() error {
			_, err := sqlite.Open(t.Context(), sqlite.Options{Path: link})
			return err
		},
		"Migrate": func() error { return sqlite.Migrate(t.Context(), sqlite.Options{Path: path}) },
	} {
		start := time.Now()
		err := try()
		var locked *sqlite.LockedError
		if !errors.As(err, &locked) || locked.Path != path {
			t.Errorf("%s = %v, want a LockedError with the path", name, err)
			continue
		}
		if pid := fmt.Sprintf("PID %d ", other.Process.Pid); !strings.Contains(err.Error(), pid) {
			t.Errorf("%s = %v, want %q in it", name, err, pid)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("%s waited for %v for a process that serves", name, took)
		}
	}
	stop()
	if err := open(t, sqlite.Options{Path: link}).Ping(t.Context()); err != nil {
		t.Errorf("after the other process has ended Ping() = %v", err)
	}
}

func TestAProcessThatWasKilledLeavesNoLock(t *testing.T) {
	t.Parallel()
	path := create(t)
	other, stop := startServing(t, path)
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := open(t, sqlite.Options{Path: path}).Ping(t.Context()); err != nil {
		t.Errorf("Ping() = %v", err)
	}
}

func TestAProcessThatMigratesIsWaitedFor(t *testing.T) {
	t.Parallel()
	path := create(t)
	lock, err := sqlite.LockAsMigration(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	var locked *sqlite.LockedError
	_, err = sqlite.Open(t.Context(), sqlite.Options{Path: path, LockTimeout: 200 * time.Millisecond})
	if !errors.As(err, &locked) || !strings.Contains(err.Error(), "migrates") {
		t.Errorf("when the wait is over Open = %v, want a LockedError that says what the other does", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := sqlite.Open(ctx, sqlite.Options{Path: path}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("when the context is over Open = %v, want its error", err)
	}
	opened := make(chan error)
	go func() {
		s, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Fatalf("Open did not wait: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	if err := lock(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Errorf("with the lock given back Open = %v", err)
	}
}
