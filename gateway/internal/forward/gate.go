package forward

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"specialroutes.example/gateway/internal/filter"
)

// gate is a client's connection as net/http's server has it. It lets one head pass at
// a time, and only one that was looked at; so it follows where bodies end. What is
// refused it replaces by a head that net/http refuses too, in its turn behind the
// answers to earlier requests, and that refusal by ours.
//
// Its reading side belongs to whoever reads; net/http has one reader at a time.
type gate struct {
	net.Conn
	server *Server

	buffer  []byte // read and not passed on
	given   int    // bytes of the next head that were passed on before it was whole
	looked  int    // bytes of buffer that hold no end of a head
	pass    int64  // bytes that may pass unseen; everything: all of them
	chunked bool   // behind them comes a body in chunks
	chunks  bodyEnd
	later   bool // the next head is not the first
	timed   bool // it has its deadline
	pragma  bool // what the last head said
	refusal *filter.Refusal
	refused []byte // as much as has come of the refused head
	ended   bool   // no further byte of the client is passed on

	heard    atomic.Bool // something has come
	handled  atomic.Bool // the handler has the request; what is written is its answer
	frames   atomic.Bool // HTTP/2: what is written is never an answer of HTTP/1
	lingers  atomic.Bool // a refusal was written, and the client may still be sending
	released atomic.Bool
}

// everything is the count of bytes of a connection that is no longer looked at.
const everything = -1

// tlsGate is a gate over TLS. The method makes net/http tell requests of it.
type tlsGate struct{ *gate }

// ConnectionState returns that of the connection.
func (g tlsGate) ConnectionState() tls.ConnectionState { return g.Conn.(*tls.Conn).ConnectionState() }

// newGate returns c with bytes that were read from it put back in front. They begin
// with the head of a request, or are none.
func (s *Server) newGate(c net.Conn, read []byte) net.Conn {
	g := &gate{Conn: c, server: s, buffer: read}
	g.heard.Store(len(read) > 0)
	if _, ok := c.(*tls.Conn); ok {
		return tlsGate{g}
	}
	return g
}

func (g *gate) self() *gate { return g }

// gateOf returns the gate that c is, nil when it is none.
func gateOf(c net.Conn) *gate {
	if g, ok := c.(interface{ self() *gate }); ok {
		return g.self()
	}
	return nil
}

