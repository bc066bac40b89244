//go:build linux

package forward

import (
	"errors"
	"io"
	"os"
	"time"
)

// spliceLeast is the length from which on the kernel moves a body by itself, and
// spliceMost how much it moves in one go.
const (
	spliceLeast = 64 << 10
	spliceMost  = 256 << 10
)

// splice has the kernel move n bytes of the body from socket to socket, a piece at a
// time: what has come, so that it waits for nobody but the client. It returns how
// many are left: those of a client that is slow, for whom the pieces are too coarse
// to tell whether it still takes any bytes.
func (c *carriage) splice(n int64) (int64, error) {
	for n > 0 {
		there, err := c.awaitReadable()
		if err != nil {
			return n, err
		}
		began := time.Now()
		limit := c.within(c.idle, began)
		if err := c.beginPiece(began, limit); err != nil {
			return n, err
		}
		moved, err := io.CopyN(c.cl.tcp, c.link.tcp, min(n, int64(there), spliceMost))
		n -= moved
		c.rep.bytes += moved
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return n, c.overLimit(errClientIdle)
		case err != nil && c.clientLeft():
			return n, errClientGone
		case err != nil:
			return n, ended(err)
		case limit > 0 && time.Since(began) > limit/8:
			return n, nil
		}
	}
	return 0, nil
}

// beginPiece sets the deadlines of a piece. The upstream's bytes are there, so its
// deadline must only be late enough.
func (c *carriage) beginPiece(now time.Time, limit time.Duration) error {
	if err := c.cl.writeDue.reach(now, limit, c.cl.conn.SetWriteDeadline); err != nil {
		return errClientGone
	}
	c.link.readDue.at = time.Time{}
	return c.link.conn.SetReadDeadline(time.Time{})
}

// awaitReadable waits until bytes of the upstream can be read, and returns how many.
func (c *carriage) awaitReadable() (int, error) {
	since := time.Now()
	limit := c.within(c.idle, since)
	there, end := 0, false
	for now := since; ; now = time.Now() {
		wait := presence
		if limit > 0 {
			wait = max(min(wait, limit-now.Sub(since)), 1)
		}
		if err := c.lookUntil(now, wait); err != nil {
			return 0, err
		}
		err := c.link.raw.Read(func(fd uintptr) bool {
			there, end = readable(fd, c.polled)
			return there > 0 || end
		})
		switch {
		case err == nil && there > 0:
			return there, nil
		case err == nil:
			return 0, io.ErrUnexpectedEOF
		}
		if err := c.tooLate(err, since, limit, errUpstreamIdle); err != nil {
			return 0, err
		}
	}
}
