//go:build linux

package forward

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"specialroutes.example/gateway/internal/balance"
	"specialroutes.example/gateway/internal/filter"
)

// direct carries exchanges in the goroutine that calls it: it writes the request
// to an upstream, reads the answer and writes it to the client, without a further
// goroutine, timer or context. The request's body must be there as a whole. It is
// safe for concurrent use.
type direct struct {
	chain    *filter.Chain
	budget   *budget
	links    *links
	speaks   func(*balance.Target) bool // whether a target is for this engine
	dates    dates
	carriers sync.Pool     // of *carriage
	made     atomic.Uint32 // carriages
}

// newDirect returns an engine that shares its budget of second sends. Close it.
func newDirect(o Options, b *budget) *direct {
	return &direct{chain: o.Chain, budget: b, links: newLinks(o.Upstream, newTrust(o)), speaks: speaksHTTP1}
}

// close closes the idle connections to upstreams. Those in use close when their
// requests end.
func (d *direct) close() { d.links.close() }

// carry forwards the exchange, whose target is chosen, and streams the answer to
// the client. It returns nil when the answer went out whole. Else it returns why
// not: a *filter.Refusal or an error of the table of refusals. Where nothing was
// begun, the caller answers by that; where something was, the caller must break the
// client's connection, so that the part is not taken for the whole. An *aside says
// that the target in ex.Pick, which may be another than before, is not for this
// engine: it is still held, and nothing was begun.
func (d *direct) carry(cl *client, ex *filter.Exchange, body []byte, rep *reply) error {
	d.budget.active.Add(1)
	defer d.budget.active.Add(-1)
	c := d.carriage()
	c.begin(cl, ex, body, rep)
	defer c.end()
	for {
		if c.aside = !c.speaks(&ex.Pick.Target); c.aside {
			return &aside{c.tries}
		}
		err := c.attempt()
		if err == nil {
			return c.answer()
		}
		if err = c.next(err); err != nil {
			return c.failed(err)
		}
		ex.Entry.Retries++
	}
}

// aside says that a target speaks something else than HTTP/1.1. Who carries on goes
// on with what was tried, and releases it.
type aside struct{ tries retries }

func (*aside) Error() string { return "the target is not for this engine" }

// speaksHTTP1 reports whether a target is asked over HTTP/1.1.
func speaksHTTP1(t *balance.Target) bool { return t.Scheme == "http" || t.Scheme == "https" }

// carriage is one exchange under way. It is used again for others.
type carriage struct {
	*direct
	shelf int // of the pools

	cl    *client
	ex    *filter.Exchange
	body  []byte
	rep   *reply
	tries retries
	start time.Time
	now   time.Time // to ask the clock costs: when the upstream was last heard
	fresh bool      // now is now: nothing has been waited for since

	aside    bool  // the exchange goes on elsewhere
	link     *link // of the attempt; nil between attempts
	answered bool  // a byte of an answer has come on it
	spoilt   bool  // it has not taken the whole request
	informed int   // 1xx answers that were passed on

	idle   time.Duration // the longest time without a byte
	head   answerHead
	chunks chunks
	out    []byte // what is to be written next, to the upstream or to the client
	data   int64  // bytes of the answer's body among out

	polled []unixPoll
	hungUp func(fd uintptr)
}

// carriage returns one that is free.
func (d *direct) carriage() *carriage {
	if c, ok := d.carriers.Get().(*carriage); ok {
		return c
	}
	c := &carriage{direct: d, shelf: int(d.made.Add(1)), polled: make([]unixPoll, 1)}
	c.hungUp = func(fd uintptr) { pollNow(c.polled, fd) }
	return c
}

func (c *carriage) begin(cl *client, ex *filter.Exchange, body []byte, rep *reply) {
	*rep = reply{}
	c.cl, c.ex, c.body, c.rep = cl, ex, body, rep
	c.tries = retries{ex: ex, budget: c.budget}
	c.start = time.Now()
	c.now, c.fresh = c.start, true
	if !cl.began.IsZero() {
		c.start = cl.began
	}
	c.out, c.data, c.informed = c.out[:0], 0, 0
	c.idle = ex.Route.Timeouts.Idle
	ex.Entry.BytesIn = int64(len(body))
}

// end releases what the exchange holds.
func (c *carriage) end() {
	if !c.aside {
		c.tries.end()
	}
	c.drop()
	c.ex.Answer = nil // its memory is used again
	c.cl, c.ex, c.body, c.rep, c.tries = nil, nil, nil, nil, retries{}
	if cap(c.out) > outMost {
		c.out = nil
	}
	c.carriers.Put(c)
}

// outMost is how much room for what is written is kept between exchanges.
const outMost = 64 << 10

// drop closes the connection of an attempt that did not end well.
func (c *carriage) drop() {
	if c.link != nil {
		c.link.rest(&c.links.buffers)
		c.link.close()
		c.link = nil
	}
}

// errStillborn says that a connection was closed before a byte was written.
var errStillborn = errors.New("the connection was closed before anything was written")

