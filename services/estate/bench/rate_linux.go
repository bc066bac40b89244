package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"
)

// Limits of the sender.
const (
	longestAnswer = 64 << 10
	// ownFault is how much the sender may be late, because the system let something
	// else run: what is more moves all that follows, and is not caught up with.
	ownFault = time.Millisecond
)

// errAnswer is an answer that is none.
var errAnswer = errors.New("bench: an answer does not read as it should")

// sender sends requests at a constant rate, over a fixed number of connections, and
// times each from the moment at which it was due: a server that stalls pays for all
// that should have been sent meanwhile. One thread does it all, so that it takes
// little of the core that it shares with the backends.
type sender struct {
	epoll   int
	request []byte
	conns   map[int32]*senderConn
	free    []*senderConn
	waiting []time.Time // due and without a free connection
	times   []time.Duration
}

type senderConn struct {
	fd  int
	due time.Time // of the request whose answer is awaited; zero: none is
	buf []byte
}

// constantLoad sends requests to http://address/path and returns the time that each
// answer took. Of one that did not come it is the time that it was waited for.
func constantLoad(ctx context.Context, address, path string, p pace) (_ []time.Duration, err error) {
	s := &sender{conns: map[int32]*senderConn{}}
	s.request = fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\n\r\n", path, address)
	if s.epoll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("bench: epoll: %w", err)
	}
	defer s.close()
	for range p.connections {
		if err := s.connect(address); err != nil {
			return nil, err
		}
	}
	s.times = make([]time.Duration, 0, p.total())
	err = s.run(ctx, p)
	return s.times, err
}

func (s *sender) close() {
	for _, c := range s.conns {
		_ = syscall.Close(c.fd)
	}
	_ = syscall.Close(s.epoll)
}

func (s *sender) connect(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("bench: socket: %w", err)
	}
	s.conns[int32(fd)] = &senderConn{fd: fd, buf: make([]byte, 0, 4096)}
	if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}); err != nil {
		return fmt.Errorf("bench: connect to %s: %w", address, err)
	}
	if err := errors.Join(syscall.SetNonblock(fd, true),
		syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1),
		syscall.EpollCtl(s.epoll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)}),
	); err != nil {
		return fmt.Errorf("bench: connection to %s: %w", address, err)
	}
	s.free = append(s.free, s.conns[int32(fd)])
	return nil
}

// run sends what is due and reads what comes, until all is answered.
func (s *sender) run(ctx context.Context, p pace) error {
	begin, total := time.Now(), p.total()
	due := func(i int) time.Time { return begin.Add(time.Duration(float64(i) / p.rate * float64(time.Second))) }
	events := make([]syscall.EpollEvent, 256)
	for sent := 0; len(s.times) < total; {
		now := time.Now()
		if late := now.Sub(due(sent)); late > ownFault && len(s.waiting) == 0 && len(s.free) > 0 && sent < total {
			begin = begin.Add(late) // nobody but us was waited for
		}
		for ; sent < total && !due(sent).After(now); sent++ {
			s.waiting = append(s.waiting, due(sent))
		}
		if err := s.send(); err != nil {
			return err
		}
		if now.Sub(begin) > p.lasts+p.patience {
			s.giveUp(now)
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		wait := p.patience
		if sent < total {
			wait = time.Until(due(sent))
		}
		n, err := epollWait(s.epoll, events, wait)
		if err != nil {
			return fmt.Errorf("bench: epoll: %w", err)
		}
		for _, e := range events[:n] {
			if err := s.read(s.conns[e.Fd]); err != nil {
				return err
			}
		}
	}
	return nil
}

// giveUp counts what has not been answered.
func (s *sender) giveUp(now time.Time) {
	for _, c := range s.conns {
		if !c.due.IsZero() {
			s.waiting = append(s.waiting, c.due)
		}
	}
	for _, due := range s.waiting {
		s.times = append(s.times, now.Sub(due))
	}
}

// send gives what is due to the connections that are free.
func (s *sender) send() error {
	for len(s.waiting) > 0 && len(s.free) > 0 {
		c := s.free[len(s.free)-1]
		s.free = s.free[:len(s.free)-1]
		c.due, s.waiting = s.waiting[0], s.waiting[1:]
		if n, err := syscall.Write(c.fd, s.request); err != nil || n != len(s.request) {
			return fmt.Errorf("bench: a request could not be sent: %w", err)
		}
	}
	return nil
}

// read takes what has come; a whole answer makes its connection free.
func (s *sender) read(c *senderConn) error {
	if len(c.buf) == cap(c.buf) {
		c.buf = append(make([]byte, 0, min(longestAnswer, 2*cap(c.buf))), c.buf...)
	}
	n, err := syscall.Read(c.fd, c.buf[len(c.buf):cap(c.buf)])
	if errors.Is(err, syscall.EAGAIN) {
		return nil
	}
	if err != nil || n == 0 {
		return fmt.Errorf("%w: the connection ended: %w", errAnswer, errors.Join(err, net.ErrClosed))
	}
	c.buf = c.buf[:len(c.buf)+n]
	switch whole, err := wholeAnswer(c.buf); {
	case err != nil:
		return err
	case whole:
		s.times = append(s.times, time.Since(c.due))
		c.buf, c.due = c.buf[:0], time.Time{}
		s.free = append(s.free, c)
	}
	return nil
}

// wholeAnswer reports whether an answer 200 of known length has come whole.
func wholeAnswer(b []byte) (bool, error) {
	head, body, found := bytes.Cut(b, []byte("\r\n\r\n"))
	if !found {
		if len(b) >= longestAnswer {
			return false, fmt.Errorf("%w: its head is too long", errAnswer)
		}
		return false, nil
	}
	if !bytes.HasPrefix(head, []byte("HTTP/1.1 200 ")) {
		return false, fmt.Errorf("%w: %.200q", errAnswer, head)
	}
	_, rest, found := bytes.Cut(bytes.ToLower(head), []byte("\r\ncontent-length:"))
	if !found {
		return false, fmt.Errorf("%w: it has no length: %.200q", errAnswer, head)
	}
	text, _, _ := bytes.Cut(rest, []byte("\r"))
	length, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil || length > longestAnswer/2 || len(body) > length {
		return false, fmt.Errorf("%w: a length of %q with %d bytes", errAnswer, text, len(body))
	}
	return len(body) == length, nil
}
