package forward

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"time"

	"specialroutes.example/gateway/internal/filter"
)

// step is what follows a request.
type step uint8

const (
	stepNext   step = iota // a further request may come
	stepEnd                // the connection ends
	stepHanded             // it is net/http's now
)

// runLoop serves a connection until it ends or is handed over.
func runLoop(l *loop, t *tracked) {
	c := newClient(l, t)
	if c == nil {
		l.handOver(t, l.server.newGate(t.conn, nil))
		return
	}
	c.run()
}

// newClient returns the client of a connection over TCP, nil for any other.
func newClient(l *loop, t *tracked) *client {
	c := &client{conn: t.conn, tracked: t, loop: l, remote: t.conn.RemoteAddr().String()}
	switch conn := t.conn.(type) {
	case *net.TCPConn:
		c.tcp, c.plain = conn, true
	case *tls.Conn:
		tcp, ok := conn.NetConn().(*net.TCPConn)
		if !ok {
			return nil
		}
		state := conn.ConnectionState()
		c.tcp, c.tls = tcp, &state
	default:
		return nil
	}
	raw, err := c.tcp.SyscallConn()
	if err != nil {
		return nil
	}
	c.raw = raw
	c.source.c, c.source.fd = c, -1
	c.ready = c.source.take
	return c
}

// run takes request after request. A panic that nobody expected ends the connection,
// not the process.
func (c *client) run() {
	defer func() {
		if p := recover(); p != nil {
			c.loop.server.log.Error("a connection panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			c.loop.drop(c.tracked)
		}
	}()
	limit := c.loop.server.timeouts.Header
	for c.await(limit) {
		for more := true; more; more = c.in.Buffered() > 0 {
			c.state.Store(connReading)
			switch c.next() {
			case stepEnd:
				c.rise()
				c.loop.drop(c.tracked)
				return
			case stepHanded:
				c.rise()
				return
			}
		}
		c.rise()
		c.state.Store(connIdle)
		limit = c.loop.server.timeouts.KeepAlive
	}
	c.loop.drop(c.tracked)
}

// next takes one request.
func (c *client) next() step {
	head, refusal, err := c.readHead()
	switch {
	case err != nil:
		return stepEnd
	case refusal != nil:
		return c.refuse(refusal, head)
	case !c.later && isPreface(head):
		return c.handOver()
	}
	c.later = true
	h := scanRequest(head, c.loop.server.limits)
	switch h.verdict {
	case verdictRefuse:
		return c.refuse(h.refusal, head)
	case verdictHandOver:
		return c.handOver()
	}
	c.state.Store(connServing)
	return c.serve(head, &h)
}

// readHead reads until a head is whole, or cannot become one that is accepted. What
// has come of it stays in the buffer.
func (c *client) readHead() (head []byte, refusal *filter.Refusal, err error) {
	limits := &c.loop.server.limits
	for looked, timed := 0, false; ; timed = true {
		c.skipBlank()
		head, _ = c.in.Peek(c.in.Buffered())
		if size := headEnd(head, looked); size > 0 {
			return head[:size], nil, nil
		}
		looked = len(head)
		switch {
		case !c.later && isPreface(head):
			return head, nil, nil
		case len(head) > int(limits.HeaderBytes):
			return head, headTooLong(*limits), nil
		case len(head) > 0 && !isTokenByte(head[0]):
			return head, badHead("the request line is not a method, a target and a version"), nil
		}
		if !timed {
			c.readDue.at = time.Now().Add(c.loop.server.timeouts.Header)
			if err := c.conn.SetReadDeadline(c.readDue.at); err != nil {
				return nil, nil, err
			}
		}
		if c.in.Buffered() == c.in.Size() {
			c.enlarge(int(limits.HeaderBytes) + clientBuffer)
		}
		if _, err := c.in.Peek(c.in.Buffered() + 1); err != nil {
			if errors.Is(err, io.EOF) && len(head) > 0 {
				return head, badHead("the head of the request breaks off"), nil
			}
			return nil, nil, err
		}
	}
}

// skipBlank passes over blank lines before a head (RFC 9112, 2.2).
func (c *client) skipBlank() {
	for range blankMost {
		if b, _ := c.in.Peek(min(1, c.in.Buffered())); len(b) == 0 || b[0] != '\r' && b[0] != '\n' {
			return
		}
		_, _ = c.in.Discard(1)
	}
}

// handOver gives the connection with all that was read to net/http's server.
func (c *client) handOver() step {
	read, _ := c.in.Peek(c.in.Buffered())
	_ = c.conn.SetDeadline(time.Time{})
	c.loop.handOver(c.tracked, c.loop.server.newGate(c.conn, bytes.Clone(read)))
	return stepHanded
}

// refuse answers to a head that is none, and ends the connection.
func (c *client) refuse(r *filter.Refusal, head []byte) step {
	answer := c.loop.server.refuseHead(r, head, c.conn.RemoteAddr())
	_ = c.conn.SetWriteDeadline(time.Now().Add(endOfAnswer))
	if _, err := c.conn.Write(answer); err == nil {
		linger(c.conn)
	}
	return stepEnd
}

// serve serves one request, whose head is the next in the buffer.
func (c *client) serve(head []byte, h *requestHead) step {
	s := c.loop.server
	now := s.Loop.options.Now()
	r, err := c.desk.request.read(head, h, c.tls, c.remote)
	if err != nil {
		return c.refuse(badHead("the head of the request is not as HTTP asks for"), head)
	}
	_, _ = c.in.Discard(len(head)) // it is buffered
	c.lastRequest = h.close
	if s.InFlight != nil {
		s.InFlight(1)
		defer s.InFlight(-1)
	}
	s.Loop.serveClient(c, r, now)
	c.desk.request.reset()
	switch {
	case c.desk.reply.keep && !c.lastRequest:
		return stepNext
	case c.desk.reply.complete && (c.unread > 0 || c.in.Buffered() > 0 || !h.close && c.more()):
		linger(c.conn)
	}
	return stepEnd
}
