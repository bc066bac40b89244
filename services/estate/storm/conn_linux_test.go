package storm_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"
)

// path leads through the gateway to the backend.
const path = "/api/organization"

// smallWindow is a receive buffer that soon tells the sender to wait.
const smallWindow = 16 << 10

// step is how often a slow client does something.
const step = 100 * time.Millisecond

// dial opens a connection that closes when ctx ends.
func (g *gateway) dial(ctx context.Context) (*conn, error) {
	d := net.Dialer{Timeout: 20 * time.Second, Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if controlled := c.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, smallWindow)
		}); controlled != nil {
			return controlled
		}
		return err
	}}
	c, err := d.DialContext(ctx, "tcp", g.address())
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, r: bufio.NewReader(c), stop: context.AfterFunc(ctx, func() { _ = c.Close() })}, nil
}

// conn is a connection of a client to the gateway.
type conn struct {
	net.Conn
	r    *bufio.Reader
	stop func() bool
}

// Close closes the connection.
func (c *conn) Close() error {
	c.stop()
	return c.Conn.Close()
}

// head sends a request's head. A field is a whole line.
func (c *conn) head(method, target string, fields ...string) error {
	text := fmt.Sprintf("%s %s%s HTTP/1.1\r\nHost: storm\r\n", method, path, target)
	for _, f := range fields {
		text += f + "\r\n"
	}
	_, err := io.WriteString(c, text+"\r\n")
	return err
}

// answer reads an answer's head and wants a status. The caller reads the body and
// closes the connection, not the body.
func (c *conn) answer(method string, want int) (*http.Response, error) {
	res, err := http.ReadResponse(c.r, &http.Request{Method: method})
	if err != nil {
		return nil, fmt.Errorf("no answer: %w", err)
	}
	if res.StatusCode != want {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 300))
		return nil, fmt.Errorf("status %s, want %d: %s", res.Status, want, text)
	}
	return res, nil
}

// paced calls f for every step until hold is over or it returns an error.
func paced(ctx context.Context, hold time.Duration, f func() error) error {
	tick := time.NewTicker(step)
	defer tick.Stop()
	over := time.NewTimer(hold)
	defer over.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over.C:
			return nil
		case <-tick.C:
			if err := f(); err != nil {
				return err
			}
		}
	}
}

// slowly returns how many bytes a slow client moves in each step: few, and so few
// that half of the whole is left when hold is over.
func slowly(size int, hold time.Duration) int {
	return max(1, min(2<<10, size/2/int(hold/step)))
}

// leaves tells whether the client of that number goes away in the middle.
func leaves(i int) bool { return i%5 == 4 }
