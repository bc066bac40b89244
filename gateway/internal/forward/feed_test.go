package forward

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"specialroutes.example/gateway/internal/config"
)

func newTestFeed(t *testing.T, source io.Reader) *feed {
	t.Helper()
	w := newWatch(config.Timeouts{Idle: time.Minute}, func(error) {})
	t.Cleanup(w.stop)
	return newFeed(&body{source: source, watch: w, atEnd: func() {}})
}

// What a client declares and does not send takes no memory.
func TestFeedTakesRoomAsBytesCome(t *testing.T) {
	t.Parallel()
	for _, sent := range []int{0, 1, 5000} {
		f := newTestFeed(t, bytes.NewReader(make([]byte, sent)))
		if err := f.readWhole(replayMost); err == nil {
			t.Errorf("%d bytes are taken for %d", sent, replayMost)
		}
		if got, most := cap(f.held), max(2*sent, feedChunk); got > most {
			t.Errorf("room for %d bytes after %d came, want %d at most", got, sent, most)
		}
	}
}

func TestFeedReadsWholeBodies(t *testing.T) {
	t.Parallel()
	for _, length := range []int{1, feedChunk, feedChunk + 1, replayMost} {
		want := bytes.Repeat([]byte("0123456789abcdef"), length/16+1)[:length]
		for name, wrap := range map[string]func(io.Reader) io.Reader{
			"": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader, "the end with the last": iotest.DataErrReader,
		} {
			f := newTestFeed(t, wrap(bytes.NewReader(want)))
			if err := f.readWhole(int64(length)); err != nil || !bytes.Equal(f.held, want) || !f.body.complete() {
				t.Errorf("%d bytes, %q: %d held, %v", length, name, len(f.held), err)
			}
		}
	}
}
