//go:build linux

package forward

import (
	"bufio"
	"net"
)

// client is one client's connection as the loop has it. It belongs to the
// connection's goroutine.
type client struct {
	conn  net.Conn     // *net.TCPConn or *tls.Conn
	tcp   *net.TCPConn // the socket under it
	plain bool         // conn is tcp: bytes may be moved by the kernel

	// in holds what came behind the request. The engine never takes from it; it
	// waits on it to learn that the client has left.
	in *bufio.Reader

	// out is what heads of answers are built in. It is empty between requests.
	out []byte

	// lastRequest says that the connection ends with this answer.
	lastRequest bool
}

// reply is what an answer came to.
type reply struct {
	status   int   // that was sent; 0: none
	bytes    int64 // of the body that were sent
	begun    bool  // a byte of the answer has left
	complete bool  // all of it has
	keep     bool  // the client's connection may take another request
}
