//go:build linux

package forward

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// loopWriter is the way back to a client of the loop for an answer that net/http's
// transport or the gateway itself gives. It frames as net/http's server does: an
// answer that is short and whole when it ends has a length, another one without a
// length goes in chunks.
type loopWriter struct {
	c       *client
	rep     *reply
	answer  *answer // over this writer: to be answered with
	request *http.Request
	header  http.Header

	status  int
	form    answerForm
	sent    bool   // the head is in out or has left
	written int64  // bytes of the body that were taken
	early   []byte // of a body, while the framing is open
	failed  error
}

// holdMost is how much of a body is held back to learn its length.
const holdMost = 2 << 10

// newLoopWriter returns the way back for the answer to r. Until its end, the client's
// out and the write deadline are its own; what bounded earlier answers bounds none of
// it.
func newLoopWriter(c *client, r *http.Request, rep *reply) *loopWriter {
	w := &loopWriter{c: c, rep: rep, request: r, header: make(http.Header)}
	w.answer = newAnswer(w, r)
	w.answer.bodyRead = func() bool { return c.unread == 0 }
	c.out = c.out[:0]
	_ = c.writeDue.reach(time.Time{}, 0, c.conn.SetWriteDeadline)
	return w
}

// Header is that of the answer.
func (w *loopWriter) Header() http.Header { return w.header }

// WriteHeader notes the status; a 1xx leaves at once.
func (w *loopWriter) WriteHeader(status int) {
	switch {
	case w.status != 0:
	case status < http.StatusOK:
		w.c.out = appendFields(appendStatusLine(w.c.out, status), w.header)
		w.c.out = append(w.c.out, "\r\n"...)
		begun := w.rep.begun
		_ = w.flush()
		w.rep.begun = begun || w.failed != nil // else the answer is still to come
	default:
		w.status = status
	}
}

// bodiless reports whether the answer has no body, whatever is written.
func (w *loopWriter) bodiless() bool {
	return w.request.Method == http.MethodHead || w.status == http.StatusNoContent || w.status == http.StatusNotModified
}

// Write takes bytes of the body.
func (w *loopWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	switch length, known := w.length(); {
	case w.failed != nil:
		return 0, w.failed
	case w.bodiless():
		return 0, http.ErrBodyNotAllowed
	case known && w.written+int64(len(p)) > length:
		return 0, http.ErrContentLength
	case !known && !w.sent && len(w.early)+len(p) <= holdMost:
		w.early = append(w.early, p...)
		return len(p), nil
	}
	w.head(false)
	if err := w.body(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// length returns the length that the header declares.
func (w *loopWriter) length() (n int64, known bool) {
	lines := w.header["Content-Length"]
	if len(lines) == 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(lines[0], 10, 64)
	return n, err == nil && n >= 0
}

// head builds the head, if that has not happened. whole says that the body is all in
// early.
func (w *loopWriter) head(whole bool) {
	if w.sent {
		return
	}
	w.sent = true
	length, known := w.length()
	w.form.status, w.form.date = w.status, w.c.loop.dates.at(time.Now())
	switch {
	case known && w.status != http.StatusNoContent:
		w.form.framing, w.form.length = framedByLength, length
	case w.bodiless():
	case whole && len(w.trailers()) == 0:
		w.form.framing, w.form.length = framedByLength, int64(len(w.early))
	default:
		w.form.framing = framedByChunks
	}
	if slices.ContainsFunc(w.header["Connection"], func(s string) bool { return strings.EqualFold(s, "close") }) {
		w.c.lastRequest = true
	}
	w.form.last = w.c.last()
	w.c.out = appendAnswerHead(w.c.out, w.withoutTrailers(), w.form)
	early := w.early
	w.early = nil
	_ = w.body(early)
}

// withoutTrailers is the header without fields that belong behind the body.
func (w *loopWriter) withoutTrailers() http.Header {
	h := maps.Clone(w.header)
	maps.DeleteFunc(h, func(name string, _ []string) bool { return strings.HasPrefix(name, http.TrailerPrefix) })
	return h
}

// writeAlone is from what size on bytes are not copied together with what waits.
const writeAlone = 8 << 10

// body appends bytes of the body, framed.
func (w *loopWriter) body(p []byte) error {
	if len(p) == 0 {
		return w.failed
	}
	w.written += int64(len(p))
	if w.form.framing == framedByChunks {
		w.c.out = append(strconv.AppendInt(w.c.out, int64(len(p)), 16), "\r\n"...)
	}
	if len(w.c.out)+len(p) <= writeAlone {
		w.c.out = append(w.c.out, p...)
	} else {
		if err := w.flush(); err != nil {
			return err
		}
		if err := w.push(p); err != nil {
			return err
		}
	}
	if w.form.framing == framedByChunks {
		w.c.out = append(w.c.out, "\r\n"...)
	}
	return nil
}

// FlushError sends what was written.
func (w *loopWriter) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.head(false)
	return w.flush()
}

func (w *loopWriter) flush() error {
	if len(w.c.out) == 0 {
		return w.failed
	}
	err := w.push(w.c.out)
	w.c.out = w.c.out[:0]
	return err
}

// push writes to the connection.
func (w *loopWriter) push(p []byte) error {
	if w.failed == nil {
		w.rep.begun = true
		_, w.failed = w.c.conn.Write(p)
	}
	return w.failed
}

// end completes the answer, if one was given whole, and says what it came to.
func (w *loopWriter) end() {
	a := w.answer
	if a.complete && w.complete() != nil {
		a.gone.Store(true)
		a.complete = false
	}
	w.rep.begun = w.rep.begun || a.begun()
	w.rep.status, w.rep.bytes = a.outcome()
	w.c.out = w.c.out[:0]
	_ = w.c.conn.SetWriteDeadline(time.Time{})
}

// complete sends what is left. An answer that is shorter than it says is not complete.
func (w *loopWriter) complete() error {
	w.head(true)
	if w.form.framing == framedByChunks {
		w.c.out = append(w.c.out, "0\r\n"...)
		w.c.out = appendFields(w.c.out, w.trailers())
		w.c.out = append(w.c.out, "\r\n"...)
	}
	if err := w.flush(); err != nil {
		return err
	}
	w.rep.complete = w.bodiless() || w.form.framing != framedByLength || w.written == w.form.length
	w.rep.keep = w.rep.complete
	return nil
}

// trailers are the fields behind a body in chunks: those that were announced, and
// those that are marked as such.
func (w *loopWriter) trailers() http.Header {
	t := make(http.Header)
	for _, line := range w.header["Trailer"] {
		for name := range strings.SplitSeq(line, ",") {
			name = http.CanonicalHeaderKey(strings.TrimSpace(name))
			if lines, ok := w.header[name]; ok {
				t[name] = lines
			}
		}
	}
	for name, lines := range maps.All(w.header) {
		if name, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			t[http.CanonicalHeaderKey(name)] = lines
		}
	}
	return t
}

// SetWriteDeadline is for http.ResponseController. It is safe for concurrent use.
func (w *loopWriter) SetWriteDeadline(t time.Time) error { return w.c.conn.SetWriteDeadline(t) }

// SetReadDeadline does nothing: the body has been read.
func (*loopWriter) SetReadDeadline(time.Time) error { return nil }

// EnableFullDuplex does nothing, for the same reason.
func (*loopWriter) EnableFullDuplex() error { return nil }
