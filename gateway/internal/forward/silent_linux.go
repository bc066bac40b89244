package forward

import "net"

// connSilent reports whether nothing has come on a connection that is to be used
// again: no bytes, no end, no error. Inside TLS bytes of the protocol may come at any
// time; what they hold is judged when it is read.
func connSilent(c net.Conn) bool {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return true
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	quiet := false
	err = raw.Control(func(fd uintptr) { quiet = silent(fd) })
	return err == nil && quiet
}
