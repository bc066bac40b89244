package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// machine says where and when a report was made.
type machine struct {
	processor, kernel     string
	cores                 int
	nginx, haproxy        string
	loadBefore, loadAfter string
	when                  time.Time
}

func (m machine) String() string {
	return fmt.Sprintf("%s: %d cores of %s, Linux %s, %s, nginx %s, HAProxy %s; load average %s before, %s after, the measurement's own included.",
		m.when.UTC().Format(time.DateOnly), m.cores, m.processor, m.kernel, runtime.Version(), m.nginx, m.haproxy, m.loadBefore, m.loadAfter)
}

// describe asks the machine. What it does not tell is "unknown".
func describe(ctx context.Context) machine {
	m := machine{cores: runtime.NumCPU(), when: time.Now()}
	m.processor = find(read("/proc/cpuinfo"), `(?m)^model name\s*: (.*)$`)
	m.kernel = find(read("/proc/sys/kernel/osrelease"), `^(\S+)`)
	m.nginx = find(output(ctx, "nginx", "-v"), `nginx/(\S+)`)
	m.haproxy = find(output(ctx, "haproxy", "-v"), `version ([\d.]+)`)
	return m
}

// loadAverage is the one of the last minute.
func loadAverage() string { return find(read("/proc/loadavg"), `^(\S+)`) }

func find(text, pattern string) string {
	if m := regexp.MustCompile(pattern).FindStringSubmatch(text); m != nil {
		return strings.TrimSpace(m[1])
	}
	return "unknown"
}

func read(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return string(text)
}

func output(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return ""
	}
	return string(out)
}
