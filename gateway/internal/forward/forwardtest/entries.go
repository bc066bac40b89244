package forwardtest

import (
	"sync"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/accesslog"
)

// entries are what an observer was told.
type entries struct {
	mu    sync.Mutex
	all   []accesslog.Entry
	added chan struct{}
}

func newEntries() *entries { return &entries{added: make(chan struct{}, 1)} }

// Observe keeps a copy of an entry.
func (e *entries) Observe(entry *accesslog.Entry) {
	if entry.Host == keptHost {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, *entry)
	select {
	case e.added <- struct{}{}:
	default:
	}
}

func (e *entries) list() []accesslog.Entry {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]accesslog.Entry(nil), e.all...)
}

// wait returns the entries when there are n of them.
func (e *entries) wait(t *testing.T, n int) []accesslog.Entry {
	t.Helper()
	over := time.After(soon)
	for {
		if all := e.list(); len(all) >= n {
			return all
		}
		select {
		case <-e.added:
		case <-over:
			t.Fatalf("%d requests were observed, want %d", len(e.list()), n)
		}
	}
}

// only returns the one entry that there must be.
func (e *entries) only(t *testing.T) accesslog.Entry {
	t.Helper()
	all := e.wait(t, 1)
	if len(all) != 1 {
		t.Fatalf("%d requests were observed, want 1: %+v", len(all), all)
	}
	return all[0]
}
