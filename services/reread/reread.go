// Package reread keeps a value made of files up to date with them, so that a
// renewed certificate or a changed list of tokens needs no restart. It looks when
// it is asked, at most once in an interval, and has no goroutine. It compares
// contents, not times: mounted secrets are swapped by symbolic links, and a file
// may be written twice within a clock tick.
package reread

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Interval is how long a change of a file may stay unnoticed.
const Interval = time.Second

// Value is a value of type T that is made of files. It is safe for concurrent use.
type Value[T any] struct {
	paths []string
	parse func(contents [][]byte) (T, error)
	now   func() time.Time
	log   *slog.Logger

	current atomic.Pointer[T]

	mu       sync.Mutex
	looked   time.Time
	contents [][]byte
}

// Open reads the files and makes the first value; parse is given their contents in
// the order of paths. Its errors are logged later, so they hold no secrets.
func Open[T any](log *slog.Logger, now func() time.Time, parse func([][]byte) (T, error), paths ...string) (*Value[T], error) {
	v := &Value[T]{paths: paths, parse: parse, now: now, log: log, looked: now()}
	contents, err := v.read()
	if err != nil {
		return nil, err
	}
	first, err := parse(contents)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", paths[0], err)
	}
	v.contents = contents
	v.current.Store(&first)
	return v, nil
}

// Current returns the value of the files as they are, or were within Interval.
// While they cannot be read, or make no sense, the last good value stays in force
// and the reason is logged.
func (v *Value[T]) Current() T {
	if v.mu.TryLock() { // whoever comes while another one looks takes what there is
		v.look()
		v.mu.Unlock()
	}
	return *v.current.Load()
}

// look reads the files when it is time to. v.mu is held.
func (v *Value[T]) look() {
	now := v.now()
	if now.Sub(v.looked) < Interval {
		return
	}
	v.looked = now
	contents, err := v.read()
	if err != nil {
		v.log.Error("a file cannot be read; what it said stays in force", "error", err)
		return
	}
	if equal(contents, v.contents) {
		return
	}
	v.contents = contents // a bad content is reported once
	next, err := v.parse(contents)
	if err != nil {
		v.log.Error("a changed file is not usable; what it said stays in force", "file", v.paths[0], "error", err)
		return
	}
	v.current.Store(&next)
	v.log.Info("a changed file was read", "file", v.paths[0])
}

func (v *Value[T]) read() ([][]byte, error) {
	contents := make([][]byte, len(v.paths))
	for i, path := range v.paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		contents[i] = data
	}
	return contents, nil
}

func equal(a, b [][]byte) bool {
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}
