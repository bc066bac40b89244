package forward

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"specialroutes.example/gateway/internal/filter"
	"specialroutes.example/services/problem"
)

// lingering is how long a client whose body nobody reads may go on sending it
// after the answer. Closing at once would make its kernel discard the answer.
const lingering = time.Second

// answer is the way back to the client. It counts, notices when the client has
// gone, and holds the head back until there is a byte to follow it, so that an
// upstream that dies before then can still be answered for.
type answer struct {
	http.ResponseWriter
	control *http.ResponseController
	request *http.Request

	before   http.Header  // fields that were there before the answer
	watch    *watch       // nil while nothing is carried
	length   int64        // of the body: -1 not known
	status   int          // 0: no head yet
	sent     atomic.Bool  // the head has left for net/http
	writing  atomic.Int32 // how many write to the client
	bytes    atomic.Int64
	ended    atomic.Bool // the upstream has said that there is no more
	gone     atomic.Bool // the client has left
	hijacked bool
	complete bool        // every byte of it went out
	bodyRead func() bool // whether the request's body has been read to its end
}

func newAnswer(w http.ResponseWriter, r *http.Request) *answer {
	a := &answer{ResponseWriter: w, control: http.NewResponseController(w), request: r, length: -1}
	if len(w.Header()) > 0 {
		a.before = maps.Clone(w.Header())
	}
	if r.ProtoMajor == 1 && r.ContentLength != 0 {
		// net/http else waits for the body before it sends a head.
		_ = a.control.EnableFullDuplex()
	}
	return a
}

// Unwrap gives http.ResponseController what it needs.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader keeps the status until the head has to leave. A 1xx leaves at once.
func (a *answer) WriteHeader(status int) {
	if status < http.StatusOK && status != http.StatusSwitchingProtocols {
		a.writing.Add(1)
		a.ResponseWriter.WriteHeader(status)
		a.writing.Add(-1)
		return
	}
	if a.status == 0 {
		a.status = status
	}
}

// head sends the head if it has not left yet.
func (a *answer) head() {
	if a.sent.Load() {
		return
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	if a.request.ProtoMajor == 1 && a.request.ContentLength != 0 && (a.bodyRead == nil || !a.bodyRead()) {
		// What is left of the body would be taken for the next request.
		a.Header().Set("Connection", "close")
	}
	if a.status == http.StatusNotModified && a.request.ProtoMajor == 1 {
		a.keepNotModified()
	}
	a.sent.Store(true)
	a.ResponseWriter.WriteHeader(a.status)
}

// keepNotModified spells fields in lower case that net/http takes away from a 304 in
// their usual spelling. They tell of what a 200 would have brought.
func (a *answer) keepNotModified() {
	h := a.Header()
	for _, name := range []string{"Content-Length", "Content-Type"} {
		if lines := h[name]; len(lines) > 0 {
			delete(h, name)
			h[strings.ToLower(name)] = lines
		}
	}
}

// Write sends bytes of the body.
func (a *answer) Write(p []byte) (int, error) {
	a.head()
	a.writing.Add(1)
	n, err := a.ResponseWriter.Write(p)
	a.writing.Add(-1)
	a.bytes.Add(int64(n))
	if a.watch != nil {
		a.watch.progress()
	}
	if err != nil && !errors.Is(err, http.ErrBodyNotAllowed) && !errors.Is(err, http.ErrContentLength) {
		a.gone.Store(true)
	}
	return n, err
}

// FlushError sends what is buffered. A head alone waits for its body where the
// length is known, and the last bytes leave with the end of the request where that has
// come: over HTTP/2 it may come later than they.
func (a *answer) FlushError() error {
	if n := a.bytes.Load(); a.length >= 0 && (n == 0 || n == a.length && a.ended.Load()) {
		return nil
	}
	a.head()
	a.writing.Add(1)
	err := a.control.Flush()
	a.writing.Add(-1)
	if err != nil {
		a.gone.Store(true)
	}
	return err
}

// Hijack hands the client's connection over to a tunnel. Bytes that the client
// sent behind its request come first from it.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := a.control.Hijack()
	if err != nil {
		return nil, nil, err
	}
	a.hijacked, a.status = true, http.StatusSwitchingProtocols
	a.sent.Store(true)
	return newTunnel(conn, rw.Reader, a), rw, nil
}

// begun reports whether anything of an answer has left.
func (a *answer) begun() bool { return a.sent.Load() }

// forget takes back an answer that has not begun.
func (a *answer) forget() {
	h := a.Header()
	clear(h)
	maps.Copy(h, a.before)
	a.status, a.length = 0, -1
}

// refuse answers with a problem document.
func (a *answer) refuse(r *filter.Refusal, correlationID string) {
	a.length = -1
	problem.Write(a, problem.Problem{
		Status: r.Status, Code: r.Code, Detail: r.Detail, CorrelationID: correlationID, Members: r.Members,
	})
	a.end()
}

// end completes an answer. What net/http does after it, the last flush and the
// reading of a body that nobody wanted, may not take for ever.
func (a *answer) end() {
	a.head()
	a.complete = !a.gone.Load()
	if a.hijacked {
		return
	}
	flush := endOfAnswer
	if a.watch != nil && a.watch.limits.Idle > 0 {
		flush = a.watch.limits.Idle
	}
	_ = a.control.SetWriteDeadline(time.Now().Add(flush))
	if a.request.ProtoMajor == 1 && a.request.ContentLength != 0 && (a.bodyRead == nil || !a.bodyRead()) {
		_ = a.control.SetReadDeadline(time.Now().Add(lingering))
	}
}

// endOfAnswer bounds the last flush, of 4 KiB at most, where no limit is known.
const endOfAnswer = time.Minute

// outcome returns what is logged of the answer.
func (a *answer) outcome() (status int, bytes int64) {
	if !a.complete && !a.hijacked && (a.gone.Load() || a.request.Context().Err() != nil) {
		return statusClientGone, a.bytes.Load()
	}
	return a.status, a.bytes.Load()
}

// tunnel is a client's connection after an upgrade.
type tunnel struct {
	net.Conn
	early  io.Reader // what came behind the request
	answer *answer
}

func newTunnel(c net.Conn, buffered *bufio.Reader, a *answer) *tunnel {
	t := &tunnel{Conn: c, answer: a}
	if buffered.Buffered() > 0 {
		t.early = io.LimitReader(buffered, int64(buffered.Buffered()))
	}
	return t
}

// Read reads from the client.
func (t *tunnel) Read(p []byte) (int, error) {
	if t.early != nil {
		if n, err := t.early.Read(p); err == nil {
			return n, nil
		}
		t.early = nil
	}
	n, err := t.Conn.Read(p)
	t.answer.watch.progress()
	return n, err
}

// Write writes to the client.
func (t *tunnel) Write(p []byte) (int, error) {
	n, err := t.Conn.Write(p)
	t.answer.bytes.Add(int64(n))
	t.answer.watch.progress()
	return n, err
}

// CloseWrite ends our half, so that the other may still be heard.
func (t *tunnel) CloseWrite() error {
	if c, ok := t.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return t.Conn.Close()
}
