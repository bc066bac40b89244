package forward_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"specialroutes.example/gateway/internal/accesslog"
	"specialroutes.example/gateway/internal/balance"
	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/filter"
	"specialroutes.example/gateway/internal/forward"
	"specialroutes.example/gateway/internal/registry/static"
	"specialroutes.example/gateway/internal/table"
	"specialroutes.example/services/routing"
)

// protocols are those that a test's server or client speaks.
func protocols(http1, h2, h2c bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(http1)
	p.SetHTTP2(h2)
	p.SetUnencryptedHTTP2(h2c)
	return p
}

// soon bounds a wait for what should happen at once.
const soon = 10 * time.Second

// logged is what a gateway has said of its requests.
type logged struct {
	mu      sync.Mutex
	entries []accesslog.Entry
	came    chan struct{}
}

func (l *logged) Observe(e *accesslog.Entry) {
	l.mu.Lock()
	l.entries = append(l.entries, *e)
	l.mu.Unlock()
	l.came <- struct{}{}
}

// next waits for the entry of one more request and returns the latest.
func (l *logged) next(t *testing.T) accesslog.Entry {
	t.Helper()
	select {
	case <-l.came:
	case <-time.After(soon):
		t.Fatal("no entry in the log")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[len(l.entries)-1]
}

// many is a gateway of many protocols, with TLS and without.
type many struct {
	plain, secured string // addresses
	servers        []*forward.Server
	log            *logged
	roots          *x509.CertPool
}

// serveMany routes /api to a service that lives at these endpoints: the first is
// the default variant's, the second that of the alternate, which the record draws
// to if weight says so.
func serveMany(t *testing.T, change func(*config.Timeouts), roots *x509.CertPool, endpoints ...string) *many {
	t.Helper()
	c := config.Default()
	if change != nil {
		change(&c.Timeouts)
	}
	c.Routes = []config.Route{{Prefix: "/api", Service: "svc", Timeouts: c.Timeouts}}
	m := &many{log: &logged{came: make(chan struct{}, 1<<16)}}
	g := forward.New(forward.Options{
		Chain: chainTo(t, &c, endpoints), Limits: c.Limits, Upstream: c.Upstream, Observer: m.log,
		Log: slog.New(slog.DiscardHandler), RootCAs: func() *x509.CertPool { return roots },
	})
	t.Cleanup(g.Close)
	m.plain = m.serve(t, g, &c, nil)
	certified := httptest.NewUnstartedServer(nil) // for its certificate
	certified.StartTLS()
	certified.Close()
	m.secured = m.serve(t, g, &c, &tls.Config{Certificates: certified.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}})
	m.roots = x509.NewCertPool()
	m.roots.AddCert(certified.Certificate())
	return m
}

// serve serves a gateway as the process does, with TLS if there is a configuration.
func (m *many) serve(t *testing.T, g *forward.Gateway, c *config.Config, secure *tls.Config) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	s := forward.NewServer(g, c.Timeouts, c.Limits, slog.New(slog.DiscardHandler))
	s.Observer, s.NewID, s.Loop = g.Observer(), func() string { return "made" }, g
	m.servers = append(m.servers, s)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() {
		_ = s.Close()
		<-done
	})
	return address
}

func chainTo(t *testing.T, c *config.Config, endpoints []string) *filter.Chain {
	t.Helper()
	tab, err := table.New(c.Routes)
	if err != nil {
		t.Fatal(err)
	}
	record := &routing.Record{Service: "svc", Active: new(true), Default: new("v0")}
	for i, e := range endpoints {
		record.Variants = append(record.Variants, routing.Variant{Name: fmt.Sprintf("v%d", i), Weight: new(int64(1)), Endpoint: &e})
	}
	compiled, err := routing.Compile(record, nil)
	if err != nil {
		t.Fatal(err)
	}
	var ids atomic.Int64
	return filter.Standard(filter.Settings{
		Table:       tab,
		Records:     func() filter.Records { return oneRecord{compiled} },
		Instances:   static.New(nil).Load,
		Balancer:    balance.New(balance.Options{Now: time.Now}),
		Draw:        func(sum int64) int64 { return sum }, // the last variant
		NewID:       func() string { return fmt.Sprintf("made-%d", ids.Add(1)) },
		Limits:      c.Limits,
		ExposeRoute: true,
	})
}

