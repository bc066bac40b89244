package records

import (
	"sync"
	"time"
)

// Source says where the records in force came from.
type Source string

// The sources.
const (
	SourceNone Source = "none" // there are none yet
	SourceFile Source = "file" // the file; specialroutes has not answered since the start
	SourceLive Source = "live" // specialroutes
)

// Status is how following goes. Counts are since the start.
type Status struct {
	Source   Source
	AsOf     time.Time // when the records in force were last known to be all; zero: never
	Cursor   string
	Revision int64 // the number in the cursor, for a gauge; -1 when it has none
	InForce  int   // records
	SetAside int   // records whose latest version cannot be used

	Overlays         int // instances whose labels an operator has changed
	OverlaysSetAside int // those of which the latest change cannot be used

	URL          string // of the last exchange
	LastError    string // of the last exchange that failed
	LastErrorAt  time.Time
	FailingSince time.Time // when exchanges began to fail; zero: the last one did not
	Errors       int64     // exchanges that failed
	Recoveries   int64     // exchanges that succeeded after one that failed
	Changes      int64     // answers that were put in force
	FullAnswers  int64     // of these, those that replaced everything
	FileErrors   int64     // readings and writings of the file that failed
}

// Status returns how following goes.
func (f *Follower) Status() Status { return f.status.load() }

// statusBox guards a Status.
type statusBox struct {
	mu     sync.Mutex
	status Status
}

func (b *statusBox) load() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.status
	if s.Source == "" {
		s.Source, s.Revision = SourceNone, -1
	}
	return s
}

func (b *statusBox) update(f func(*Status)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(&b.status)
}

func (b *statusBox) inForce(s *Snapshot, from Source, asOf time.Time) {
	n := s.Len()
	b.update(func(st *Status) {
		st.Source, st.AsOf, st.Cursor, st.Revision = from, asOf, s.Cursor(), cursorRevision(s.Cursor())
		st.InForce, st.SetAside = n, s.SetAside()
	})
}

func (b *statusBox) changed(full bool) {
	b.update(func(st *Status) {
		st.Changes++
		if full {
			st.FullAnswers++
		}
	})
}

func (b *statusBox) failed(url string, err error, at time.Time) {
	b.update(func(st *Status) {
		st.Errors, st.URL, st.LastError, st.LastErrorAt = st.Errors+1, url, err.Error(), at
		if st.FailingSince.IsZero() {
			st.FailingSince = at
		}
	})
}

func (b *statusBox) succeeded(url string, again bool) {
	b.update(func(st *Status) {
		st.URL, st.FailingSince = url, time.Time{}
		if again {
			st.Recoveries++
		}
	})
}

func (b *statusBox) fileFailed() { b.update(func(st *Status) { st.FileErrors++ }) }
