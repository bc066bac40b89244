package sqlite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gofrs/flock"
)

// What a process does with the file while it has the lock.
const (
	serving   = "serves"
	migrating = "migrates"
)

// lockPoll is the time between two attempts to get the lock.
const lockPoll = 50 * time.Millisecond

// LockedError says that another process works on the file.
type LockedError struct {
	Path   string // of the database
	Holder string // what is known about the other process
}

// Error names the file and who has it.
func (e *LockedError) Error() string {
	return fmt.Sprintf("sqlite: %s is in use by another process (%s); only one can work on a SQLite file at a time",
		e.Path, e.Holder)
}

// holder is what the process with the lock writes into the lock's file, for others
// to tell their user.
type holder struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"` // in a container, its name
	Does  string    `json:"does"` // serves or migrates
	Since time.Time `json:"since"`
}

func (h holder) String() string {
	return fmt.Sprintf("PID %d on %s, which %s since %s", h.PID, h.Host, h.Does, h.Since.Format(time.RFC3339))
}

// fileLock makes sure that one process works on a database. The system takes it
// from a process that dies. Its file stays, because to delete it would let two
// processes hold locks on two files of one name.
type fileLock struct{ flock *flock.Flock }

// acquire takes the lock of the database at path. It waits for a process that
// migrates, up to the options' limit, but not for one that serves, which may do so
// for months.
func acquire(ctx context.Context, path, does string, o Options) (*fileLock, error) {
	l := &fileLock{flock.New(path+".lock", flock.SetPermissions(0o600))}
	deadline := time.Now().Add(o.LockTimeout)
	var seen []byte // what the lock's file held at the last look
	for {
		ok, err := l.flock.TryLock()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("sqlite: %w", err), l.flock.Close())
		}
		if ok {
			return l, l.sign(does, o)
		}
		text, h := readHolder(l.flock.Path())
		// A process writes its name after it got the lock. Only what stands there twice
		// is surely not left over from the one before it.
		settled := seen != nil && bytes.Equal(text, seen)
		if settled && h.Does == serving || time.Now().After(deadline) {
			return nil, errors.Join(&LockedError{Path: path, Holder: h.String()}, l.flock.Close())
		}
		if seen == nil {
			o.Log.Info("waiting for another process that has the database", "file", path, "holder", h.String())
		}
		seen = text
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("sqlite: waiting for %s: %w", path, ctx.Err()), l.flock.Close())
		}
	}
}

// sign writes who has the lock into its file; the lock is released on an error.
func (l *fileLock) sign(does string, o Options) error {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	text, err := json.Marshal(holder{PID: os.Getpid(), Host: host, Does: does, Since: o.Sources.Now().UTC()})
	if err == nil {
		err = os.WriteFile(l.flock.Path(), append(text, '\n'), 0o600)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("sqlite: %w", err), l.release())
	}
	return nil
}

// readHolder reads the lock's file; what cannot be read is told as far as it goes.
func readHolder(path string) ([]byte, holder) {
	h := holder{Host: "an unknown host", Does: "uses it"}
	text, err := os.ReadFile(path)
	if err == nil {
		_ = json.Unmarshal(text, &h) // it may be half written
	}
	return append([]byte{}, text...), h
}

func (l *fileLock) release() error { return l.flock.Close() }
