// Package procfs reads what Linux tells of a running process: the time it took,
// the memory it holds and the files it has open. The benchmark and the storms
// measure with it from outside, so that the measured program needs nothing for it.
// On other systems every function returns an error.
package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of times in /proc/PID/stat. Linux tells it as 100 to
// all programs, whatever the kernel counts by.
const ticksPerSecond = 100

// errFormat is a file of /proc that does not read as it should.
var errFormat = errors.New("procfs: not the format that is expected")

// CPU returns the processor time, of the program and the kernel for it, that a
// process and its present children have taken. It is counted in hundredths of a
// second.
func CPU(pid int) (time.Duration, error) {
	all, err := withChildren(pid)
	if err != nil {
		return 0, err
	}
	var ticks int64
	for _, p := range all {
		fields, err := stat(p)
		if err != nil {
			return 0, err
		}
		for _, field := range fields[11:13] { // utime and stime
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%w: %w", errFormat, err)
			}
			ticks += n
		}
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}

// stat returns the fields of /proc/PID/stat after the name, which may hold spaces
// and parentheses; the first is the state.
func stat(pid int) ([]string, error) {
	text, err := os.ReadFile(path(pid, "stat"))
	if err != nil {
		return nil, fmt.Errorf("procfs: %w", err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 22 {
		return nil, errFormat
	}
	return fields, nil
}

// Children returns the processes that a process has started and that still run.
func Children(pid int) ([]int, error) {
	threads, err := os.ReadDir(path(pid, "task"))
	if err != nil {
		return nil, fmt.Errorf("procfs: %w", err)
	}
	var children []int
	for _, thread := range threads {
		text, err := os.ReadFile(path(pid, "task", thread.Name(), "children"))
		if errors.Is(err, os.ErrNotExist) {
			continue // the thread has ended
		}
		if err != nil {
			return nil, fmt.Errorf("procfs: %w", err)
		}
		for _, field := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", errFormat, err)
			}
			children = append(children, child)
		}
	}
	return children, nil
}

func withChildren(pid int) ([]int, error) {
	children, err := Children(pid)
	return append([]int{pid}, children...), err
}

// Memory is what a process holds of the machine's memory, in bytes.
type Memory struct {
	Resident int64 // at this moment
	Peak     int64 // the most since the start, or since ResetPeak
}

// MemoryOf returns the memory of a process and its present children. The peak is
// the sum of theirs, which may have been at different moments.
func MemoryOf(pid int) (Memory, error) {
	all, err := withChildren(pid)
	if err != nil {
		return Memory{}, err
	}
	var sum Memory
	for _, p := range all {
		text, err := os.ReadFile(path(p, "status"))
		if err != nil {
			return Memory{}, fmt.Errorf("procfs: %w", err)
		}
		resident, err := kilobytes(string(text), "VmRSS:")
		if err != nil {
			return Memory{}, err
		}
		peak, err := kilobytes(string(text), "VmHWM:")
		if err != nil {
			return Memory{}, err
		}
		sum.Resident += resident
		sum.Peak += peak
	}
	return sum, nil
}

// kilobytes finds a line of /proc/PID/status and returns its value in bytes.
func kilobytes(status, name string) (int64, error) {
	for line := range strings.Lines(status) {
		rest, found := strings.CutPrefix(line, name)
		if !found {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", errFormat, err)
		}
		return n << 10, nil
	}
	return 0, fmt.Errorf("%w: no %s", errFormat, name)
}

// ResetPeak makes the peak of a process's memory what it holds now.
func ResetPeak(pid int) error {
	const resetPeak = "5"
	if err := os.WriteFile(path(pid, "clear_refs"), []byte(resetPeak), 0); err != nil {
		return fmt.Errorf("procfs: %w", err)
	}
	return nil
}

// DescriptorKinds counts what a process has open by its kind: "socket", "pipe",
// "anon_inode" and so on, and of files their path. Pipes count once for each end.
func DescriptorKinds(pid int) (map[string]int, error) {
	open, err := os.ReadDir(path(pid, "fd"))
	if err != nil {
		return nil, fmt.Errorf("procfs: %w", err)
	}
	kinds := map[string]int{}
	for _, file := range open {
		link, err := os.Readlink(path(pid, "fd", file.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // closed meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("procfs: %w", err)
		}
		kind, _, _ := strings.Cut(link, ":")
		kinds[kind]++
	}
	return kinds, nil
}

func path(pid int, below ...string) string {
	return "/proc/" + strings.Join(append([]string{strconv.Itoa(pid)}, below...), "/")
}