type oneRecord struct{ record *routing.Route }

func (r oneRecord) Route(string) *routing.Route { return r.record }
func (oneRecord) RoutingHeaders() []string      { return nil }

// clientOf returns a client that speaks HTTP/2 only, and the base of its URLs.
func (m *many) clientOf(t *testing.T, secure bool) (*http.Client, string) {
	t.Helper()
	tr := &http.Transport{Protocols: protocols(false, secure, !secure), TLSClientConfig: &tls.Config{RootCAs: m.roots}, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	if secure {
		return &http.Client{Transport: tr}, "https://" + m.secured
	}
	return &http.Client{Transport: tr}, "http://" + m.plain
}

// serveH2 serves h over HTTP/2, with TLS or without, and returns the endpoint, and
// for TLS what its certificate is checked against.
func serveH2(t *testing.T, secure bool, h http.HandlerFunc) (string, *x509.CertPool) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	t.Cleanup(s.Close)
	if secure {
		s.EnableHTTP2 = true
		s.StartTLS()
		roots := x509.NewCertPool()
		roots.AddCert(s.Certificate())
		return "h2://" + s.Listener.Addr().String(), roots
	}
	s.Config.Protocols = protocols(false, false, true)
	s.Start()
	return "h2c://" + s.Listener.Addr().String(), nil
}

// h2Peer is an upstream's connection of bare frames.
type h2Peer struct {
	*http2.Framer
	conn    net.Conn
	encoder *hpack.Encoder
	block   *headerBlock
}

type headerBlock struct{ b []byte }

func (h *headerBlock) Write(p []byte) (int, error) { h.b = append(h.b, p...); return len(p), nil }

// serveFrames serves each connection with serve, which is told the connection's
// number from 1 on. The preface has been read.
func serveFrames(t *testing.T, serve func(n int, p *h2Peer)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	done.Go(func() {
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			done.Go(func() {
				defer c.Close()
				if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
					return
				}
				p := &h2Peer{Framer: http2.NewFramer(c, c), conn: c, block: new(headerBlock)}
				p.encoder = hpack.NewEncoder(p.block)
				_ = p.WriteSettings()
				serve(n, p)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		done.Wait()
	})
	return "h2c://" + l.Addr().String()
}

// request reads on to the next head of a request and returns its stream; 0 at the
// end of the connection.
func (p *h2Peer) request() uint32 {
	for {
		f, err := p.ReadFrame()
		if err != nil {
			return 0
		}
		if h, ok := f.(*http2.HeadersFrame); ok {
			return h.StreamID
		}
	}
}

// head sends fields, names and values in turn.
func (p *h2Peer) head(stream uint32, end bool, fields ...string) {
	p.block.b = nil
	for i := 0; i < len(fields); i += 2 {
		_ = p.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: p.block.b, EndHeaders: true, EndStream: end})
}

// rawClient is a client's connection of HTTP/1 that sends what it is told.
type rawClient struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func dialRaw(t *testing.T, address string) *rawClient {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(soon))
	return &rawClient{c, t, bufio.NewReader(c)}
}

func (c *rawClient) send(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		c.t.Fatal(err)
	}
}

func (c *rawClient) read(method string) (*http.Response, string) {
	c.t.Helper()
	res, err := http.ReadResponse(c.r, &http.Request{Method: method})
	if err != nil {
		c.t.Fatalf("no answer: %v", err)
	}
	body, _ := io.ReadAll(res.Body)
	return res, string(body)
}
