package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"specialroutes.example/services/estate/procfs"
)

// full is what one round of full load gave.
type full struct {
	cpu  float64 // processor time per request, in µs
	rate float64 // requests per second
	p99  float64 // of the time to an answer, in ms
}

// errLoad is a load that not every answer was right under.
var errLoad = errors.New("bench: the load met errors")

// fullLoad asks a URL as fast as it answers, over a number of connections.
func fullLoad(ctx context.Context, url string, pid int, d time.Duration, connections int) (full, error) {
	before, err := procfs.CPU(pid)
	if err != nil {
		return full{}, err
	}
	cmd := exec.CommandContext(ctx, "taskset", "-c", strconv.Itoa(coreLoad), "wrk", "-t1",
		"-c"+strconv.Itoa(connections), fmt.Sprintf("-d%ds", max(1, int(d.Seconds()))), "--latency", url)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return full{}, fmt.Errorf("bench: wrk: %w: %s", err, stderr.Bytes())
	}
	after, err := procfs.CPU(pid)
	if err != nil {
		return full{}, err
	}
	return parseWrk(string(out), after-before)
}

var (
	wrkRequests = regexp.MustCompile(`(?m)^\s*(\d+) requests in `)
	wrkRate     = regexp.MustCompile(`(?m)^Requests/sec:\s+([\d.]+)`)
	wrkP99      = regexp.MustCompile(`(?m)^\s+99%\s+([\d.]+)(us|ms|s|m)\s*$`)
	wrkErrors   = regexp.MustCompile(`(?m)^\s*(Non-2xx or 3xx responses: .*|Socket errors: .*)$`)
)

// parseWrk reads wrk's report.
func parseWrk(report string, cpu time.Duration) (full, error) {
	if bad := wrkErrors.FindString(report); bad != "" {
		return full{}, fmt.Errorf("%w: %s", errLoad, bad)
	}
	requests, rate, p99 := wrkRequests.FindStringSubmatch(report), wrkRate.FindStringSubmatch(report), wrkP99.FindStringSubmatch(report)
	if requests == nil || rate == nil || p99 == nil {
		return full{}, fmt.Errorf("%w: wrk's report does not read as it should:\n%s", errLoad, report)
	}
	n, err := strconv.ParseFloat(requests[1], 64)
	if err != nil || n == 0 {
		return full{}, fmt.Errorf("%w: %q requests", errLoad, requests[1])
	}
	var f full
	f.cpu = cpu.Seconds() * 1e6 / n
	if f.rate, err = strconv.ParseFloat(rate[1], 64); err != nil {
		return full{}, fmt.Errorf("%w: %w", errLoad, err)
	}
	if f.p99, err = strconv.ParseFloat(p99[1], 64); err != nil {
		return full{}, fmt.Errorf("%w: %w", errLoad, err)
	}
	f.p99 *= map[string]float64{"us": 1e-3, "ms": 1, "s": 1e3, "m": 60e3}[p99[2]]
	return f, nil
}
