package bench

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"specialroutes.example/services/estate"
)

// profileVariable tells the gateway's test binary to serve, and where to write the
// profile of its processor time to. The program itself has no such thing.
const profileVariable = "PROFILE_OF_GATEWAY"

// gatewayPackage is the gateway's main.
const gatewayPackage = "specialroutes.example/gateway"

// build builds the estate's programs. With a profile the gateway's test binary takes
// the place of the gateway.
func build(ctx context.Context, dir, profile string) (estate.Binaries, error) {
	bin, err := estate.Build(ctx, dir)
	if err != nil || profile == "" {
		return bin, err
	}
	out, err := exec.CommandContext(ctx, "go", "test", "-c", "-o", bin.Path(estate.Gateway), gatewayPackage).CombinedOutput()
	if err != nil {
		return bin, fmt.Errorf("bench: go test -c: %w: %s", err, out)
	}
	return bin, nil
}

// part is a part of the gateway's work, and the processor time that it took.
type part struct {
	name string
	took time.Duration
}

// partOf says to which part a stack belongs: that of the first entry one of whose
// texts is in the name of one of its functions.
var partOf = []struct {
	name  string
	texts []string
}{
	{"access log", []string{"/accesslog."}},
	{"waiting and switching between goroutines", []string{"runtime.netpoll", "runtime.findRunnable", "runtime.schedule", "runtime.mcall"}},
	{"collecting garbage", []string{"runtime.gcBgMarkWorker", "runtime.gcAssist", "runtime.bgsweep", "runtime.bgscavenge", "runtime.wbBufFlush"}},
	{"system call: write", []string{"syscall.write", "syscall.Writev"}},
	{"system call: read", []string{"syscall.read", "syscall.Read"}},
	{"system calls: all others", []string{"syscall.Syscall", "syscall.RawSyscall", "runtime/syscall"}},
	{"metrics", []string{"/metrics.", "prometheus/client_golang"}},
	{"balance", []string{"/balance."}},
	{"deciding by the record", []string{"services/routing."}},
	{"filters, without what is above", []string{"/filter.", "/table.", "/rawpath."}},
	{"parsers of net/http", []string{"net/http.", "net/textproto."}},
	{"moving bytes, without what is above", []string{"/forward."}},
	{"all else", []string{""}},
}

// parts adds up a report of go tool pprof -traces by part, the largest first.
func parts(traces string) ([]part, error) {
	took := make([]time.Duration, len(partOf))
	_, rest, _ := strings.Cut(traces, "-----------+")
	for trace := range strings.SplitSeq(rest, "-----------+") {
		_, trace, _ = strings.Cut(trace, "\n") // the rest of the dividing line
		first, _, _ := strings.Cut(strings.TrimSpace(trace), " ")
		if first == "" {
			continue
		}
		d, err := time.ParseDuration(first)
		if err != nil {
			return nil, fmt.Errorf("bench: a trace of pprof: %w", err)
		}
		took[partIndex(trace)] += d
	}
	var all []part
	for i, d := range took {
		if d > 0 {
			all = append(all, part{partOf[i].name, d})
		}
	}
	slices.SortStableFunc(all, func(a, b part) int { return cmp.Compare(b.took, a.took) })
	return all, nil
}

// partIndex returns which of partOf a stack belongs to.
func partIndex(stack string) int {
	for i, p := range partOf {
		for _, text := range p.texts {
			if strings.Contains(stack, text) {
				return i
			}
		}
	}
	return len(partOf) - 1
}

// printProfile tells which parts of the work took the time of a profile, µs of a
// request all in all, and which functions.
func printProfile(ctx context.Context, profile string, perRequest float64) (string, error) {
	traces, err := pprof(ctx, "-traces", profile)
	if err != nil {
		return "", err
	}
	all, err := parts(traces)
	if err != nil {
		return "", err
	}
	functions, err := pprof(ctx, "-top", "-cum", "-nodecount=100", profile)
	return partsTable(all, perRequest) + "\n" + functions, err
}

func partsTable(all []part, perRequest float64) string {
	var sum time.Duration
	for _, p := range all {
		sum += p.took
	}
	var b strings.Builder
	b.WriteString("| part | share | µs a request |\n| --- | --- | --- |\n")
	for _, p := range all {
		share := float64(p.took) / float64(sum)
		fmt.Fprintf(&b, "| %s | %.1f %% | %.2f |\n", p.name, 100*share, share*perRequest)
	}
	return b.String()
}

func pprof(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", append([]string{"tool", "pprof"}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("bench: go tool pprof: %w: %s", err, out)
	}
	return string(out), nil
}
