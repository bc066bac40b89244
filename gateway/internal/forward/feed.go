package forward

import (
	"errors"
	"io"
	"slices"
	"sync"
)

const (
	// replayMost is how much of a body is kept to be sent again to an upstream that
	// took nothing of the request.
	replayMost = 64 << 10

	// feedChunk is the least room that a read of the client gets.
	feedChunk = 4 << 10
)

// feed is the client's body for attempts over HTTP/2. There a body is read while
// answers come, by a transport that waits for the end of a read before it gives a
// stream up; so who reads must be able to leave while the client is silent. And
// an upstream may turn a request away after some of its body was sent, so the
// beginning is kept.
//
// One read of the client at most is under way, in a goroutine of its own. It ends
// with the read, and the read at the latest when the server ends the request.
type feed struct {
	body *body

	mu    sync.Mutex
	held  []byte        // what has been read, from offset base on
	base  int64         // 0: all of it is there
	err   error         // how it ended
	under chan struct{} // closed at the end of the read that is under way; nil: none is
}

func newFeed(b *body) *feed { return &feed{body: b} }

// readWhole reads a body of a known length that is short enough to be kept. It
// fails as the body does. Room is taken as bytes come: a length alone costs nothing.
func (f *feed) readWhole(length int64) error {
	for read := int64(0); read < length; read = int64(len(f.held)) {
		if len(f.held) == cap(f.held) {
			room := min(length-read, max(feedChunk, read))
			f.held = append(make([]byte, 0, read+room), f.held...)
		}
		n, err := f.body.Read(f.held[read:cap(f.held)])
		f.held = f.held[:read+int64(n)]
		if err != nil && int64(len(f.held)) < length {
			return err
		}
	}
	_, f.err = f.body.Read(make([]byte, 1)) // nothing but the end, as the server counts
	if errors.Is(f.err, io.EOF) {
		return nil
	}
	return f.err
}

// whole reports whether the body can be sent from its start. A nil feed cannot.
func (f *feed) whole() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.base == 0
}

// reader returns the body for one attempt, from its start. The earlier attempt's is
// closed.
func (f *feed) reader() *feedReader { return &feedReader{feed: f, closed: make(chan struct{})} }

// advance starts a read of the client, if none is under way, and returns what is
// closed at its end. The caller holds mu, and has had all that was read.
func (f *feed) advance() <-chan struct{} {
	if f.under != nil {
		return f.under
	}
	if end := f.base + int64(len(f.held)); end > replayMost-feedChunk {
		f.base, f.held = end, f.held[:0]
	}
	f.held = slices.Grow(f.held, feedChunk)
	room := f.held[len(f.held):min(cap(f.held), len(f.held)+copyBuffer)]
	under := make(chan struct{})
	f.under = under
	go func() {
		n, err := f.body.Read(room)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.held, f.err, f.under = f.held[:len(f.held)+n], err, nil
		close(under)
	}()
	return under
}

// wait waits for the read that is under way, which the caller has seen to that it
// ends.
func (f *feed) wait() {
	f.mu.Lock()
	under := f.under
	f.mu.Unlock()
	if under != nil {
		<-under
	}
}

// feedReader is a feed as one attempt sees it.
type feedReader struct {
	feed   *feed
	offset int64
	once   sync.Once
	closed chan struct{}
}

// Read returns what the client has sent; after Close, nothing more.
func (r *feedReader) Read(p []byte) (int, error) {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		select {
		case <-r.closed:
			return 0, errAttemptOver
		default:
		}
		switch at := r.offset - f.base; {
		case at < 0: // it was read for a later attempt
			return 0, errAttemptOver
		case at < int64(len(f.held)):
			n := copy(p, f.held[at:])
			r.offset += int64(n)
			return n, r.atEnd()
		case f.err != nil:
			return 0, f.err
		}
		under := f.advance()
		f.mu.Unlock()
		select {
		case <-under:
		case <-r.closed:
		}
		f.mu.Lock()
	}
}

// atEnd returns io.EOF with the last bytes, so that the end of the stream need not
// travel by itself.
func (r *feedReader) atEnd() error {
	if f := r.feed; errors.Is(f.err, io.EOF) && r.offset == f.base+int64(len(f.held)) {
		return io.EOF
	}
	return nil
}

// Close ends the attempt's part in the body, also while it waits for the client.
func (r *feedReader) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}
