package storm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// recordWrites is how many times the record changes while WebSockets are open.
const recordWrites = 1000

// webSockets open, say something, and stay idle while the record that they were
// routed by is written over and over. Then each must still work.
func webSockets(ctx context.Context, g *gateway, n int, hold time.Duration) error {
	conns := make([]*conn, n)
	defer func() {
		for _, c := range conns {
			if c != nil {
				_ = c.Close()
			}
		}
	}()
	begun := time.Now()
	// Not all at once: a listener's queue has an end.
	if err := inParts(n, func(i int) (err error) {
		conns[i], err = g.webSocket(ctx, i)
		return err
	}); err != nil {
		return fmt.Errorf("to open WebSockets: %w", err)
	}
	if err := writeRecords(ctx); err != nil {
		return err
	}
	if err := paced(ctx, hold-time.Since(begun), func() error { return nil }); err != nil {
		return err
	}
	if err := inParts(n, func(i int) error { return conns[i].echo(i) }); err != nil {
		return fmt.Errorf("after %d writes of the record: %w", recordWrites, err)
	}
	return inParts(n, func(i int) error { return conns[i].farewell() })
}

// inParts is each, with few at the same time.
func inParts(n int, f func(i int) error) error {
	const parts = 20
	return each(parts, func(part int) error {
		for i := part; i < n; i += parts {
			if err := f(i); err != nil {
				return fmt.Errorf("number %d: %w", i, err)
			}
		}
		return nil
	})
}

// webSocket opens one and uses it once.
func (g *gateway) webSocket(ctx context.Context, i int) (*conn, error) {
	c, err := g.dial(ctx)
	if err != nil {
		return nil, err
	}
	const key = "dGhlIHNhbXBsZSBub25jZQ=="
	err = c.head("GET", "/websocket", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: "+key)
	if err == nil {
		var res *http.Response
		res, err = c.answer("GET", http.StatusSwitchingProtocols)
		if err == nil && res.Header.Get("Sec-WebSocket-Accept") != accept(key) {
			err = errors.New("the answer is not the backend's")
		}
	}
	if err == nil {
		err = c.echo(i)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// echo sends a text and wants it back.
func (c *conn) echo(i int) error {
	text := fmt.Sprintf("hello from %d", i)
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	if _, err := c.Write(frame(text, []byte{1, 2, 3, byte(i)})); err != nil {
		return err
	}
	got, err := readFrame(c.r)
	if err == nil && got != text {
		err = fmt.Errorf("%q came back, want %q", got, text)
	}
	return err
}

// farewell ends our side, and wants the backend's end through the tunnel.
func (c *conn) farewell() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.New("the connection has no half close")
	}
	if err := half.CloseWrite(); err != nil {
		return err
	}
	if _, err := c.r.ReadByte(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the tunnel ends with %w, want the end of the stream", err)
	}
	return nil
}

// recordLock keeps two storms from waiting for each other's writes.
var recordLock sync.Mutex

// writeRecords changes the record often and returns when the last change is in force.
// The backend is the instance of one variant and the endpoint of the other.
func writeRecords(ctx context.Context) error {
	recordLock.Lock()
	defer recordLock.Unlock()
	url := shared.estate.SpecialRoutesURL() + "/v1/route/abtesting/organizationservice"
	for i := range recordWrites {
		record := fmt.Sprintf(`{"serviceName":"organizationservice","active":"Y","endpoint":"http://%s","weight":%d}`, shared.backend.address, i%10)
		if i == recordWrites-1 {
			url += "?wait=applied"
		}
		if _, err := ask(ctx, http.MethodPut, url, record); err != nil {
			return fmt.Errorf("write %d of the record: %w", i, err)
		}
	}
	return nil
}
