package bench

import (
	"errors"
	"syscall"
	"time"
)

// epollWait waits for events, for no longer than d. The wait is select's, on the
// epoll descriptor itself: the unit of epoll_wait, the millisecond, is too coarse for
// a constant rate.
func epollWait(epoll int, events []syscall.EpollEvent, d time.Duration) (int, error) {
	if d > 0 {
		var set syscall.FdSet
		const bits = 64 // of one of set's words
		if epoll >= bits*len(set.Bits) {
			return 0, syscall.EBADF
		}
		set.Bits[epoll/bits] |= 1 << (epoll % bits)
		limit := syscall.NsecToTimeval(d.Nanoseconds())
		if _, err := syscall.Select(epoll+1, &set, nil, nil, &limit); err != nil && !errors.Is(err, syscall.EINTR) {
			return 0, err
		}
	}
	n, err := syscall.EpollWait(epoll, events, 0)
	if errors.Is(err, syscall.EINTR) {
		return 0, nil
	}
	return n, err
}
