package forward

import (
	"errors"
	"io"
	"net"
	"runtime"
	"testing"
)

// Bytes that come before a request would be taken for its answer.
func TestUpstreamConnThatSpeaksUnaskedTakesNoRequest(t *testing.T) {
	t.Parallel()
	for name, speak := range map[string]string{"bytes": "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "an end": ""} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		here, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		there, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(there, speak)
		if closed := there.(*net.TCPConn).CloseWrite(); err != nil || closed != nil {
			t.Fatal(err, closed)
		}
		for connSilent(here) { // what was sent is on its way
			runtime.Gosched()
		}
		c := &upstreamConn{Conn: here}
		c.expect(false, true, "")
		if n, err := io.WriteString(c, "GET / HTTP/1.1\r\n\r\n"); n != 0 || !errors.Is(err, errStray) {
			t.Errorf("%s: Write = %d, %v; want errStray", name, n, err)
		}
		_ = there.Close()
		_ = l.Close()

		read, peer := net.Pipe()
		go func() { _, _ = io.WriteString(peer, "HTTP/1.1 200 OK\r\n\r\n") }()
		c = &upstreamConn{Conn: read}
		c.expect(false, true, "")
		if n, err := c.Read(make([]byte, 64)); n != 0 || !errors.Is(err, errStray) {
			t.Errorf("%s: Read before the request = %d, %v; want errStray", name, n, err)
		}
		_ = peer.Close()
	}
}
