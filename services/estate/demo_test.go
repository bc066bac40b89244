package estate_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// demo is a run of cmd/estate.
type demo struct {
	cmd    *exec.Cmd
	exited chan struct{}

	mu     sync.Mutex
	output strings.Builder
}

func startDemo(t *testing.T, program, dir string) *demo {
	t.Helper()
	d := &demo{cmd: exec.Command(program, "-dir", dir, "-free-ports"), exited: make(chan struct{})}
	stdout, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.cmd.Stderr = d.cmd.Stdout
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(d.exited)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			d.mu.Lock()
			d.output.WriteString(lines.Text() + "\n")
			d.mu.Unlock()
		}
		_ = d.cmd.Wait() // its code is in ProcessState
	}()
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		<-d.exited
	})
	return d
}

func (d *demo) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.output.String()
}

// await waits until the output matches, and returns the match's group.
func (d *demo) await(t *testing.T, pattern string, limit time.Duration) string {
	t.Helper()
	expression := regexp.MustCompile(pattern)
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		if match := expression.FindStringSubmatch(d.text()); match != nil {
			return match[1]
		}
		select {
		case <-d.exited:
			t.Fatalf("the demo ended before it printed %s:\n%s", pattern, d.text())
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatalf("the demo did not print %s:\n%s", pattern, d.text())
	return ""
}

func (d *demo) interrupt(t *testing.T) {
	t.Helper()
	if err := d.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
}

// exitCode waits for the end, after which no port may be open.
func (d *demo) exitCode(t *testing.T) int {
	t.Helper()
	select {
	case <-d.exited:
	case <-time.After(20 * time.Second):
		t.Fatalf("the demo did not end:\n%s", d.text())
	}
	ready := regexp.MustCompile(`is ready on http://(\S+)`).FindAllStringSubmatch(d.text(), -1)
	if len(ready) != 11 {
		t.Errorf("%d processes were ready, want 11:\n%s", len(ready), d.text())
	}
	for _, match := range ready {
		if conn, err := net.Dial("tcp", match[1]); err == nil {
			_ = conn.Close()
			t.Errorf("port %s is left behind", match[1])
		}
	}
	return d.cmd.ProcessState.ExitCode()
}

// killProgram kills the process that runs a program of our own.
func killProgram(t *testing.T, file string) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || target != file {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(link, "/")[2])
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("nobody runs %s", file)
}

// TestDemoEndsWithItsGateway: nobody is told that the others go on.
func TestDemoEndsWithItsGateway(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("a process is found by /proc")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "demo")
	build := exec.Command("go", "build", "-o", program, "specialroutes.example/services/cmd/estate")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	d := startDemo(t, program, dir)
	d.await(t, `(?m)(^OLD 0   NEW 0$)`, 5*time.Minute)
	killProgram(t, filepath.Join(dir, "bin", "gateway"))
	if code := d.exitCode(t); code != 1 || !strings.Contains(d.text(), "gateway is gone, and the demo ends with it") || strings.Contains(d.text(), "go on") {
		t.Errorf("exit code = %d without the gateway, want 1, told why:\n%s", code, d.text())
	}
}

// TestDemo runs the demo as a process twice: it counts calls and stops, finds its
// record again, and stops at once at the second signal.
func TestDemo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "demo")
	build := exec.Command("go", "build", "-o", program, "specialroutes.example/services/cmd/estate")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const building = 5 * time.Minute

	d := startDemo(t, program, dir)
	url := d.await(t, `curl (http\S+/licenses/\S+)`, building)
	d.await(t, `(?m)(^OLD 0   NEW 0$)`, time.Minute)
	for range 40 { // none of one kind: once in 10¹²
		get(url)
	}
	d.await(t, `(?m)^OLD [1-9]\d*   NEW ([1-9]\d*)$`, time.Minute)
	second := exec.Command(program, "-dir", dir, "-free-ports")
	if out, err := second.CombinedOutput(); err == nil || !strings.Contains(string(out), "another estate runs") || !strings.Contains(string(out), ": bin/estate -free-ports -dir ") || strings.Contains(string(out), "estate: estate:") {
		t.Errorf("a second demo in the directory = %v: %s", err, out)
	}
	d.interrupt(t)
	if code := d.exitCode(t); code != 0 {
		t.Errorf("exit code = %d after Ctrl-C, want 0:\n%s", code, d.text())
	}

	d = startDemo(t, program, dir)
	d.await(t, `(The record of the last time is in force: .*"weight":5)`, building)
	url = d.await(t, `curl (http\S+/licenses/\S+)`, time.Minute)
	// Without the new service its share of the calls goes to the old one.
	if runtime.GOOS == "linux" {
		killProgram(t, filepath.Join(dir, "bin", "orgservice-new"))
		d.await(t, `(orgservice-new is gone)`, time.Minute)
		for range 10 {
			if body := get(url); !strings.Contains(body, "OLD::") {
				t.Errorf("without the new service a call gives %q, want OLD::", body)
			}
		}
	}
	host := strings.Split(url, "/")[2]
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// A request whose body never ends is in flight until the drain limit.
	fmt.Fprintf(conn, "PUT /api/organization/v1/organizations/x HTTP/1.1\r\nHost: %s\r\nExpect: 100-continue\r\n"+
		"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n", host)
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatalf("answer to the head of a request = %q, %v, want 100 Continue", line, err)
	}
	d.interrupt(t)
	d.await(t, `(Stopping)`, time.Minute)
	begin := time.Now()
	d.interrupt(t)
	if code := d.exitCode(t); code != 1 || time.Since(begin) > 10*time.Second {
		t.Errorf("exit code = %d, %v after the second Ctrl-C, want 1 at once:\n%s", code, time.Since(begin), d.text())
	}
}
