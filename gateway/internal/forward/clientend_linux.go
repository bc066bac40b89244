package forward

import "syscall"

// seesEnds says that the end of a socket is seen behind bytes that were not read.
const seesEnds = true

// awaitGone waits until the other side of a socket has closed. It fails at the read
// deadline.
func awaitGone(socket syscall.RawConn) error {
	polled := make([]unixPoll, 1)
	return socket.Read(func(fd uintptr) bool {
		pollNow(polled, fd)
		return gone(polled[0].Revents)
	})
}
