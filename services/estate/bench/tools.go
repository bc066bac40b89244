package bench

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
)

// tools are the programs that the measurement stands on, with their Debian packages.
var tools = []struct{ name, debian string }{
	{"nginx", "nginx-light"}, {"haproxy", "haproxy"}, {"wrk", "wrk"}, {"taskset", "util-linux"},
}

// ErrMachine says that this machine is none to measure on.
var ErrMachine = errors.New("bench: it takes Linux and two cores")

// ToolsError names the programs that are missing.
type ToolsError struct {
	Missing  []string
	Packages []string // of Debian, in the same order
}

func (e *ToolsError) Error() string {
	return fmt.Sprintf("bench: %s not found; on Debian: apt-get install %s",
		strings.Join(e.Missing, ", "), strings.Join(e.Packages, " "))
}

// Check returns an error if the machine or its programs do not suffice: ErrMachine
// or a *ToolsError.
func Check() error {
	if runtime.GOOS != "linux" || runtime.NumCPU() < 2 {
		return ErrMachine
	}
	return checkTools(exec.LookPath)
}

func checkTools(find func(name string) (string, error)) error {
	var missing ToolsError
	for _, tool := range tools {
		if _, err := find(tool.name); err != nil {
			missing.Missing = append(missing.Missing, tool.name)
			missing.Packages = append(missing.Packages, tool.debian)
		}
	}
	if len(missing.Missing) > 0 {
		return &missing
	}
	return nil
}
