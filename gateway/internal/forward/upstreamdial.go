//go:build linux

package forward

import (
	"context"
	"crypto/tls"
	"net"
	"time"
)

// dial makes a new connection to the pool's target, TLS included, within limit.
// Its error says that nothing was sent.
func (p *linkPool) dial(limit time.Duration) (*link, error) {
	ctx, cancel := context.WithTimeout(p.links.ctx, limit)
	defer cancel()
	c, err := p.links.dialer.DialContext(ctx, "tcp", p.origin.address)
	if err != nil {
		return nil, &connectError{err}
	}
	if p.tls != nil {
		if c, err = secure(ctx, c, p.tls); err != nil {
			return nil, &connectError{err}
		}
	}
	l, err := newLink(c, p)
	if err != nil {
		_ = c.Close()
		return nil, &connectError{err}
	}
	return l, nil
}

// secure makes a connection one with TLS, or closes it.
func secure(ctx context.Context, c net.Conn, conf *tls.Config) (net.Conn, error) {
	secured := tls.Client(c, conf)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return secured, nil
}
