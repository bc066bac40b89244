package forward

import (
	"sync"
	"sync/atomic"
	"time"

	"specialroutes.example/gateway/internal/config"
)

// phase is what a request is waiting for.
type phase int32

const (
	sending   phase = iota // the request is on its way: idle holds
	waiting                // it has been sent: response holds
	answering              // the head has come: idle holds
	streaming              // an event stream or a tunnel: tunnel holds
)

// watch keeps one request's time limits with one timer. Progress is noted by a
// store; the timer looks at what was noted when it fires, and sets itself anew.
// Its methods are safe for concurrent use.
type watch struct {
	limits  config.Timeouts
	start   time.Time
	expired func(cause error) // called at most once, never after stop

	phase atomic.Int32
	hint  atomic.Int64 // since when a 1xx answer is being written; 0: none is
	since atomic.Int64 // of the last progress, or of the phase: nanoseconds after start
	due   atomic.Int64 // when the timer fires

	mu    sync.Mutex
	timer *time.Timer // nil: no limit is set
	over  bool
}

// newWatch starts the watch over a request.
func newWatch(limits config.Timeouts, expired func(cause error)) *watch {
	w := &watch{limits: limits, start: time.Now(), expired: expired}
	if first := w.shortest(); first > 0 {
		w.mu.Lock() // the timer may fire before it is assigned
		w.due.Store(int64(first))
		w.timer = time.AfterFunc(first, w.fire)
		w.mu.Unlock()
	}
	return w
}

// shortest is the least limit there is, 0 when there is none. No phase ends
// before it, so it is soon enough to look.
func (w *watch) shortest() time.Duration {
	var least time.Duration
	for _, d := range []time.Duration{w.limits.Response, w.limits.Idle, w.limits.Tunnel, w.limits.Total} {
		if d > 0 && (least == 0 || d < least) {
			least = d
		}
	}
	return least
}

// progress notes that a byte has moved.
func (w *watch) progress() { w.since.Store(int64(time.Since(w.start))) }

// enter begins a phase. The request is never watched for an earlier one again.
func (w *watch) enter(p phase) {
	for {
		old := w.phase.Load()
		if old >= int32(p) {
			return
		}
		if w.phase.CompareAndSwap(old, int32(p)) {
			break
		}
	}
	w.progress()
	w.hasten()
}

// inform writes a 1xx answer, under the limit of a client that takes no byte.
func (w *watch) inform(write func()) {
	w.hint.Store(max(int64(time.Since(w.start)), 1))
	w.hasten()
	write()
	w.hint.Store(0)
}

// hasten has the timer fire sooner if the limit is over sooner than it was.
func (w *watch) hasten() {
	due, _ := w.limit()
	if w.timer != nil && due > 0 && int64(due) < w.due.Load() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.setLocked(due)
	}
}

// again goes back to sending, for a further attempt.
func (w *watch) again() {
	w.phase.Store(int32(sending))
	w.progress()
}

// limit returns when the request is over its limit, after start, and with what
// error; 0 is never.
func (w *watch) limit() (due time.Duration, cause error) {
	var most time.Duration
	switch phase(w.phase.Load()) {
	case waiting:
		most, cause = w.limits.Response, errResponseTimeout
	case streaming:
		most, cause = w.limits.Tunnel, errUpstreamIdle
	default:
		most, cause = w.limits.Idle, errUpstreamIdle
	}
	if most > 0 {
		due = time.Duration(w.since.Load()) + most
	}
	if since := time.Duration(w.hint.Load()); since > 0 && w.limits.Idle > 0 && (due == 0 || since+w.limits.Idle < due) {
		due, cause = since+w.limits.Idle, errClientIdle
	}
	if t := w.limits.Total; t > 0 && (due == 0 || t < due) {
		due, cause = t, errTotalTimeout
	}
	return due, cause
}

// fire looks whether a limit is over.
func (w *watch) fire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	due, cause := w.limit()
	if due == 0 { // this phase has no limit; another may
		w.setLocked(time.Since(w.start) + w.shortest())
		return
	}
	if time.Since(w.start) >= due {
		w.over = true
		w.expired(cause)
		return
	}
	w.setLocked(due)
}

func (w *watch) setLocked(due time.Duration) {
	if w.over {
		return
	}
	w.due.Store(int64(due))
	w.timer.Reset(due - time.Since(w.start))
}

// stop ends the watch. When it returns, expired has been called or never will be.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.timer != nil {
		w.timer.Stop()
	}
}
