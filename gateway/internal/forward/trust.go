package forward

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

const (
	// distrustInterval is how often the log tells that there is no TLS with an address.
	distrustInterval = time.Minute

	// distrustMost is how many addresses are remembered for that.
	distrustMost = 1000
)

// errNotH2 says that an upstream that is asked for HTTP/2 does not speak it.
var errNotH2 = errors.New("the upstream does not agree to HTTP/2")

// trust makes connections to upstreams ones with TLS. Whoever asked learns only that
// no upstream could be connected to, so the log says why. It is safe for concurrent
// use.
type trust struct {
	roots func() *x509.CertPool // nil, and a nil pool: the system's
	log   *slog.Logger
	now   func() time.Time

	mu   sync.Mutex
	told map[string]time.Time // address → when
}

func newTrust(o Options) *trust {
	t := &trust{roots: o.RootCAs, log: o.Log, now: o.Now, told: make(map[string]time.Time)}
	if t.roots == nil {
		t.roots = func() *x509.CertPool { return nil }
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	if t.now == nil {
		t.now = time.Now
	}
	return t
}

// secure makes a connection one with TLS that speaks a protocol, "" for none in
// particular, or closes it.
func (t *trust) secure(ctx context.Context, c net.Conn, address, protocol string) (*tls.Conn, error) {
	conf := &tls.Config{RootCAs: t.roots(), MinVersion: tls.VersionTLS12}
	conf.ServerName, _, _ = net.SplitHostPort(address)
	if protocol != "" {
		conf.NextProtos = []string{protocol}
	}
	secured := tls.Client(c, conf)
	err := secured.HandshakeContext(ctx)
	if err == nil && protocol == "h2" && secured.ConnectionState().NegotiatedProtocol != protocol {
		err = errNotH2
	}
	if err == nil {
		return secured, nil
	}
	_ = c.Close()
	if !errors.Is(err, context.Canceled) { // who asked has left: that says nothing
		t.tell(address, err)
	}
	return nil, err
}

// tell has the log say it, for each address once in a while.
func (t *trust) tell(address string, err error) {
	t.mu.Lock()
	at := t.now()
	last, before := t.told[address]
	due := !before || at.Sub(last) >= distrustInterval
	if due {
		if len(t.told) >= distrustMost {
			clear(t.told)
		}
		t.told[address] = at
	}
	t.mu.Unlock()
	if due {
		t.log.Warn("there is no TLS with an upstream; calls to it fail", "address", address, "error", err)
	}
}
