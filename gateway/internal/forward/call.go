package forward

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"specialroutes.example/gateway/internal/filter"
)

// call is one exchange on its way through a proxy. It is the ReverseProxy's
// transport, so that every attempt of a request is under its eyes.
type call struct {
	proxy  *proxy
	ex     *filter.Exchange
	answer *answer
	watch  *watch
	ctx    context.Context
	cancel context.CancelCauseFunc

	body     *body       // nil: there is none
	feed     *feed       // the body once it goes over HTTP/2; nil before
	trailer  http.Header // of the request that goes upstream
	upstream error       // what broke the upstream's answer off
	failure  error       // why there is no answer
	tries    retries

	informational sync.Mutex // held while a 1xx is written
	headCame      bool
	informed      int
}

// takeBody prepares the request's body and trailers for the attempts. in is our
// own copy of the request.
func (c *call) takeBody(in *http.Request) {
	in.URL = &url.URL{} // each attempt has its own; ReverseProxy must not clean this one's query
	if in.ContentLength == 0 {
		in.Body = http.NoBody
		return
	}
	c.body = &body{source: in.Body, most: c.proxy.bodyMost, atEnd: c.takeTrailers, shared: in.ProtoMajor > 1}
	if c.answer.bodyRead == nil {
		c.answer.bodyRead = c.body.complete
	}
	in.Body = io.NopCloser(c.body)
}

// begin starts the watch, which may end the call at once: all that it looks at is
// there.
func (c *call) begin() {
	c.watch = newWatch(limitsOf(c.ex), c.expire)
	c.answer.watch = c.watch
	if c.body != nil {
		c.body.watch = c.watch
	}
}

// bodyFirst reads a short body of HTTP/2 before anything goes upstream: whether it
// has the length that it declares shows at its end only (RFC 9113, 8.1.1).
func (c *call) bodyFirst() error {
	r := c.ex.Request
	if r.ProtoMajor == 1 || r.ContentLength <= 0 || r.ContentLength > replayMost {
		return nil
	}
	c.feed = newFeed(c.body)
	return c.feed.readWhole(r.ContentLength)
}

// rewrite finishes the request that ReverseProxy has cloned. It has taken the
// fields away that it takes for the client's; they are ours.
func (c *call) rewrite(pr *httputil.ProxyRequest) {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if lines, ok := pr.In.Header[name]; ok {
			pr.Out.Header[name] = lines
		}
	}
	// The transport would take it for a permission to send twice. Under another
	// spelling, which is the same on the wire, it does not see it.
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if lines, ok := pr.Out.Header[name]; ok {
			delete(pr.Out.Header, name)
			pr.Out.Header[strings.ToLower(name)] = lines
		}
	}
	c.announceTrailers(pr.Out)
}

// announceTrailers gives the outgoing request the trailer fields that were
// announced to us and may be passed on. Their values come behind the body.
func (c *call) announceTrailers(out *http.Request) {
	out.Trailer = nil
	for name := range c.ex.Request.Trailer {
		if !c.ex.RequestTrailer(name) {
			continue
		}
		if out.Trailer == nil {
			out.Trailer = make(http.Header)
		}
		out.Trailer[name] = nil
	}
	c.trailer = out.Trailer
}

// takeTrailers copies the values that have come. The transport reads them after
// the body's end, which it has not been told yet.
func (c *call) takeTrailers() {
	for name := range c.trailer {
		c.trailer[name] = c.ex.Request.Trailer[name]
	}
}

// serve runs the ReverseProxy; false says that it did not complete an answer.
func (c *call) serve(reverse *httputil.ReverseProxy, in *http.Request) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			if p != any(http.ErrAbortHandler) {
				panic(p)
			}
			ok = false
		}
	}()
	reverse.ServeHTTP(c.answer, in)
	return c.failure == nil
}

// fail is ReverseProxy's error handler. The answer is given later, when nothing
// of the attempt is left.
func (c *call) fail(_ http.ResponseWriter, _ *http.Request, err error) {
	if c.failure == nil {
		c.failure = err
	}
}

// outcome says how a request without a complete answer ended. What we did
// ourselves comes first, then what the client did, then the upstream.
func (c *call) outcome() error {
	err := c.cause()
	if !c.answer.begun() {
		c.answer.forget()
		return err
	}
	if !errors.Is(err, errClientGone) {
		c.ex.Entry.Code = cutCode(err)
	}
	return err
}

func (c *call) cause() error {
	if cause := context.Cause(c.ctx); cause != nil {
		if c.ex.Request.Context().Err() != nil && !ours(cause) {
			return errClientGone
		}
		return cause
	}
	switch {
	case c.answer.gone.Load():
		return errClientGone
	case c.body.failure() != nil:
		return c.body.failure()
	case c.failure != nil:
		return c.failure
	}
	return errors.Join(errBadAnswer, c.upstream)
}

// ours reports whether a context's end is the watch's work.
func ours(cause error) bool {
	return errors.Is(cause, errBodyIdle) || isLimit(cause)
}

// expire ends a request that is over a limit: the upstream's side by the context,
// the client's by deadlines in the past, for nothing else wakes who reads or
// writes there.
func (c *call) expire(cause error) {
	if c.answer.writing.Load() > 0 && !errors.Is(cause, errTotalTimeout) {
		cause = errClientIdle // what the upstream has given waits for the client
	} else if errors.Is(cause, errUpstreamIdle) && c.body != nil && c.body.reading.Load() && !c.answer.begun() {
		cause = errBodyIdle
	}
	c.cancel(cause)
	past := time.Unix(1, 0)
	if c.body != nil && !c.body.complete() {
		_ = c.answer.control.SetReadDeadline(past)
	}
	if c.answer.begun() || c.answer.writing.Load() > 0 {
		_ = c.answer.control.SetWriteDeadline(past)
	}
}

// end stops what runs for the call and writes down what it has counted.
func (c *call) end() {
	c.watch.stop()
	c.tries.end()
	if c.feed != nil && c.ex.Request.ProtoMajor > 1 && !c.body.complete() {
		// Nobody else reads there; over HTTP/1 the server ends the read.
		_ = c.answer.control.SetReadDeadline(time.Unix(1, 0))
		c.feed.wait()
	}
	if c.body != nil {
		c.ex.Entry.BytesIn = c.body.read.Load()
	}
}
