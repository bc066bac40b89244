package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// installPackage installs PostgreSQL where that needs nobody's leave: for root on
// Debian and its relatives. Anywhere else it does nothing and gives no error; what
// is missing is said by the caller.
func installPackage(ctx context.Context, out io.Writer) error {
	if _, err := os.Stat("/etc/debian_version"); err != nil || os.Geteuid() != 0 {
		return nil
	}
	fmt.Fprintln(out, "withpostgres: installing the package postgresql")
	// An update that fails is no reason to stop: the lists may be good enough.
	errUpdate := aptGet(ctx, out, "update", "-qq")
	if err := aptGet(ctx, out, "install", "-qq", "--yes", "--no-install-recommends", "postgresql"); err != nil {
		return errors.Join(errUpdate, err)
	}
	return nil
}

func aptGet(ctx context.Context, out io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("apt-get %s: %w", args[0], err)
	}
	return nil
}
