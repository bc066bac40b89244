//go:build linux

package forward_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/forward"
)

// held is a listener whose connections stay in the system's queue until it gets a
// deadline.
type held struct {
	*net.TCPListener
	waiting chan struct{} // closed when the first one is asked for
	free    chan struct{}
	freeing sync.Once
	began   atomic.Bool
}

// SetDeadline lets them through, with time enough for a busy machine.
func (h *held) SetDeadline(at time.Time) error {
	defer h.freeing.Do(func() { close(h.free) })
	return h.TCPListener.SetDeadline(at.Add(50 * time.Millisecond))
}

func (h *held) Close() error {
	defer h.freeing.Do(func() { close(h.free) })
	return h.TCPListener.Close()
}

func (h *held) Accept() (net.Conn, error) {
	if h.began.CompareAndSwap(false, true) {
		close(h.waiting)
	}
	<-h.free
	return h.TCPListener.Accept()
}

// A request that is in the system's queue when the server shuts down is answered,
// whoever serves it.
func TestShutdownAnswersToWhatHasQueued(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*forward.Server){
		"the loop":   func(*forward.Server) {},
		"net/http's": func(s *forward.Server) { s.Loop = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &held{TCPListener: listen(t).(*net.TCPListener), waiting: make(chan struct{}), free: make(chan struct{})}
			l := newLooping(t, saying("ok"), setup{listener: h, server: change})
			<-h.waiting
			var queued []*peer
			for range 20 {
				queued = append(queued, l.dial(t))
				queued[len(queued)-1].send(getX)
			}
			ctx, cancel := context.WithTimeout(t.Context(), soon)
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- l.Shutdown(ctx) }()
			for i, p := range queued {
				if res, body := p.answer(); body != "ok" || !res.Close {
					t.Errorf("request %d: %q, Connection: close is %v", i, body, res.Close)
				}
			}
			if err := <-done; err != nil {
				t.Errorf("Shutdown = %v", err)
			}
			if _, err := net.Dial("tcp", l.address); err == nil {
				t.Error("the port is still open")
			}
		})
	}
}
