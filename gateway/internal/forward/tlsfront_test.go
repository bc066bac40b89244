//go:build linux

package forward_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http/httptest"
	"sync"
	"testing"
)

// tlsFront puts TLS before a port and takes it off again in front of that, so that
// clients of bare bytes reach a port of TLS. It passes ends and resets on.
type tlsFront struct {
	listener net.Listener
	address  string // of the port behind
	config   *tls.Config

	mu    sync.Mutex
	conns []net.Conn
	done  sync.WaitGroup
}

// newTLSFront returns the address that leads to a port of TLS.
func newTLSFront(t *testing.T, address string, roots *x509.CertPool) string {
	t.Helper()
	f := &tlsFront{listener: listen(t), address: address, config: &tls.Config{RootCAs: roots, ServerName: "example.com", NextProtos: []string{"http/1.1"}}}
	f.done.Go(f.accept)
	t.Cleanup(f.close)
	return f.listener.Addr().String()
}

func (f *tlsFront) accept() {
	for {
		c, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.keep(c)
		f.done.Go(func() { f.carry(c.(*net.TCPConn)) })
	}
}

func (f *tlsFront) keep(c net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns = append(f.conns, c)
}

// carry carries bytes both ways until both have ended.
func (f *tlsFront) carry(c *net.TCPConn) {
	defer c.Close()
	secured, err := tls.Dial("tcp", f.address, f.config)
	if err != nil {
		return
	}
	defer secured.Close()
	f.keep(secured)
	var back sync.WaitGroup
	back.Go(func() {
		if _, err := io.Copy(c, secured); err != nil { // a reset, or an end within a record
			_ = c.SetLinger(0)
			_ = c.Close()
		}
		_ = c.CloseWrite()
	})
	client := &readings{Reader: c}
	if _, _ = io.Copy(secured, client); client.err != nil {
		_ = secured.NetConn().(*net.TCPConn).SetLinger(0)
		_ = secured.NetConn().Close()
	}
	_ = secured.CloseWrite()
	_ = secured.NetConn().(*net.TCPConn).CloseWrite()
	back.Wait()
}

// readings keeps the error that reading ended with. One of writing is none of the
// client's, which may have an answer to read yet.
type readings struct {
	io.Reader
	err error
}

func (r *readings) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

func (f *tlsFront) close() {
	_ = f.listener.Close()
	f.mu.Lock()
	for _, c := range f.conns {
		_ = c.Close()
	}
	f.mu.Unlock()
	f.done.Wait()
}

// certificate returns one for example.com, and the roots that it is good for.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s.TLS.Certificates[0], roots
}
