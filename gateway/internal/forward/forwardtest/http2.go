package forwardtest

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// streamsMost is how many streams a client may have open on one connection.
const streamsMost = 250

// Row 59: a client that opens streams and resets them at once keeps no more calls
// upstream than it may have streams, keeps nobody else from being served, and
// leaves nothing behind.
func (s *suite) testRapidReset(t *testing.T) {
	var active, most atomic.Int64
	began := make(chan struct{})
	var first sync.Once
	up := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/wait" {
			_, _ = io.WriteString(w, "served")
			return
		}
		n := active.Add(1)
		defer active.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		first.Do(func() { close(began) })
		<-r.Context().Done()
	})
	g := s.gateway(t, setup{instances: []string{up.address()}})
	c := g.dial(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, c.r) // so that the gateway is not kept from writing
	}()
	c.openAndReset(10_000, began, func() { g.get(t, "/other").is(t, 200, "served") })
	_ = c.Close()
	<-done
	if n := most.Load(); n > streamsMost {
		t.Errorf("%d calls upstream at once, want no more than the %d streams that may be open", n, streamsMost)
	}
	for over := time.Now().Add(soon); active.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(over) {
			t.Fatalf("%d calls go on upstream after their client has left", active.Load())
		}
	}
	g.get(t, "/other").is(t, 200, "served")
}

// openAndReset opens n streams, each with a request, and resets each at once, but for
// the first: it waits for began, which says that this has arrived. It calls between
// after every thousand, and ends when the gateway ends the connection.
func (c *client) openAndReset(n int, began <-chan struct{}, between func()) {
	c.t.Helper()
	var block bytes.Buffer
	fields := hpack.NewEncoder(&block)
	c.send(http2.ClientPreface)
	frames := http2.NewFramer(c.Conn, nil)
	if err := frames.WriteSettings(); err != nil {
		c.t.Fatal(err)
	}
	for i := range n {
		block.Reset()
		for _, f := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "a"}, {":path", prefix + "/wait"}} {
			if err := fields.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
				c.t.Fatal(err)
			}
		}
		stream := uint32(2*i + 1)
		err := frames.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
		switch {
		case err == nil && i == 0:
			within(c.t, began, "the first request does not arrive")
		case err == nil:
			err = frames.WriteRSTStream(stream, http2.ErrCodeCancel)
		}
		if err != nil {
			return
		}
		if i%1000 == 999 {
			between()
		}
	}
}
