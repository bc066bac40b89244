package estate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Binaries are the estate's programs, built. The zero value is of no use.
type Binaries struct{ dir string }

// BinariesIn returns the programs that were built into a directory before.
func BinariesIn(dir string) Binaries { return Binaries{dir: dir} }

// Path returns the file of a program: specialroutes, gateway, orgservice-old,
// orgservice-new or licensingservice.
func (b Binaries) Path(name string) string { return filepath.Join(b.dir, name) }

const modules = "specialroutes.example/"

// Build builds all programs into dir, with the race detector if the caller has
// it. It is called from anywhere in the source tree.
func Build(ctx context.Context, dir string) (Binaries, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Binaries{}, fmt.Errorf("estate: %w", err)
	}
	services, err := goCommand(ctx, ".", "list", "-m", "-f", "{{.Dir}}", modules+"services")
	if err != nil {
		return Binaries{}, err
	}
	args := []string{"build", "-o", dir + string(filepath.Separator)}
	if raceDetector {
		args = append(args, "-race")
	}
	args = append(args, modules+"specialroutes", modules+"gateway", modules+"orgservice-old",
		modules+"orgservice-new", modules+"services/cmd/licensingservice")
	// From the root the go command finds go.work, also when the caller does without.
	if _, err := goCommand(ctx, filepath.Dir(services), args...); err != nil {
		return Binaries{}, err
	}
	return Binaries{dir: dir}, nil
}

// goCommand runs the go command in a directory and returns what it printed.
func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	if args[0] == "build" {
		cmd.Env = append(os.Environ(), "GOWORK=")
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err == nil {
		return strings.TrimSpace(stdout.String()), nil
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("estate: go %s: %w\n%s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return "", fmt.Errorf("estate: the go command: %w", err)
}
