// Package sqlite keeps route records in one SQLite file, without cgo. It is the
// embedded store of the demo and of small installations: one process works on a
// file, which a lock beside it makes sure of.
//
// The file is in WAL mode, so that readers and the writer do not wait for each
// other. Each commit is synced to the disk (synchronous=FULL): with NORMAL a loss
// of power would take back the last changes, which were answered as stored, and
// changes are far too rare for the difference to be felt.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"specialroutes.example/specialroutes/internal/store"
)

var _ store.Store = (*Store)(nil)

// Options say which file is used, and how.
type Options struct {
	// Path names the file. It is made, readable for its owner only, when it is not
	// there; its directory must be. Beside it live Path-wal and Path-shm, which belong
	// to it, and Path.lock.
	Path string

	// Limit bounds each read and each change; after it the answer is
	// store.ErrUnavailable. 0 is 5 s.
	Limit time.Duration

	// LockTimeout bounds the wait for another process that migrates the same file;
	// 0 is a minute. For one that serves from it there is no wait.
	LockTimeout time.Duration

	// Sources of time and nonces; the zero value is the system's.
	Sources store.Sources

	// Log gets a line when another process is waited for; nil logs nothing.
	Log *slog.Logger
}

const (
	defaultLimit       = 5 * time.Second
	defaultLockTimeout = time.Minute

	// readers is the number of connections for reading.
	readers = 4
)

func (o Options) withDefaults() Options {
	if o.Limit == 0 {
		o.Limit = defaultLimit
	}
	if o.LockTimeout == 0 {
		o.LockTimeout = defaultLockTimeout
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Sources = o.Sources.WithDefaults()
	return o
}

// Path returns the path in an address: that of sqlite:///var/lib/x.db is
// /var/lib/x.db, that of sqlite://x.db is x.db in the working directory.
func Path(address string) (string, error) {
	rest, ok := strings.CutPrefix(address, "sqlite://")
	path, err := url.PathUnescape(rest)
	if !ok || err != nil || path == "" || strings.ContainsAny(rest, "?#") || strings.Contains(path, "\x00") {
		return "", fmt.Errorf("sqlite: %q is not sqlite:///path/to/file", address)
	}
	return path, nil
}

// Store is a store.Store in a SQLite file.
type Store struct {
	lock    *fileLock
	writer  *sql.DB // of one connection: writers wait in line in this process
	reader  *sql.DB
	limit   time.Duration
	sources store.Sources
}

// Open opens the file for this process alone and keeps it until Close. The error
// is a *LockedError when another process has it; it is a store.ErrUnavailable only
// when trying again may help. The tables must have been made by Migrate.
func Open(ctx context.Context, o Options) (*Store, error) {
	o = o.withDefaults()
	path, err := realPath(o.Path)
	if err != nil {
		return nil, err
	}
	lock, err := acquire(ctx, path, serving, o)
	if err != nil {
		return nil, err
	}
	s := &Store{lock: lock, limit: o.Limit, sources: o.Sources}
	if err := s.open(ctx, path); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, path string) error {
	if err := create(path); err != nil {
		return err
	}
	var errWriter, errReader error
	s.writer, errWriter = sql.Open("sqlite", dsn(path, "immediate"))
	s.reader, errReader = sql.Open("sqlite", dsn(path, "deferred", "query_only(1)"))
	if err := errors.Join(errWriter, errReader); err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	s.writer.SetMaxOpenConns(1)
	s.reader.SetMaxOpenConns(readers)
	s.reader.SetMaxIdleConns(readers)
	// The first statement that reads the file says whether it is a database.
	_, err := s.writer.ExecContext(ctx, `SELECT count(*) FROM sqlite_schema`)
	return openError(ctx, "opening "+path, err)
}

// Close closes the file and gives it free for another process.
func (s *Store) Close() error {
	var errs []error
	for _, db := range []*sql.DB{s.reader, s.writer} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(append(errs, s.lock.release())...)
}

// Ping asks whether the file can be read and holds the tables.
func (s *Store) Ping(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	var n, none int64
	err := s.reader.QueryRowContext(limited, store.Tables).Scan(&n, &none, &none, &none, &none, &none)
	return meaning(ctx, "ping", orNoCounter("ping", err))
}

// dsn is the address of the file for the driver, with the settings of each
// connection.
func dsn(path, begin string, pragmas ...string) string {
	q := url.Values{"_txlock": {begin}, "_pragma": append([]string{
		"busy_timeout(5000)", // for other programs that look into the file
		"journal_mode(WAL)",
		"synchronous(FULL)",
		"foreign_keys(1)",
	}, pragmas...)}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String()
}

// realPath returns the absolute path without symbolic links, so that all processes
// agree on the lock's name. The file itself need not exist.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("sqlite: %w", err)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real, nil
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", fmt.Errorf("sqlite: the directory of the database: %w", err)
	}
	return filepath.Join(dir, filepath.Base(path)), nil
}

// create makes an empty file for its owner only, when there is none; SQLite gives
// the files beside it the same permissions. It is called with the lock: opening and
// closing the file would take SQLite's own locks from a store in this process.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	return f.Close()
}
