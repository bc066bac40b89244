package forward

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// upstreamConn is a connection to an upstream that looks at what passes. The
// transport hides three things that matter here: whether a request has reached
// the wire, what the raw head of the answer said, and bytes that came behind an
// answer that has no body.
type upstreamConn struct {
	net.Conn
	buffers *bufferPool
	written atomic.Int64
	read    atomic.Int64

	expected atomic.Pointer[expectation] // of the request that is under way
	insert   string                      // goes behind "METHOD " of the next request
	passing  []byte                      // what was read and judged, and the transport may have
	end      answerEnd                   // of the body that follows; known once the head has passed
}

// expectation is what is to be read next: the head of one request's answer.
type expectation struct {
	bodiless bool        // the request is HEAD
	reused   bool        // the connection has had a request before
	begun    atomic.Bool // the request is being written, or has been
	base     int64       // bytes written before the request
	raw      []byte      // of a head that is not whole yet
	looked   int         // bytes of raw that hold no end of a head
	facts    atomic.Pointer[headFacts]
	done     chan struct{} // closed when the head has come, or never will
	over     chan struct{} // closed when the transport has the answer, or gives up
	closed   atomic.Bool
}

func (e *expectation) finish() {
	if e.closed.CompareAndSwap(false, true) {
		close(e.done)
	}
}

// expect prepares the connection for a request. The transport has not written any
// of it yet, and reads nothing but its answer next.
func (c *upstreamConn) expect(head, reused bool, insert string) *expectation {
	e := &expectation{
		bodiless: head, reused: reused, base: c.written.Load(), done: make(chan struct{}), over: make(chan struct{}),
	}
	c.insert = insert
	c.expected.Store(e)
	return e
}

// lastWords is how long a failed write waits for what the upstream has to say. An
// upstream that refuses a long body answers, closes, and resets what still comes;
// without the wait the reset would win and the answer be lost.
const lastWords = time.Second

// errStray is a connection on which bytes have come that answer no request.
var errStray = errors.New("the upstream sent bytes that nobody asked for")

// Write writes p, with what has to be inserted into the request-target. It fails where
// bytes have come before the request: they would be taken for its answer.
func (c *upstreamConn) Write(p []byte) (int, error) {
	if e := c.expected.Load(); e != nil && !e.begun.Load() {
		if e.reused && !connSilent(c.Conn) {
			_ = c.Conn.Close()
			return 0, errStray
		}
		e.begun.Store(true)
	}
	n, err := c.write(p)
	c.written.Add(int64(n))
	if err == nil {
		return n, nil
	}
	if e := c.expected.Load(); e != nil && c.written.Load() > e.base {
		e.hear()
	}
	return n, err
}

// hear waits for an answer that is on its way. A transport that learns of the
// failed write first does not look for it.
func (e *expectation) hear() {
	timer := time.NewTimer(lastWords)
	defer timer.Stop()
	select {
	case <-e.done:
	case <-timer.C:
		return
	}
	if e.facts.Load() == nil {
		return
	}
	select {
	case <-e.over:
	case <-timer.C:
	}
}

func (c *upstreamConn) write(p []byte) (int, error) {
	if c.insert == "" {
		return c.Conn.Write(p)
	}
	at := strings.IndexByte(string(p), ' ') + 1
	whole := make([]byte, 0, len(p)+len(c.insert))
	whole = append(append(append(whole, p[:at]...), c.insert...), p[at:]...)
	n, err := c.Conn.Write(whole)
	if err != nil {
		return min(n, len(p)), err
	}
	c.insert = ""
	return len(p), nil
}

// ReadFrom copies a body. The transport would else make a buffer for each.
func (c *upstreamConn) ReadFrom(r io.Reader) (int64, error) {
	buffer := c.buffers.Get()
	defer c.buffers.Put(buffer)
	return io.CopyBuffer(struct{ io.Writer }{c}, r, buffer)
}

// Read reads, and looks at the heads of answers on the way. The transport gets them
// when they are whole and were judged.
func (c *upstreamConn) Read(p []byte) (int, error) {
	for len(c.passing) == 0 {
		n, err := c.Conn.Read(p)
		c.read.Add(int64(n))
		e := c.expected.Load()
		if e == nil {
			return n, err
		}
		if e.closed.Load() {
			return c.readBody(p[:n], err)
		}
		if n > 0 && !e.begun.Load() {
			e.finish()
			_ = c.Conn.Close()
			return 0, errStray
		}
		e.raw = append(e.raw, p[:n]...)
		if bad := c.look(e); bad != nil {
			e.finish()
			_ = c.Conn.Close()
			return 0, bad
		}
		if err != nil {
			e.finish()
			if len(c.passing) == 0 {
				return 0, endOf(e.raw, err)
			}
		}
	}
	n := copy(p, c.passing)
	if c.passing = c.passing[n:]; len(c.passing) == 0 {
		c.passing = nil
	}
	return n, nil
}

// readBody lets pass what belongs to the body that is under way. What comes behind it
// is withheld, and the connection not used again.
func (c *upstreamConn) readBody(p []byte, err error) (int, error) {
	n := c.end.follow(p)
	if n < len(p) {
		_ = c.Conn.Close()
		if n == 0 {
			return 0, errStray
		}
	}
	return n, err
}

// endOf is the error of a connection that ended with so much of a head.
func endOf(raw []byte, err error) error {
	if len(raw) > 0 && errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// look judges the heads that have come, with the loop's reader: it fails where that
// refuses one. What comes behind the head of an answer without a body belongs to
// nothing: it is withheld, and the connection not used again.
func (c *upstreamConn) look(e *expectation) error {
	for {
		size := headEnd(e.raw, e.looked)
		if size < 0 && len(e.raw) > answerHeadMost || size > answerHeadMost {
			return errHeadTooLong
		}
		if size < 0 {
			e.looked = len(e.raw)
			return nil
		}
		e.looked = 0
		var head answerHead
		if err := head.parse(e.raw[:size]); err != nil {
			return err
		}
		if head.informational() {
			c.passing, e.raw = append(c.passing, e.raw[:size]...), e.raw[size:]
			continue
		}
		return c.final(e, &head, size)
	}
}

// final lets the head of the answer pass, and what has come behind it.
func (c *upstreamConn) final(e *expectation, head *answerHead, size int) error {
	all := e.raw
	c.end = endAfter(head, e.bodiless || head.bodiless() && head.status != http.StatusSwitchingProtocols)
	if c.end.chunks != nil {
		if err := new(chunks).begins(all[size:]); err != nil {
			return err
		}
	}
	if n := size + c.end.follow(all[size:]); n < len(all) {
		all = all[:n]
		_ = c.Conn.Close()
	}
	if !head.reusable() {
		// The transport would use the connection again.
		blank := bytes.LastIndexByte(all[:size-1], '\n') + 1
		all = slices.Concat(all[:blank], []byte("Connection: close\r\n"), all[blank:])
	}
	if c.passing == nil {
		c.passing = all
	} else {
		c.passing = append(c.passing, all...)
	}
	e.facts.Store(factsOf(head))
	e.raw = nil
	e.finish()
	return nil
}

// CloseWrite ends our half of a tunnel.
func (c *upstreamConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Conn.Close()
}
