package estate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ErrInUse says that another estate runs in the directory.
var ErrInUse = errors.New("another estate runs in this directory")

// claim is the right to a directory. The system takes it back when the process ends,
// in whatever way.
type claim struct{ file *os.File }

// claimDir makes the directory and takes it.
func claimDir(dir string) (*claim, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("estate: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "estate.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("estate: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close() // nothing was written
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrInUse
		}
		return nil, fmt.Errorf("estate: %s: %w", dir, err)
	}
	return &claim{file}, nil
}

// release gives the directory back. Further calls do nothing.
func (c *claim) release() { _ = c.file.Close() }

// CheckDir returns ErrInUse when another estate runs in a directory, so that a caller
// need not overwrite its programs first to learn it.
func CheckDir(dir string) error {
	c, err := claimDir(dir)
	if err != nil {
		return err
	}
	c.release()
	return nil
}
