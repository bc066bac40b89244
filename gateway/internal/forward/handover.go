package forward

import (
	"net"
	"sync"
)

// handover is the listener of net/http's server: the connections that are not, or no
// longer, the loop's. It is safe for concurrent use.
type handover struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newHandover() *handover {
	return &handover{conns: make(chan net.Conn), done: make(chan struct{})}
}

// push hands c over, and returns false when nobody takes it any more.
func (h *handover) push(c net.Conn) bool {
	select {
	case h.conns <- c:
		return true
	case <-h.done:
		return false
	}
}

// Accept returns the next connection.
func (h *handover) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close ends the handing over.
func (h *handover) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

// Addr is that of no port.
func (h *handover) Addr() net.Addr { return &net.TCPAddr{} }
