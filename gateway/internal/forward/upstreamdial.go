//go:build linux

package forward

import (
	"context"
	"time"
)

// dial makes a new connection to the pool's target, TLS included, within limit.
// Its error says that nothing was sent.
func (p *linkPool) dial(limit time.Duration) (*link, error) {
	ctx, cancel := context.WithTimeout(p.links.ctx, limit)
	defer cancel()
	connect := p.links.dialer.bare
	if p.origin.scheme == "https" {
		connect = p.links.dialer.tls
	}
	c, err := connect(ctx, "tcp", p.origin.address)
	if err != nil {
		return nil, err
	}
	l, err := newLink(c, p)
	if err != nil {
		_ = c.Close()
		return nil, &connectError{err}
	}
	return l, nil
}
