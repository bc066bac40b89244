package forward

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"specialroutes.example/gateway/internal/filter"
)

// loopRuns says whether there is a loop.
const loopRuns = true

// client is one client's connection as the loop has it. It belongs to the
// connection's goroutine.
type client struct {
	conn  net.Conn     // *net.TCPConn or *tls.Conn
	tcp   *net.TCPConn // the socket under it
	plain bool         // conn is tcp: bytes may be moved by the kernel

	// in holds what came behind the request. The engine never takes from it.
	in *bufio.Reader

	// out is what the loop's own answers are built in. It is empty between requests.
	out []byte

	// writeDue is the write deadline that is set on conn. Whoever sets it says so
	// here; nobody sets it anew for every request.
	writeDue deadline

	// lastRequest says that the connection ends with this answer. Who writes the head of
	// the answer has it looked at anew, by last.
	lastRequest bool

	*tracked
	loop    *loop
	remote  string
	known   filter.Connection
	tls     *tls.ConnectionState // nil: there is none
	raw     syscall.RawConn
	readDue deadline
	desk    *desk     // nil while the connection is idle
	later   bool      // the head is not the first
	unread  int64     // bytes of the request's body that are still to be read
	began   time.Time // when the request began, if its body was waited for; else zero
	source  source
	ready   func(fd uintptr) bool // source.ready, made once
}

// last reports whether the connection ends with this answer. What ends it may have come
// while the upstream was waited for; after the head the client would not be told.
func (c *client) last() bool {
	s := c.loop.server
	c.lastRequest = c.lastRequest || c.ending.Load() || s.closing.Load() || s.slots.scarce.Load() || s.Draining != nil && s.Draining()
	return c.lastRequest
}

// desk is what a connection needs while it has a request, and gives back while it
// waits.
type desk struct {
	in  *bufio.Reader
	out []byte

	body     []byte
	request  requestReader
	exchange *filter.Exchange
	reply    reply
}

// Sizes of what is read into. A head that needs more gets more.
const clientBuffer = 4 << 10

// desks are shared by all servers of the process, as the memory is.
var desks = sync.Pool{New: func() any {
	return &desk{in: bufio.NewReaderSize(nil, clientBuffer), exchange: new(filter.Exchange)}
}}

// source is where a client's buffer is filled from.
type source struct {
	c       *client
	first   []byte // read before; it comes first
	one     [1]byte
	fd      int // of a socket that must not be waited for; -1: it is waited for
	failure error
}

// errWouldWait says that there is nothing to read yet.
var errWouldWait = errors.New("nothing to read yet")

// Read reads what was read before, or else from the connection.
func (s *source) Read(p []byte) (int, error) {
	if len(s.first) > 0 {
		n := copy(p, s.first)
		s.first = s.first[n:]
		return n, nil
	}
	if s.fd >= 0 {
		return readNow(s.fd, p)
	}
	return s.c.read(p)
}

// readNow reads from a socket without waiting.
func readNow(fd int, p []byte) (int, error) {
	for {
		switch n, err := syscall.Read(fd, p); {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return 0, errWouldWait
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// read reads from the connection. A deadline in the past that somebody else has set,
// to wake a connection that was idle, does not count once it is not.
func (c *client) read(p []byte) (int, error) {
	for {
		n, err := c.conn.Read(p)
		if n > 0 || err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if c.state.Load() == connIdle || c.readDue.at.IsZero() || !time.Now().Before(c.readDue.at) {
			return n, err
		}
		_ = c.conn.SetReadDeadline(c.readDue.at)
	}
}

// ready reads what a readable socket has into a desk that it takes for it. Without
// anything to read the desk goes back: a connection that waits has no buffer.
func (s *source) take(fd uintptr) bool {
	s.c.sit()
	s.fd = int(fd)
	_, err := s.c.in.Peek(1)
	s.fd = -1
	if errors.Is(err, errWouldWait) {
		s.c.rise()
		return false
	}
	s.failure = err
	return true
}

// sit takes a desk.
func (c *client) sit() {
	d := desks.Get().(*desk)
	d.in.Reset(&c.source)
	c.desk, c.in, c.out = d, d.in, d.out[:0]
}

// deskOut is how much room for answers is kept at a desk.
const deskOut = 64 << 10

// rise gives the desk back. A reader that was made for a long head is not kept.
func (c *client) rise() {
	d := c.desk
	if cap(c.out) <= deskOut {
		d.out = c.out
	}
	d.in.Reset(nil)
	desks.Put(d)
	c.desk, c.in, c.out = nil, nil, nil
}

// await waits for a byte of a request. false says that the connection is to end.
func (c *client) await(limit time.Duration) bool {
	if c.readDue.reach(time.Now(), limit, c.conn.SetReadDeadline) != nil {
		return false
	}
	s := c.loop.server
	if c.ending.Load() || c.state.Load() == connIdle && (s.closing.Load() || s.slots.scarce.Load()) {
		return c.lastLook()
	}
	if !c.plain {
		n, err := c.conn.Read(c.source.one[:])
		if n == 0 {
			return err == nil || c.ending.Load() && c.lastLook()
		}
		c.sit()
		c.source.first = c.source.one[:]
		return true
	}
	if c.raw.Read(c.ready) != nil {
		return c.ending.Load() && c.lastLook()
	}
	if c.source.failure != nil {
		c.rise()
		return false
	}
	return true
}

// lastLook looks whether a request has come meanwhile on a connection that is to
// end. Closed with bytes unread it would reset, and the client could not know whether
// its request was heard.
func (c *client) lastLook() bool {
	if !c.plain {
		return c.lastLookInside()
	}
	found := false
	err := c.raw.Control(func(fd uintptr) { found = c.source.take(fd) })
	if !found || err != nil {
		return false
	}
	if c.source.failure != nil {
		c.rise()
		return false
	}
	return true
}

// more reports whether the client has sent something that is still on the socket.
func (c *client) more() bool {
	polled := make([]unixPoll, 1)
	return c.raw.Control(func(fd uintptr) { pollNow(polled, fd) }) == nil && polled[0].Revents != 0
}

// lastRecord is how long the rest of a record of TLS may take that has begun to come
// when its connection is to end.
const lastRecord = 100 * time.Millisecond

// lastLookInside is lastLook under TLS, where bytes may be in what was read before, or
// in a record that has not come as a whole.
func (c *client) lastLookInside() bool {
	c.state.Store(connReading) // or the read would be woken once more
	c.readDue.at = time.Unix(1, 0)
	if c.more() {
		c.readDue.at = time.Now().Add(lastRecord)
	}
	if c.conn.SetReadDeadline(c.readDue.at) != nil {
		return false
	}
	if n, _ := c.read(c.source.one[:]); n == 0 {
		return false
	}
	c.sit()
	c.source.first = c.source.one[:]
	return true
}

// enlarge moves what is buffered into a larger reader.
func (c *client) enlarge(size int) {
	held, _ := c.in.Peek(c.in.Buffered())
	c.source.first = bytes.Clone(held)
	larger := bufio.NewReaderSize(&c.source, size)
	_, _ = larger.Peek(len(held))
	c.in = larger
}
