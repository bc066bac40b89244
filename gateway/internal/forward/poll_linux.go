package forward

import (
	"errors"

	"golang.org/x/sys/unix"
)

// unixPoll is what poll(2) is asked about.
type unixPoll = unix.PollFd

// pollNow asks for what has happened to a socket: bytes, an end, an error.
func pollNow(polled []unixPoll, fd uintptr) {
	polled[0] = unixPoll{Fd: int32(fd), Events: unix.POLLIN | unix.POLLRDHUP}
	for {
		if _, err := unix.Poll(polled, 0); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// silent reports whether a socket has neither bytes to read nor an end nor an error. It
// runs before each use of an upstream's connection: a peek that does not wait says the
// same as poll(2), in half of its time.
func silent(fd uintptr) bool {
	var p [1]byte
	for {
		_, _, err := unix.Recvfrom(int(fd), p[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		if !errors.Is(err, unix.EINTR) {
			return errors.Is(err, unix.EAGAIN)
		}
	}
}

// unsent returns how many bytes of what was written to a socket the other side has
// not acknowledged, -1 where that is not known.
func unsent(fd uintptr) int {
	n, err := unix.IoctlGetInt(int(fd), unix.TIOCOUTQ)
	if err != nil {
		return -1
	}
	return n
}

// writeRoom returns how many bytes can be written to a socket without waiting; 0 where
// it is nearly full, and then the socket's becoming writable wakes who waits for it. A
// buffer takes more than the bytes in it, so that half of what looks free is promised.
func writeRoom(fd uintptr) int {
	p := [1]unixPoll{{Fd: int32(fd), Events: unix.POLLOUT}}
	for {
		if _, err := unix.Poll(p[:], 0); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if p[0].Revents == 0 {
		return 0
	}
	size, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF)
	if err != nil {
		return pieceLeast
	}
	return max((size-max(unsent(fd), 0))/2, pieceLeast)
}

// gone reports whether the other side has closed, also where bytes that it sent
// before have not been read: a peek would show those alone.
func gone(events int16) bool {
	return events&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
}

// readable returns how many bytes of a socket can be read without waiting, and
// whether it has come to its end.
func readable(fd uintptr, polled []unixPoll) (n int, ended bool) {
	n, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
	if err != nil || n > 0 {
		return n, err != nil
	}
	if pollNow(polled, fd); polled[0].Revents == 0 {
		return 0, false
	}
	n, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) // what has come since
	return n, err != nil || n == 0
}
