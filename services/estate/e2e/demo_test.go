package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"specialroutes.example/services/estate"
)

// demoPorts are the ports that everybody knows the estate by.
var demoPorts = []string{"5555", "5556", "8910", "8085", "8087", "8080"}

// needDemoPorts skips the test when something else has a port of the demo; in CI
// nothing else may, but for another package's test that has it for a moment.
func needDemoPorts(t testing.TB) {
	t.Helper()
	patience := time.Second
	if inCI() {
		patience = time.Minute
	}
	err := pollErr(patience, func() error {
		for _, port := range demoPorts {
			l, err := net.Listen("tcp", "127.0.0.1:"+port)
			if err != nil {
				return fmt.Errorf("port %s is in use: %w", port, err)
			}
			_ = l.Close()
		}
		return nil
	})
	switch {
	case err != nil && inCI():
		t.Fatal(err)
	case err != nil:
		t.Skip("the demo cannot be tried: ", err)
	}
}

// makeDemo is `make demo`, started as at a terminal: in a process group of its
// own, which gets the Ctrl-C as a whole.
type makeDemo struct{ *process }

// startMakeDemo copies the tree, as a clone would be, starts the demo in it and
// tries the three lines that it prints.
func startMakeDemo(t testing.TB, root string) makeDemo {
	t.Helper()
	needDemoPorts(t)
	dir := filepath.Join(t.TempDir(), "clone")
	if err := copyTree(dir, root); err != nil {
		t.Fatal(err)
	}
	p := &process{name: "make demo", out: &output{}, done: make(chan struct{})}
	p.cmd = exec.Command("make", "demo")
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, p.out, p.out
	p.cmd.Env = append(baseEnviron(), goEnviron()...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the output of make demo:\n%s", p.out.tail(40))
		}
		_ = syscall.Kill(-p.pid(), syscall.SIGKILL)
		<-p.done
	})
	var lines []string
	poll(t, 5*time.Minute, "make demo prints three curl lines", func() error {
		if p.exited() {
			t.Fatalf("make demo ended:\n%s", p.out.tail(40))
		}
		lines = regexp.MustCompile(`(?m)^\s*(curl .*?)\s*$`).FindAllString(p.out.String(), -1)
		if len(lines) < 3 {
			return fmt.Errorf("it printed:\n%s", p.out)
		}
		return nil
	})
	for _, line := range lines {
		cmd := exec.Command("sh", "-c", strings.TrimSpace(line))
		if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "/problems/") {
			t.Errorf("make demo prints %q, which fails: %v: %s", line, err, out)
		}
	}
	// One of the lines may have taken the record away; the README begins with it.
	routes{url: "http://localhost:8910"}.write(t, book{organization, "Y", "http://localhost:8087", 5})
	return makeDemo{p}
}

// interrupt presses Ctrl-C and checks that nothing is left.
func (d makeDemo) interrupt(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(-d.pid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	d.wait(t, 30*time.Second)
	poll(t, 5*time.Second, "no process of the demo is left", func() error {
		if err := syscall.Kill(-d.pid(), 0); !errors.Is(err, syscall.ESRCH) {
			return errors.New("its process group is still there")
		}
		return nil
	})
	for _, port := range demoPorts {
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Errorf("port %s is left behind: %v", port, err)
			continue
		}
		_ = l.Close()
	}
	if text := d.out.String(); strings.Contains(text, "panic:") || strings.Contains(text, "DATA RACE") {
		t.Errorf("the demo's output:\n%s", d.out.tail(60))
	}
}

// copyTree copies the files of a tree but not what git ignores or keeps.
func copyTree(to, from string) error {
	skipped := map[string]bool{".git": true, "bin": true, ".demo": true, "go.work.sum": true}
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		switch {
		case skipped[relative] && entry.IsDir():
			return filepath.SkipDir
		case skipped[relative]:
			return nil
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case entry.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case !entry.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, info.Mode().Perm())
	})
}

// Not parallel: the demo has fixed ports.
func TestAPortInUseIsNamedByTheEstate(t *testing.T) {
	needDemoPorts(t)
	for _, port := range []string{"5555", "8087"} {
		t.Run(port, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:"+port)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			est, err := estate.Start(ctx, estate.Options{Dir: filepath.Join(t.TempDir(), "estate"), Bin: binaries(t), FixedPorts: true})
			if err == nil {
				_ = est.Stop(ctx)
				t.Fatal("the estate started")
			}
			if !strings.Contains(err.Error(), port) {
				t.Errorf("error = %v, want it to name port %s", err, port)
			}
			for _, other := range demoPorts {
				if other == port {
					continue
				}
				free, err := net.Listen("tcp", "127.0.0.1:"+other)
				if err != nil {
					t.Errorf("port %s is left behind: %v", other, err)
					continue
				}
				_ = free.Close()
			}
		})
	}
}
