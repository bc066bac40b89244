package consulagent

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrNotInstalled says that there is no consul program to run.
var ErrNotInstalled = errors.New("consulagent: no consul program: make bin/consul builds it, or CONSUL_BINARY names one")

// binaryVariable names a program to use instead of those that Find looks for.
const binaryVariable = "CONSUL_BINARY"

// Find returns the consul program to run: the one that CONSUL_BINARY names, else
// the one that the Makefile has built, else the one in PATH. The error is
// ErrNotInstalled.
func Find() (string, error) {
	if path := os.Getenv(binaryVariable); path != "" {
		if !isFile(path) {
			return "", ErrNotInstalled
		}
		return path, nil
	}
	if path, ok := built(); ok {
		return path, nil
	}
	path, err := exec.LookPath("consul")
	if err != nil {
		return "", ErrNotInstalled
	}
	return path, nil
}

// built returns bin/consul of the tree that the working directory belongs to.
func built() (string, bool) {
	dir, err := os.Getwd()
	if err != nil {
		return "", false
	}
	for {
		if isFile(filepath.Join(dir, ".ci", "consul", "go.mod")) {
			path := filepath.Join(dir, "bin", "consul")
			return path, isFile(path)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
