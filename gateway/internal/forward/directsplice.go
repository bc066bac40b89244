//go:build linux

package forward

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// spliceLeast is the length from which on the kernel moves a body by itself, and
// spliceMost how much it moves in one go. pieceLeast fits into the buffer of every
// socket that takes anything.
const (
	spliceLeast = 64 << 10
	spliceMost  = 256 << 10
	pieceLeast  = 4 << 10
)

// slowAfter is how long a client may keep a piece waiting before it is one that is
// slow.
const slowAfter = 100 * time.Millisecond

// splice has the kernel move n bytes of the body from socket to socket, a piece at a
// time: what has come, and what the client's socket has room for, so that nothing
// waits in between. It returns how many are left: those of a client that is slow, for
// whom a write of bytes can tell how many were taken.
func (c *carriage) splice(n int64) (int64, error) {
	client, err := c.cl.tcp.SyscallConn()
	if err != nil {
		return n, errClientGone
	}
	for n > 0 {
		there, err := c.awaitReadable()
		if err != nil {
			return n, err
		}
		began := time.Now()
		if err := c.beginPiece(began); err != nil {
			return n, err
		}
		room := c.awaitRoom(client)
		if room == 0 {
			return n, nil
		}
		moved, err := io.CopyN(c.cl.tcp, c.link.tcp, min(n, int64(there), int64(room), spliceMost))
		n -= moved
		c.rep.bytes += moved
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return n, c.overLimit(errClientIdle)
		case err != nil && c.clientLeft():
			return n, errClientGone
		case err != nil:
			return n, ended(err)
		case time.Since(began) > slowAfter:
			return n, nil
		}
	}
	return 0, nil
}

// awaitRoom waits for room for a piece in the client's socket, and returns how much
// there is: none for a client that is slow or has left, which a write finds out.
func (c *carriage) awaitRoom(client syscall.RawConn) (room int) {
	_ = client.Control(func(fd uintptr) { room = writeRoom(fd) })
	if room > 0 {
		return room
	}
	c.cl.writeDue.at = time.Now().Add(slowAfter)
	if c.cl.conn.SetWriteDeadline(c.cl.writeDue.at) != nil {
		return 0
	}
	_ = client.Write(func(fd uintptr) bool {
		room = writeRoom(fd)
		return room > 0
	})
	if c.beginPiece(time.Now()) != nil {
		return 0
	}
	return room
}

// beginPiece sets the deadlines of a piece. The upstream's bytes are there, so its
// deadline must only be late enough.
func (c *carriage) beginPiece(now time.Time) error {
	if err := c.cl.writeDue.reach(now, c.within(c.idle, now), c.cl.conn.SetWriteDeadline); err != nil {
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