// attempt sends the request to the target in ex.Pick and reads the head of the
// answer.
func (c *carriage) attempt() error {
	if c.ex.Entry.Retries > 0 {
		c.now = time.Now()
	}
	began := c.now
	err := c.exchangeHeads()
	if err != nil {
		c.now = time.Now()
	}
	c.ex.Entry.Upstream += c.now.Sub(began)
	if err != nil {
		c.drop()
		return err
	}
	c.ex.Pick.Answered()
	return nil
}

func (c *carriage) exchangeHeads() error {
	c.answered, c.spoilt = false, false
	if err := c.connect(); err != nil {
		return err
	}
	n, err := c.send()
	switch {
	case err == nil:
		return c.readHead(c.ex.Route.Timeouts.Response)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return c.overLimit(errUpstreamIdle)
	case n == 0:
		return fmt.Errorf("%w: %w", errStillborn, err)
	}
	// An upstream that refuses a body answers, closes, and resets what still comes:
	// its answer may be there.
	c.spoilt = true
	if heard := c.readHead(lastWords); !errors.Is(heard, errResponseTimeout) {
		return heard
	}
	return err
}

// connect takes a connection to the target, or makes one.
func (c *carriage) connect() error {
	pool := c.links.of(&c.ex.Pick.Target)
	if c.link = pool.get(c.shelf, c.now); c.link == nil {
		l, err := pool.dial(c.within(c.ex.Route.Timeouts.Connect, c.now))
		if err != nil {
			return err
		}
		c.link, c.now = l, time.Now()
	}
	c.ex.Pick.Connected()
	return nil
}

// next prepares another attempt after one that failed, or returns why there is
// none.
func (c *carriage) next(err error) error {
	switch {
	case errors.Is(err, errScarce):
		return err
	case errors.Is(err, errConnect):
		if c.overTotal(time.Now()) {
			return errTotalTimeout
		}
		return c.tries.nextTarget(err)
	case errors.Is(err, errStillborn):
		return c.tries.stillborn(err)
	case errors.Is(err, errClientGone), isLimit(err):
		c.tries.overLimit(err)
		return err
	case !c.answered && c.tries.resend(len(c.body) > 0):
		return nil
	}
	return fmt.Errorf("%w: %w", errBadAnswer, err)
}

// failed says how an exchange without a whole answer ended.
func (c *carriage) failed(err error) error {
	switch {
	case errors.Is(err, errClientGone):
		c.rep.status = statusClientGone
	case c.rep.begun:
		c.ex.Entry.Code = cutCode(err)
		if c.rep.status == 0 { // a 1xx was cut
			c.rep.status = statusClientGone
		}
	}
	return err
}

// overTotal reports whether the request has taken longer than it may.
func (c *carriage) overTotal(now time.Time) bool {
	total := c.ex.Route.Timeouts.Total
	return total > 0 && now.Sub(c.start) >= total
}

// overLimit is the error of a limit that has passed: the whole request's, if that
// has passed too.
func (c *carriage) overLimit(limit error) error {
	if c.overTotal(time.Now()) {
		return errTotalTimeout
	}
	return limit
}

// within shortens a limit to what is left of the whole request's.
func (c *carriage) within(limit time.Duration, now time.Time) time.Duration {
	if total := c.ex.Route.Timeouts.Total; total > 0 {
		if left := max(total-now.Sub(c.start), 1); limit == 0 || left < limit {
			return left
		}
	}
	return limit
}

// presence is how often is looked whether the client is still there while an
// upstream is waited for.
const presence = 250 * time.Millisecond

// await waits for bytes of the upstream, until limit after since; 0 is for ever. It
// looks now and then whether the client is still there.
func (c *carriage) await(since time.Time, limit time.Duration, over error) error {
	l := c.link
	l.room(&c.links.buffers)
	limit = c.within(limit, since)
	for now := since; ; now = time.Now() {
		wait := presence
		if limit > 0 {
			wait = max(min(wait, limit-now.Sub(since)), 1)
		}
		if err := c.lookUntil(now, wait); err != nil {
			return err
		}
		_, err := l.read()
		if err == nil {
			c.answered, c.now, c.fresh = true, time.Now(), true
			return nil
		}
		if err := c.tooLate(err, since, limit, over); err != nil {
			return err
		}
	}
}

// tooLate judges a read that failed: nil says that it may be tried again.
func (c *carriage) tooLate(err error, since time.Time, limit time.Duration, over error) error {
	switch {
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case c.clientLeft():
		return errClientGone
	case limit > 0 && time.Since(since) >= limit:
		return c.overLimit(over)
	}
	return nil
}

// lookUntil sets the read deadline. One that comes sooner is good enough as long as
// it is no limit: it is set anew when it has passed.
func (c *carriage) lookUntil(now time.Time, wait time.Duration) error {
	d := &c.link.readDue
	if left := d.at.Sub(now); left <= wait && left >= wait/2 {
		return nil
	}
	d.at = now.Add(wait)
	return c.link.conn.SetReadDeadline(d.at)
}

// clientLeft reports whether the client has closed its side, be there bytes before
// the end or not.
func (c *carriage) clientLeft() bool {
	raw, err := c.cl.tcp.SyscallConn()
	if err != nil || raw.Control(c.hungUp) != nil {
		return true // our own side is closed
	}
	return gone(c.polled[0].Revents)
}

// ended makes an end of the upstream an error: more had to come.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
