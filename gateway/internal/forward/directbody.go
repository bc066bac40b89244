//go:build linux

package forward

import (
	"errors"
	"io"
	"os"
	"time"
)

// stream writes the answer whose head is in out, and its body as it comes. idle is
// the longest time without a byte.
func (c *carriage) stream(kind bodyKind, idle time.Duration) error {
	c.idle = idle
	switch kind {
	case bodyOfLength:
		return c.streamLength(c.head.length)
	case bodyOfChunks:
		return c.streamChunks()
	case bodyToEnd:
		return c.streamToEnd()
	}
	return c.flush()
}

// streamLength passes n bytes on. The head waits for the first of them: an upstream
// that dies before can still be answered for.
func (c *carriage) streamLength(n int64) error {
	spliced := false
	for n > 0 {
		p := c.link.buffered()
		if len(p) == 0 {
			if err := c.awaitBody(); err != nil {
				return ended(err)
			}
			continue
		}
		p = p[:min(n, int64(len(p)))]
		if err := c.pass(p); err != nil {
			return err
		}
		n -= int64(len(p))
		if n >= spliceLeast && !spliced && c.cl.plain && c.link.plain && len(c.link.buffered()) == 0 {
			spliced = true
			var err error
			if n, err = c.splice(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// streamChunks passes a chunked body on, in chunks of our own.
func (c *carriage) streamChunks() error {
	c.chunks.reset()
	for {
		p := c.link.buffered()
		if len(p) == 0 {
			if err := c.flush(); err != nil {
				return err
			}
			if err := c.awaitBody(); err != nil {
				return ended(err)
			}
			continue
		}
		data, used, err := c.chunks.next(p)
		if err != nil {
			return c.broken(err)
		}
		if err := c.chunk(data); err != nil {
			return err
		}
		c.link.r += used
		if c.chunks.done() {
			return c.lastChunk()
		}
	}
}

// broken ends an answer that is not chunked as HTTP asks for. What was good of it
// goes out; while there is nothing, the client can still be told.
func (c *carriage) broken(err error) error {
	if c.data == 0 && !c.rep.begun {
		return err
	}
	return errors.Join(c.flush(), err)
}

// streamToEnd passes on what comes until the upstream closes, in chunks.
func (c *carriage) streamToEnd() error {
	for {
		p := c.link.buffered()
		if err := c.chunk(p); err != nil {
			return err
		}
		c.link.r += len(p)
		if err := c.flush(); err != nil {
			return err
		}
		switch err := c.awaitBody(); {
		case errors.Is(err, io.EOF):
			c.chunks.reset()
			return c.lastChunk()
		case err != nil:
			return err
		}
	}
}

// chunk adds a chunk to out, and writes out when it is long.
func (c *carriage) chunk(data []byte) error {
	c.out = appendChunk(c.out, data)
	c.data += int64(len(data))
	if len(c.out) >= bodyBuffer {
		return c.flush()
	}
	return nil
}

// lastChunk ends a chunked body, with those of the upstream's trailers that may be
// passed on.
func (c *carriage) lastChunk() error {
	c.out = append(c.out, "0\r\n"...)
	if len(c.chunks.trailer) > len("\r\n") {
		trailer := answerHead{fields: map[string][]string{}}
		if err := trailer.fieldLines(string(c.chunks.trailer)); err != nil {
			c.out = c.out[:len(c.out)-len("0\r\n")]
			return c.broken(err)
		}
		for name := range trailer.fields {
			if !c.ex.AnswerTrailer(name) {
				delete(trailer.fields, name)
			}
		}
		c.out = appendFields(c.out, trailer.fields)
	}
	c.out = append(c.out, "\r\n"...)
	return c.flush()
}

// awaitBody waits for more of the answer.
func (c *carriage) awaitBody() error { return c.await(time.Now(), c.idle, errUpstreamIdle) }

// pass writes bytes of the body from the link's buffer, behind the head if that has
// not left yet.
func (c *carriage) pass(p []byte) error {
	if len(c.out) == 0 {
		c.link.r += len(p)
		return c.writeBody(p, int64(len(p)))
	}
	c.out = append(c.out, p...)
	c.data += int64(len(p))
	c.link.r += len(p)
	return c.flush()
}

// flush writes what is in out.
func (c *carriage) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	p, data := c.out, c.data
	c.out, c.data = c.out[:0], 0
	return c.writeBody(p, data)
}

// writeBody writes bytes of the answer, of which so many are the body's.
func (c *carriage) writeBody(p []byte, data int64) error {
	c.rep.begun = true
	err := c.write(p)
	if err == nil {
		c.rep.bytes += data
	}
	return err
}

// write writes to the client. One that takes no byte for longer than it may has not
// left: that is a limit's error.
func (c *carriage) write(p []byte) error {
	cl, now := c.cl, c.now
	if !c.fresh {
		now = time.Now()
	}
	held := c.backlog()
	for c.fresh = false; ; now = time.Now() {
		if err := cl.writeDue.reach(now, c.within(c.idle, now), cl.conn.SetWriteDeadline); err != nil {
			return errClientGone
		}
		n, err := cl.conn.Write(p)
		p = p[n:]
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return errClientGone
		case !cl.plain: // TLS cannot go on after half a record
			return c.overLimit(errClientIdle)
		}
		left := c.backlog()
		if n == 0 && (left < 0 || left >= held) || c.overTotal(time.Now()) {
			return c.overLimit(errClientIdle)
		}
		held = left
	}
}

// backlog returns how many bytes lie in the client's socket, -1 where that is not
// known. A full socket takes nothing until a good part of it is free, which a client
// that reads slowly may need longer for than the limit. What is short fits.
func (c *carriage) backlog() int {
	n := -1
	if c.rep.bytes < spliceLeast || !c.cl.plain {
		return n
	}
	if raw, err := c.cl.tcp.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { n = unsent(fd) })
	}
	return n
}
