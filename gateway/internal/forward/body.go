package forward

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
)

// body is the client's body on its way upstream. Attempts read it through readers
// of their own, because the transport closes what it was given, also when it
// could not even connect. Only an attempt that has read nothing of it may be
// followed by another one.
type body struct {
	source io.Reader
	most   int64 // 0: no limit
	watch  *watch
	shared bool   // it is a stream of HTTP/2
	atEnd  func() // called once, when the end has been read and before that is told

	mu      sync.Mutex            // held while one attempt reads, which may take long
	wrong   atomic.Pointer[error] // what the client did wrong
	ended   atomic.Bool
	read    atomic.Int64
	touched atomic.Bool
	reading atomic.Bool // somebody waits for the client
}

// complete reports whether the body has been read to its end.
func (b *body) complete() bool {
	return b == nil || b.ended.Load()
}

// failure is what the client did wrong, nil when it did nothing.
func (b *body) failure() error {
	if b == nil {
		return nil
	}
	if err := b.wrong.Load(); err != nil {
		return *err
	}
	return nil
}

func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.failure(); err != nil {
		return 0, err
	}
	b.touched.Store(true)
	b.reading.Store(true)
	n, err := b.source.Read(p)
	b.reading.Store(false)
	b.watch.progress()
	if total := b.read.Add(int64(n)); b.most > 0 && total > b.most {
		return 0, b.fail(errBodyTooLarge)
	}
	switch {
	case err == io.EOF:
		if !b.ended.Load() {
			b.atEnd()
			b.ended.Store(true)
		}
	case err != nil:
		return n, b.fail(b.clientError(err))
	}
	return n, err
}

func (b *body) fail(err error) error {
	b.wrong.Store(&err)
	return err
}

// clientError tells a client that left from one that sends nonsense.
func (b *body) clientError(err error) error {
	var network net.Error
	switch {
	case errors.As(err, &network) && network.Timeout():
		return errBodyIdle
	case b.shared && !strings.Contains(err.Error(), "Content-Length"):
		// The frames of a body are read elsewhere, where a bad one ends the connection
		// or the stream. What is left is a length that was wrong.
		return errClientGone
	case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &network), errors.Is(err, net.ErrClosed):
		return errClientGone
	}
	return errBadBody
}

// attemptBody is the body as one attempt sees it.
type attemptBody struct {
	*body
	closed atomic.Bool
}

// Read reads from the client, unless the attempt is over.
func (a *attemptBody) Read(p []byte) (int, error) {
	if a.closed.Load() {
		return 0, errAttemptOver
	}
	return a.body.Read(p)
}

// Close ends the attempt's part in the body, not the body.
func (a *attemptBody) Close() error {
	a.closed.Store(true)
	return nil
}

var errAttemptOver = errors.New("the attempt that reads the body is over")

// noBody is a body that is empty, and that the transport does not know to be: it
// repeats requests without a body by itself, which is for us to decide.
type noBody struct{}

func (noBody) Read([]byte) (int, error) { return 0, io.EOF }
func (noBody) Close() error             { return nil }

// WriteTo writes nothing, and saves the transport a buffer to read nothing with.
func (noBody) WriteTo(io.Writer) (int64, error) { return 0, nil }
