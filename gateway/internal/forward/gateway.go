// Package forward moves one request to its target and the answer back. The
// filters of package filter decide; here bytes are carried, time limits kept,
// failed attempts repeated where that is safe, and errors made answers.
package forward

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"specialroutes.example/gateway/internal/accesslog"
	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/filter"
)

// Observer is told of every request once, when its answer has ended.
type Observer interface {
	// Observe reads e during the call and keeps nothing of it. It must not block.
	Observe(e *accesslog.Entry)
}

// Observers tells several observers, in their order.
type Observers []Observer

// Observe passes e on.
func (all Observers) Observe(e *accesslog.Entry) {
	for _, o := range all {
		o.Observe(e)
	}
}

// Options are what a Gateway needs.
type Options struct {
	Chain    *filter.Chain
	Limits   config.Limits
	Upstream config.Upstream
	Observer Observer         // nil: nobody
	Log      *slog.Logger     // nil discards
	Now      func() time.Time // nil is time.Now; it times what is logged, not the limits

	// RootCAs gives what upstreams' certificates are checked against, for each new
	// connection; nil, and a nil pool, is the system's.
	RootCAs func() *x509.CertPool
}

// carrier moves an exchange whose target is chosen. It answers in every case. One
// that could not begin an answer returns a *filter.Refusal, or errClientGone. It goes on
// with what was tried before, and releases what that holds.
type carrier interface {
	carry(a *answer, ex *filter.Exchange, before retries) error
	close()
}

// Gateway is the data path: an http.Handler that runs the filters, forwards and
// observes. It is safe for concurrent use.
type Gateway struct {
	options Options
	carrier carrier
	direct  *direct // the loop's

	shortage atomic.Int64 // when the log last told of one, Unix ns; 0: never
}

// New returns a Gateway. Close it when it serves no longer.
func New(o Options) *Gateway {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Observer == nil {
		o.Observer = Observers(nil)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	b := new(budget)
	return &Gateway{options: o, carrier: newProxy(o, b), direct: newEngine(o, b)}
}

// Close closes the idle connections to upstreams. Those in use close when their
// requests end.
func (g *Gateway) Close() {
	g.carrier.close()
	g.direct.close()
}

// Observer returns who is told of the requests.
func (g *Gateway) Observer() Observer { return g.options.Observer }

// ServeHTTP takes one request from the filters to its last byte. It panics with
// http.ErrAbortHandler when the answer cannot be completed, so that net/http
// breaks the connection and the client cannot take a part for the whole.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := g.options.Now()
	ex := &filter.Exchange{Request: r}
	ex.Entry.Time, ex.Entry.Method, ex.Entry.Host = start, r.Method, r.Host
	a := newAnswer(w, r)
	defer func() { // also while a panic passes
		status, bytes := a.outcome()
		g.observe(ex, status, bytes)
	}()
	if err := g.protect(ex, a); err != nil && !g.finish(ex, a, err) {
		panic(http.ErrAbortHandler)
	}
}

// protect serves, and makes an unforeseen panic an error. One that is meant to
// break the connection passes.
func (g *Gateway) protect(ex *filter.Exchange, a *answer) (err error) {
	defer func() {
		switch p := recover(); {
		case p == nil:
		case p == any(http.ErrAbortHandler):
			panic(p)
		default:
			err = g.panicked(ex, p)
		}
	}()
	if err := g.options.Chain.Request(ex); err != nil {
		return err
	}
	return g.carrier.carry(a, ex, retries{})
}

// panicked logs an unforeseen panic and returns the error that it is for the client.
// Call it in the deferred function that recovered.
func (g *Gateway) panicked(ex *filter.Exchange, p any) error {
	g.options.Log.Error("a request panicked", "correlationId", ex.Entry.CorrelationID,
		"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return errInternal
}

// finish ends a request that has no whole answer of an upstream: with a refusal, where
// nothing of an answer has left and there is still somebody to read it. It reports
// whether that is so; else the connection must break.
func (g *Gateway) finish(ex *filter.Exchange, a *answer, err error) (refused bool) {
	if ex.Pick != nil {
		ex.Pick.Release()
	}
	switch {
	case errors.Is(err, errClientGone):
		a.gone.Store(true)
	case errors.Is(err, errClientIdle):
		a.gone.Store(true)
		ex.Entry.Code = cutCode(err)
	}
	if a.gone.Load() || a.begun() {
		return false
	}
	if errors.Is(err, errScarce) {
		g.tellShortage(err)
	}
	refusal := refusalFor(err)
	ex.Entry.Code = refusal.Code
	ex.Answer = a.Header()
	g.options.Chain.Answer(ex)
	a.refuse(refusal, ex.Entry.CorrelationID)
	return true
}

// shortageInterval is how often the log tells that there are no descriptors.
const shortageInterval = 10 * time.Second

// tellShortage has the log say, once in a while, that upstreams cannot be connected to
// for want of descriptors.
func (g *Gateway) tellShortage(err error) {
	now, last := g.options.Now().UnixNano(), g.shortage.Load()
	if last != 0 && now-last < int64(shortageInterval) || !g.shortage.CompareAndSwap(last, now) {
		return
	}
	g.options.Log.Error("out of descriptors: requests are refused; raise the limit (ulimit -n) or lower maxConnections", "error", err)
}

// observe completes the entry and hands it on.
func (g *Gateway) observe(ex *filter.Exchange, status int, bytes int64) {
	e := &ex.Entry
	e.Status, e.BytesOut = status, bytes
	e.Duration = g.options.Now().Sub(e.Time)
	g.options.Observer.Observe(e)
}
