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
	c, err := p.links.dialer.DialContext(ctx, "tcp", p.origin.address)
	if err != nil {
		return nil, &connectError{err}
	}
	if p.origin.scheme == "https" {
		if c, err = p.links.trust.secure(ctx, c, p.origin.address, ""); err != nil {
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
