package postgres

import (
	"context"
	"net"
	"time"
)

// farewell is how long a connection that failed may take to end in good order.
const farewell = time.Second

// dial makes the driver's connections.
func dial(timeout time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: timeout}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return briefConn{conn}, nil
	}
}

// briefConn is a connection that does not linger. After a query that got no answer
// the driver waits 15 s for the server's farewell, and the pool keeps the
// connection's place for as long (pgx v5.12, PgConn.asyncClose); when the network
// has fallen silent, all places would be taken by the dead. That wait is the only
// deadline in the future which the driver sets.
type briefConn struct{ net.Conn }

// SetDeadline sets the deadline, or a nearer one.
func (c briefConn) SetDeadline(t time.Time) error {
	if near := time.Now().Add(farewell); t.After(near) {
		t = near
	}
	return c.Conn.SetDeadline(t)
}
