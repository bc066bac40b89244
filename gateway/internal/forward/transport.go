package forward

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/services/routing"
)

// continueWait is how long the body of a request with Expect: 100-continue waits
// for the upstream's word.
const continueWait = time.Second

// errRefusedAddress says that a name led to an address that is not dialled.
var errRefusedAddress = errors.New("link-local and metadata addresses are refused")

// newTransport returns the pool of upstream connections. It adds nothing to what
// it is given, follows no proxy setting, and has no time limits of its own but
// those of the pool: a request's are kept by its watch.
func newTransport(o config.Upstream, d *dialer) *http.Transport {
	return &http.Transport{
		DialContext:            d.plain,
		DialTLSContext:         d.secure,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    o.MaxIdlePerTarget,
		IdleConnTimeout:        o.IdleTimeout,
		ExpectContinueTimeout:  continueWait,
		MaxResponseHeaderBytes: answerHeadMost,
	}
}

// connectLimit is the key of a request's connect limit in its context.
type connectLimit struct{}

// dialer connects to upstreams.
type dialer struct {
	net.Dialer
	trust   *trust
	buffers *bufferPool // of connections for the transport
}

func newDialer(o config.Upstream, t *trust, buffers *bufferPool) *dialer {
	d := &dialer{trust: t, buffers: buffers}
	if !o.AllowLinkLocal {
		d.Control = refuseLinkLocal
	}
	return d
}

// refuseLinkLocal is asked with the address that a name was resolved to, so no
// name can lead around it.
func refuseLinkLocal(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if routing.RefusedAddress(ap.Addr()) {
		return errRefusedAddress
	}
	return nil
}

// limited bounds a connect by the limit of the request that needs it.
func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if limit, ok := ctx.Value(connectLimit{}).(time.Duration); ok && limit > 0 {
		return context.WithTimeout(ctx, limit)
	}
	return context.WithCancel(ctx)
}

// plain connects for HTTP/1.
func (d *dialer) plain(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d.bare(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &upstreamConn{Conn: c, buffers: d.buffers}, nil
}

// secure connects with TLS, for HTTP/1. The wrapper is around it, so it sees plain
// text.
func (d *dialer) secure(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d.tls(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &upstreamConn{Conn: c, buffers: d.buffers}, nil
}

// tls connects with TLS and asks for no protocol in particular.
func (d *dialer) tls(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d.handshake(ctx, network, address, "")
	if err != nil {
		return nil, err
	}
	return c, nil
}

// secureH2 connects with TLS, for HTTP/2.
func (d *dialer) secureH2(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d.handshake(ctx, network, address, "h2")
	if err != nil {
		return nil, err
	}
	return c, nil
}

// bare connects without TLS.
func (d *dialer) bare(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, &connectError{err}
	}
	return c, nil
}

// handshake connects with TLS and asks for a protocol, "" for none in particular.
func (d *dialer) handshake(ctx context.Context, network, address, protocol string) (*tls.Conn, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, &connectError{err}
	}
	secured, err := d.trust.secure(ctx, c, address, protocol)
	if err != nil {
		return nil, &connectError{err}
	}
	return secured, nil
}