// connKey is the key of the connection in a request's context.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// marked tells the gate that its request has reached the handler, and takes away what
// net/http has made up.
func marked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(net.Conn); ok {
			if g := gateOf(c); g != nil && r.ProtoMajor == 1 {
				g.handled.Store(true)
				if g.pragma {
					delete(r.Header, "Cache-Control")
				}
				if r.ProtoMinor == 0 {
					g.serveOld(next, w, r)
					return
				}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// serveOld serves a request of HTTP/1.0. Where nothing but the end of the connection
// says where its answer ends, a reset is all that tells a part from the whole.
func (g *gate) serveOld(next http.Handler, w http.ResponseWriter, r *http.Request) {
	whole := false
	defer func() {
		if !whole {
			g.reset()
		}
	}()
	next.ServeHTTP(w, r)
	whole = true
}

// reset has the connection end with a reset. Under TLS that comes before its goodbye:
// many clients take an end without one for a clean end.
func (g *gate) reset() {
	c := g.Conn
	secured, isTLS := c.(*tls.Conn)
	if isTLS {
		c = secured.NetConn()
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	if isTLS {
		_ = c.Close()
	}
}

// Read passes on what may pass.
func (g *gate) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		switch {
		case g.ended && g.pass == 0:
			return 0, io.EOF
		case g.pass != 0:
			return g.readUnseen(p)
		case g.chunked:
			return g.readChunks(p)
		}
		if n, err := g.readHead(p); n > 0 || err != nil {
			return n, err
		}
	}
}

// take reads what was read before, or else from the connection.
func (g *gate) take(p []byte) (int, error) {
	if len(g.buffer) == 0 {
		return g.Conn.Read(p)
	}
	n := copy(p, g.buffer)
	if g.buffer = g.buffer[n:]; len(g.buffer) == 0 {
		g.buffer = nil
	}
	return n, nil
}

func (g *gate) readUnseen(p []byte) (int, error) {
	if g.pass > 0 {
		p = p[:min(int64(len(p)), g.pass)]
	}
	n, err := g.take(p)
	if g.pass > 0 {
		g.pass -= int64(n)
	}
	return n, err
}

// brokenBody ends a body in chunks wherever it is broken, so that net/http finds it
// broken too. An error would look as if the client had left.
const brokenBody = "\x00\nbroken\r\n\r\n"

// readChunks reads of a body in chunks. What is broken ends the reading: net/http
// might take it for something.
func (g *gate) readChunks(p []byte) (int, error) {
	n, err := g.take(p)
	used, done, bad := g.chunks.follow(p[:n])
	switch {
	case bad != nil:
		g.end(brokenBody)
		if used == 0 {
			return g.readUnseen(p)
		}
	case done:
		g.chunked = false
		if used < n {
			g.buffer = append(append(make([]byte, 0, n-used+len(g.buffer)), p[used:n]...), g.buffer...)
		}
	}
	return used, err
}

// readHead reads a head until it is whole, and judges it. Who asks for one byte only
// is net/http, to learn whether the client leaves while a request is under way: with
// that byte it would look no further, so it waits for the end instead. Where that
// cannot be seen, it gets the byte.
func (g *gate) readHead(p []byte) (int, error) {
	if err := g.skipBlank(); err != nil {
		return 0, err
	}
	if len(p) == 1 && g.given == 0 {
		if socket := socketOf(g.Conn); socket != nil {
			return 0, g.awaitEnd(socket)
		}
		p[0], g.given = g.buffer[0], 1
		return 1, nil
	}
	for {
		if size := g.whole(); size > 0 {
			g.judge(size)
			return 0, nil
		}
		if g.ended || g.pass != 0 {
			return 0, nil
		}
		switch err := g.more(); {
		case errors.Is(err, io.EOF) && len(g.buffer) > g.given:
			g.refuse(badHead("the head of the request breaks off"))
			return 0, nil
		case err != nil:
			return 0, err
		}
	}
}

// awaitEnd waits behind bytes of further requests for the client's end, after which
// none of them counts. It fails at the read deadline too.
func (g *gate) awaitEnd(socket syscall.RawConn) error {
	if err := awaitGone(socket); err != nil {
		return err
	}
	g.end("")
	return io.EOF
}

// socketOf returns the socket under a connection, nil where its end cannot be seen
// before what was sent has been read.
func socketOf(c net.Conn) syscall.RawConn {
	if secured, ok := c.(*tls.Conn); ok {
		c = secured.NetConn()
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok || !seesEnds {
		return nil
	}
	socket, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	return socket
}

// blankMost is how many bytes of blank lines before a head are passed over
// (RFC 9112, 2.2).
const blankMost = 4

// skipBlank reads until there is a byte of a head.
func (g *gate) skipBlank() error {
	for skipped := 0; g.given == 0; {
		for len(g.buffer) > 0 && skipped < blankMost && (g.buffer[0] == '\r' || g.buffer[0] == '\n') {
			g.buffer = g.buffer[1:]
			skipped++
		}
		if len(g.buffer) > 0 {
			return nil
		}
		if err := g.more(); err != nil {
			return err
		}
	}
	return nil
}

// more reads from the connection into the buffer.
func (g *gate) more() error {
	if len(g.buffer) > g.given && g.later && !g.timed {
		// net/http allows the whole idle time for what it has not seen a byte of.
		g.timed = true
		_ = g.Conn.SetReadDeadline(time.Now().Add(g.server.timeouts.Header))
	}
	if cap(g.buffer)-len(g.buffer) < 512 {
		g.buffer = append(make([]byte, 0, max(2048, 2*len(g.buffer))), g.buffer...)
	}
	n, err := g.Conn.Read(g.buffer[len(g.buffer):cap(g.buffer)])
	g.buffer = g.buffer[:len(g.buffer)+n]
	if n > 0 {
		if !g.heard.Load() {
			g.heard.Store(true)
		}
		return nil
	}
	return err
}

// whole returns the size of the head in the buffer when it is whole. What cannot
// become one that is accepted it judges before.
func (g *gate) whole() int {
	if !g.later && isPreface(g.buffer) {
		g.pass = everything
		g.frames.Store(true)
		return 0
	}
	size := headEnd(g.buffer, g.looked)
	if size > 0 {
		return size
	}
	g.looked = len(g.buffer)
	switch {
	case len(g.buffer) > int(g.server.limits.HeaderBytes):
		g.refuse(headTooLong(g.server.limits))
	case !isTokenByte(g.buffer[0]):
		g.refuse(badHead("the request line is not a method, a target and a version"))
	}
	return -1
}

// judge judges a whole head.
func (g *gate) judge(size int) {
	h := scanRequest(g.buffer[:size], g.server.limits)
	if h.verdict == verdictRefuse {
		g.refuse(h.refusal)
		return
	}
	g.pass = saturated(int64(size-g.given), max(h.length, 0))
	g.chunked = h.length < 0
	g.pragma = h.pragma
	g.buffer = g.buffer[g.given:]
	g.given, g.looked, g.later, g.timed = 0, 0, true, false
}

// refusedHead is a head that net/http refuses, whatever byte comes before it. It is
// as long as what it looks for at the start of a connection.
const refusedHead = "refused, for another reason\r\n\r\n"

// refuse ends what is read from the client.
func (g *gate) refuse(r *filter.Refusal) {
	g.refusal, g.refused = r, g.buffer
	g.end(refusedHead)
}

// end lets last pass, and no further byte of the client.
func (g *gate) end(last string) {
	g.buffer, g.pass, g.chunked, g.ended = []byte(last), int64(len(last)), false, true
}

// saturated returns a sum of counts, or the highest number where that is less: a sum
// that overflows could be everything.
func saturated(a, b int64) int64 {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}

// noteState is told when a request is over, when the head of the first one has been
// read, well or not, and when a connection is no longer net/http's.
func (s *Server) noteState(c net.Conn, state http.ConnState) {
	g := gateOf(c)
	if s.MaxConnections > 0 {
		s.idle.note(c, state, g == nil || g.frames.Load())
	}
	switch {
	case g == nil:
		if state == http.StateClosed {
			s.release()
		}
	case state == http.StateActive, state == http.StateIdle:
		g.handled.Store(false)
	case state == http.StateHijacked:
		g.tunnel()
	}
}

// tunnel lets everything pass from now on.
func (g *gate) tunnel() {
	g.buffer = g.buffer[min(g.given, len(g.buffer)):]
	g.pass, g.given, g.chunked = everything, 0, false
}

// Close closes the connection, and lets the client read a refusal before.
func (g *gate) Close() error {
	if !g.released.CompareAndSwap(false, true) {
		return g.Conn.Close()
	}
	defer g.server.release()
	if g.lingers.Load() {
		linger(g.Conn)
	}
	return g.Conn.Close()
}

// CloseWrite ends our half of a tunnel.
func (g *gate) CloseWrite() error {
	if half, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return os.ErrInvalid
}

// ReadFrom lets the kernel move the bytes where it can.
func (g *gate) ReadFrom(r io.Reader) (int64, error) {
	if from, ok := g.Conn.(io.ReaderFrom); ok {
		return from.ReadFrom(r)
	}
	return io.Copy(struct{ io.Writer }{g.Conn}, r)
}
