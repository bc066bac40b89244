package consul

import (
	"context"
	"time"

	"golang.org/x/time/rate"
)

// watcher asks for one service, one question at a time.
type watcher struct {
	r        *Registry
	pool     *pool
	limiter  *rate.Limiter
	index    uint64 // of the answer in force; 0 asks for an answer at once
	broken   bool   // the next answer does not follow from the last one
	failures int    // in a row
}

func newWatcher(r *Registry, p *pool) *watcher {
	return &watcher{r: r, pool: p, limiter: rate.NewLimiter(rate.Every(r.o.Times.Interval), 2)}
}

// run asks until ctx ends.
func (w *watcher) run(ctx context.Context) {
	for {
		if w.limiter.Wait(ctx) != nil {
			return
		}
		a, err := w.r.ask(ctx, w.pool.service, w.index)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			w.fail(ctx, err)
			continue
		}
		w.take(a)
	}
}

// take puts an answer in force and finds the index to wait at. An index is at least
// 1, since 0 would have every question answered at once. One that went backwards is
// that of a state that was restored or lost, and says nothing about this one: the
// next question begins anew.
func (w *watcher) take(a answer) {
	if w.failures > 0 {
		w.r.log.Info("Consul is followed again", "of", w.pool.service, "failures", w.failures)
	}
	index := max(1, a.index)
	if index < w.index {
		w.broken = true
		index = 0
	}
	w.r.apply(w.pool, a.instances, w.broken)
	w.index, w.broken, w.failures = index, false, 0
}

// fail notes an error and waits before the next question, longer from time to time,
// and by chance, so that many gateways do not come back all at once.
func (w *watcher) fail(ctx context.Context, err error) {
	w.index, w.broken = 0, true
	w.failures++
	reason := short(err)
	w.r.failed(reason)
	what := "Consul cannot be followed; the last known instances stay in force"
	if !w.r.interrupted(w.pool) {
		what = "Consul cannot be followed; no instances are known yet"
	}
	if w.failures&(w.failures-1) == 0 { // the first, second, fourth, eighth …
		w.r.log.Warn(what, "of", w.pool.service, "error", reason, "failures", w.failures)
	}
	pause(ctx, w.backoff())
}

// short is the text of an error, which may hold a whole answer.
func short(err error) string {
	const most = 300
	text := err.Error()
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}

// backoff is the delay after the failures so far.
func (w *watcher) backoff() time.Duration {
	t := w.r.o.Times
	d := t.Most
	if n := w.failures - 1; n < 16 {
		d = min(d, t.Least<<n)
	}
	return d/2 + time.Duration(w.r.o.Random()*float64(d/2))
}

// pause waits for d or for the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
