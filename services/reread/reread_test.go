package reread_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"specialroutes.example/services/reread"
)

// setup is one watched file, with a clock that stands still until it is moved.
type setup struct {
	path string
	now  time.Time
	logs bytes.Buffer
}

func newSetup(t *testing.T, content string) *setup {
	t.Helper()
	s := &setup{path: filepath.Join(t.TempDir(), "file"), now: time.Unix(1000, 0)}
	s.write(t, content)
	return s
}

func (s *setup) write(t *testing.T, content string) {
	t.Helper()
	if err := os.WriteFile(s.path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *setup) open() (*reread.Value[string], error) {
	parse := func(contents [][]byte) (string, error) {
		if text := string(contents[0]); !strings.HasPrefix(text, "bad") {
			return text, nil
		}
		return "", errors.New("it is bad")
	}
	log := slog.New(slog.NewTextHandler(&s.logs, nil))
	return reread.Open(log, func() time.Time { return s.now }, parse, s.path)
}

func TestValueFollowsItsFile(t *testing.T) {
	t.Parallel()
	s := newSetup(t, "one")
	v, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		name    string
		content string
		pass    time.Duration
		want    string
	}{
		{"nothing has changed", "one", time.Hour, "one"},
		{"within the interval nobody looks", "two", reread.Interval - 1, "one"},
		{"after it a change is seen", "two", 1, "two"},
		{"a bad content leaves the last good one", "bad", reread.Interval, "two"},
		{"a mended one is seen", "three", reread.Interval, "three"},
	}
	for _, step := range steps {
		s.write(t, step.content)
		s.now = s.now.Add(step.pass)
		if got := v.Current(); got != step.want {
			t.Errorf("%s: Current() = %q, want %q", step.name, got, step.want)
		}
	}
}

func TestValueOutlivesItsFile(t *testing.T) {
	t.Parallel()
	s := newSetup(t, "one")
	v, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(s.path); err != nil {
		t.Fatal(err)
	}
	s.now = s.now.Add(reread.Interval)
	if got := v.Current(); got != "one" || !strings.Contains(s.logs.String(), "cannot be read") {
		t.Errorf("Current() = %q, want one and a line in the log; it has: %s", got, &s.logs)
	}
}

func TestOpenRefusesABadFile(t *testing.T) {
	t.Parallel()
	if v, err := newSetup(t, "bad").open(); err == nil {
		t.Errorf("Open(bad content) = %v, want an error", v)
	}
	s := newSetup(t, "one")
	s.path += "-absent"
	if v, err := s.open(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open(no file) = %v, %v, want os.ErrNotExist", v, err)
	}
}
