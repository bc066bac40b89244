package forward

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/filter"
)

// newEngine returns the loop's way to upstreams.
func newEngine(o Options, b *budget) *direct { return newDirect(o, b) }

// serveClient is what ServeHTTP is, for a request that the loop has: it runs the same
// filters, forwards and observes. How it ended is at the client's desk.
func (g *Gateway) serveClient(c *client, r *http.Request, now time.Time) {
	ex, rep := c.desk.exchange, &c.desk.reply
	*ex, *rep = filter.Exchange{Request: r, Connection: &c.known}, reply{}
	ex.Entry.Time, ex.Entry.Method, ex.Entry.Host = now, r.Method, r.Host
	if err := g.carryClient(c, ex, rep); err != nil {
		g.finishClient(c, ex, rep, err)
	}
	g.observe(ex, rep.status, rep.bytes)
	*c.desk.exchange = filter.Exchange{} // or an idle desk would hold on to the request
}

// carryClient filters and forwards, and makes a panic an error.
func (g *Gateway) carryClient(c *client, ex *filter.Exchange, rep *reply) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = g.panicked(ex, p)
		}
	}()
	c.unread, c.began = max(ex.Request.ContentLength, 0), time.Time{}
	if err := g.options.Chain.Request(ex); err != nil {
		return err
	}
	body, err := c.readBody(ex)
	if err != nil {
		return err
	}
	return g.carryWhole(c, ex, body, rep)
}

// carryWhole forwards a request whose body is there.
func (g *Gateway) carryWhole(c *client, ex *filter.Exchange, body []byte, rep *reply) error {
	err := g.direct.carry(c, ex, body, rep)
	if err == nil {
		return nil
	}
	if a, ok := errors.AsType[*aside](err); ok {
		return g.carryAside(c, ex, body, rep, a.tries)
	}
	return err
}

// finishClient ends a request that has no whole answer of an upstream.
func (g *Gateway) finishClient(c *client, ex *filter.Exchange, rep *reply, err error) {
	rep.keep = false
	if c.unread > 0 && int64(c.in.Buffered()) >= c.unread {
		n, _ := c.in.Discard(int(c.unread))
		c.unread -= int64(n)
	}
	w := newLoopWriter(c, ex.Request, rep)
	w.answer.sent.Store(rep.begun)
	switch {
	case g.finish(ex, w.answer, err):
		w.end()
	case w.answer.gone.Load():
		rep.status = statusClientGone
	}
}

// Sizes of memory for a body: what is taken before the client has sent it, and what a
// desk keeps.
const (
	bodyAhead = 4 << 10
	bodyKept  = 16 << 10
)

// readBody reads the request's body, which is short, to its end. Nothing of an
// upstream is held meanwhile but the place among its requests. The body is good until
// the desk is given back.
func (c *client) readBody(ex *filter.Exchange) ([]byte, error) {
	if c.unread == 0 {
		return nil, nil
	}
	body := c.desk.body[:0]
	for c.unread > 0 {
		if len(body) == cap(body) {
			room := min(c.unread, int64(max(bodyAhead, len(body), c.in.Buffered())))
			body = append(make([]byte, 0, int64(len(body))+room), body...)
		}
		if c.in.Buffered() == 0 {
			c.limitBody(&ex.Route.Timeouts)
		}
		n, err := c.in.Read(body[len(body):min(int64(cap(body)), int64(len(body))+c.unread)])
		body = body[:len(body)+n]
		c.unread -= int64(n)
		ex.Entry.BytesIn += int64(n)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			if total := ex.Route.Timeouts.Total; total > 0 && time.Since(c.began) >= total {
				return nil, errTotalTimeout
			}
			return nil, errBodyIdle
		case err != nil:
			return nil, errClientGone
		}
	}
	if cap(body) <= bodyKept {
		c.desk.body = body
	}
	return body, nil
}

// limitBody has the next read of a body end at the limit that comes first.
func (c *client) limitBody(t *config.Timeouts) {
	now, limit := time.Now(), t.Idle
	if c.began.IsZero() {
		c.began = now
	}
	if t.Total > 0 {
		if left := max(t.Total-now.Sub(c.began), 1); limit == 0 || left < limit {
			limit = left
		}
	}
	c.limitRead(limit)
}

// limitRead has the next read of the client end after limit; 0 is never.
func (c *client) limitRead(limit time.Duration) {
	c.readDue.at = time.Time{}
	if limit > 0 {
		c.readDue.at = time.Now().Add(limit)
	}
	_ = c.conn.SetReadDeadline(c.readDue.at)
}

// carryAside forwards over net/http's transport, for a target that speaks HTTP/2. It
// goes on with what was tried before.
func (g *Gateway) carryAside(c *client, ex *filter.Exchange, body []byte, rep *reply, before retries) error {
	// net/http may still read what it was given when it has answered.
	c.desk.exchange, c.desk.body = new(filter.Exchange), nil
	// With this key in its context ReverseProxy does not end a broken answer as if it
	// were whole.
	ctx, cancel := context.WithCancel(context.WithValue(c.loop.server.requests, http.ServerContextKey, c.loop.server.http))
	defer cancel()
	if total := ex.Route.Timeouts.Total; total > 0 && !c.began.IsZero() {
		var end context.CancelFunc
		ctx, end = context.WithDeadlineCause(ctx, c.began.Add(total), errTotalTimeout)
		defer end()
	}
	r := ex.Request.Clone(ctx) // the memory of the desk's is used again
	if body != nil {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	ex.Request = r
	defer c.watchLeaving(cancel)()
	w := newLoopWriter(c, r, rep)
	err := g.carrier.carry(w.answer, ex, before)
	w.end()
	if (w.answer.gone.Load() || w.failed != nil) && !errors.Is(err, errClientIdle) {
		err = errors.Join(errClientGone, err)
	}
	return err
}

// watchLeaving calls left when the client closes its side. The returned function ends
// the watch.
func (c *client) watchLeaving(left func()) (end func()) {
	c.limitRead(0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		polled := make([]unixPoll, 1)
		_ = c.raw.Read(func(fd uintptr) bool {
			pollNow(polled, fd)
			if gone(polled[0].Revents) {
				left()
				return true
			}
			return false
		})
	}()
	return func() {
		_ = c.conn.SetReadDeadline(time.Unix(1, 0))
		<-done
		_ = c.conn.SetReadDeadline(time.Time{})
	}
}
