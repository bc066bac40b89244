//go:build linux

package forward

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// link is one connection to an upstream of the one-goroutine engine. It belongs to
// the request that it carries, and to its pool between requests.
type link struct {
	conn  net.Conn
	tcp   *net.TCPConn // the socket under conn
	raw   syscall.RawConn
	plain bool // conn is tcp
	pool  *linkPool

	buf  []byte // what was read and not used up is buf[r:w]; nil while the link is idle
	r, w int

	readDue, writeDue deadline
	idleSince         time.Time

	fd uintptr // of tcp: nobody else closes it while the link is asked for its state
}

// Sizes of a link's buffer. A head that needs more gets more.
const (
	linkBuffer = 4 << 10
	bodyBuffer = 32 << 10
)

// linkBuffers are the buffers that no link holds at the moment.
type linkBuffers struct{ small, large sync.Pool }

func (b *linkBuffers) get(size int) []byte {
	if size <= linkBuffer {
		if p, ok := b.small.Get().(*[linkBuffer]byte); ok {
			return p[:]
		}
		return new([linkBuffer]byte)[:]
	}
	if p, ok := b.large.Get().(*[bodyBuffer]byte); ok {
		return p[:]
	}
	return new([bodyBuffer]byte)[:]
}

func (b *linkBuffers) put(p []byte) {
	switch cap(p) {
	case linkBuffer:
		b.small.Put((*[linkBuffer]byte)(p))
	case bodyBuffer:
		b.large.Put((*[bodyBuffer]byte)(p))
	}
}

func newLink(c net.Conn, pool *linkPool) (*link, error) {
	l := &link{conn: c, pool: pool}
	switch c := c.(type) {
	case *net.TCPConn:
		l.tcp, l.plain = c, true
	case *tls.Conn:
		l.tcp, _ = c.NetConn().(*net.TCPConn)
	}
	if l.tcp == nil {
		return nil, errors.New("the connection is not one of TCP")
	}
	raw, err := l.tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	l.raw = raw
	if err := raw.Control(func(fd uintptr) { l.fd = fd }); err != nil {
		return nil, err
	}
	return l, nil
}

// quiet reports whether the other side has neither sent nor closed: only then may
// the link take another request.
func (l *link) quiet() bool {
	return silent(l.fd) && (l.plain || l.quietInside())
}

// quietInside looks for bytes that TLS has read from the socket and keeps: a read
// that may not wait finds nothing else.
func (l *link) quietInside() bool {
	l.readDue.at = time.Unix(1, 0)
	if err := l.conn.SetReadDeadline(l.readDue.at); err != nil {
		return false
	}
	var p [1]byte
	_, err := l.conn.Read(p[:])
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// buffered returns what was read and not used up.
func (l *link) buffered() []byte { return l.buf[l.r:l.w] }

// room makes sure that there is room to read into. A buffer that a read has filled
// is followed by a larger one: much comes.
func (l *link) room(b *linkBuffers) {
	switch {
	case l.buf == nil:
		l.buf = b.get(linkBuffer)
	case l.r == l.w && l.w == len(l.buf) && len(l.buf) == linkBuffer:
		b.put(l.buf)
		l.buf = b.get(bodyBuffer)
		l.r, l.w = 0, 0
	case l.r == l.w:
		l.r, l.w = 0, 0
	case l.w < len(l.buf):
	case l.r > 0:
		l.w = copy(l.buf, l.buf[l.r:l.w])
		l.r = 0
	default: // a long head
		larger := make([]byte, 2*len(l.buf))
		copy(larger, l.buf)
		b.put(l.buf)
		l.buf = larger
	}
}

// read reads what is there, waiting for it until the read deadline.
func (l *link) read() (int, error) {
	n, err := l.conn.Read(l.buf[l.w:])
	l.w += n
	if n > 0 {
		return n, nil
	}
	return 0, err
}

// rest gives the buffer back; the link is going to be idle, or closed.
func (l *link) rest(b *linkBuffers) {
	if l.buf != nil {
		b.put(l.buf)
	}
	l.buf, l.r, l.w = nil, 0, 0
}

func (l *link) close() { _ = l.conn.Close() }
