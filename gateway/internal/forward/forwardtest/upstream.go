package forwardtest

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// upstream is an HTTP server that counts its requests.
type upstream struct {
	*httptest.Server
	calls atomic.Int64
}

func (u *upstream) address() string { return u.Listener.Addr().String() }

// newUpstream serves h.
func newUpstream(t *testing.T, h http.HandlerFunc) *upstream {
	t.Helper()
	u := new(upstream)
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.calls.Add(1)
		h(w, r)
	}))
	t.Cleanup(u.Close)
	return u
}

// ok answers every request with a text.
func ok(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// raw is an upstream of bare bytes.
type raw struct {
	net.Listener
	calls    atomic.Int64 // requests whose head was read
	accepted atomic.Int64 // connections

	mu    sync.Mutex
	conns []net.Conn
	done  sync.WaitGroup
}

// newRaw serves each connection with serve, which gets the connection with what
// was read behind a head put back. The connection is closed when it returns.
func newRaw(t *testing.T, serve func(u *raw, c net.Conn, r *bufio.Reader)) *raw {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &raw{Listener: l}
	u.done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			u.accepted.Add(1)
			u.mu.Lock()
			u.conns = append(u.conns, c)
			u.mu.Unlock()
			u.done.Go(func() {
				defer c.Close()
				serve(u, c, bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(u.close)
	return u
}

// close ends the listener and all connections, and waits for what served them.
func (u *raw) close() {
	_ = u.Listener.Close()
	u.mu.Lock()
	for _, c := range u.conns {
		_ = c.Close()
	}
	u.mu.Unlock()
	u.done.Wait()
}

func (u *raw) address() string { return u.Addr().String() }

// readHead reads one head as it is, its blank line included; "" at the end.
func (u *raw) readHead(r *bufio.Reader) string {
	var head strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return ""
		}
		head.WriteString(line)
		if line == "\r\n" {
			u.calls.Add(1)
			return head.String()
		}
	}
}

// answering answers each head on a connection with the same bytes.
func answering(t *testing.T, answer string) *raw {
	t.Helper()
	return newRaw(t, func(u *raw, c net.Conn, r *bufio.Reader) {
		for u.readHead(r) != "" {
			if _, err := io.WriteString(c, answer); err != nil {
				return
			}
		}
	})
}

// recording answers each request that has no body with 200, and hands its head
// over.
func recording(t *testing.T) (*raw, <-chan string) {
	t.Helper()
	heads := make(chan string, 64)
	return newRaw(t, func(u *raw, c net.Conn, r *bufio.Reader) {
		for head := u.readHead(r); head != ""; head = u.readHead(r) {
			heads <- head
			if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); err != nil {
				return
			}
		}
	}), heads
}

// closedPort returns an address at which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// fieldLines returns the values of a field in a raw head.
func fieldLines(head, name string) []string {
	var values []string
	for line := range strings.SplitSeq(head, "\r\n") {
		if n, v, ok := strings.Cut(line, ":"); ok && strings.EqualFold(n, name) {
			values = append(values, strings.TrimSpace(v))
		}
	}
	return values
}
