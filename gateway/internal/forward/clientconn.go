package forward

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"specialroutes.example/gateway/internal/accesslog"
	"specialroutes.example/services/problem"
)

// listener accepts connections that answer in our words. One with TLS is left as
// it is: net/http must see it to know.
type listener struct {
	net.Listener
	server *Server
}

// Accept waits for the next connection.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok && err == nil {
		return &clientConn{TCPConn: tcp, server: l.server}, nil
	}
	return c, err
}

// clientConn is a client's connection. Where net/http refuses a request by
// itself, with a line of text, it says the same as a problem document.
type clientConn struct {
	*net.TCPConn
	server  *Server
	handled atomic.Bool // the handler has the request; what is written is its answer
}

// connKey is the key of the connection in a request's context.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// noteState is told when a request is over, and when the head of the first one has
// been read, well or not.
func noteState(c net.Conn, state http.ConnState) {
	if c, ok := c.(*clientConn); ok && (state == http.StateActive || state == http.StateIdle) {
		c.handled.Store(false)
	}
}

// marked tells the connection that its request has reached the handler.
func marked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*clientConn); ok {
			c.handled.Store(true)
		}
		next.ServeHTTP(w, r)
	})
}

// plainError is how net/http's own refusals go on behind their first line.
var plainError = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

// Write writes p, or what we say instead.
func (c *clientConn) Write(p []byte) (int, error) {
	if c.handled.Load() || !bytes.Contains(p, plainError) {
		return c.TCPConn.Write(p)
	}
	refusal := c.refusal(statusOf(p))
	if _, err := c.TCPConn.Write(refusal); err != nil {
		return 0, err
	}
	return len(p), nil
}

// unreadable are net/http's refusals by status.
var unreadable = map[int]problem.Problem{
	http.StatusRequestHeaderFieldsTooLarge: {Code: "header_too_large", Detail: "the head of the request is too long"},
	http.StatusNotImplemented:              {Code: "bad_request", Detail: "the request has a transfer coding that is not understood"},
	http.StatusHTTPVersionNotSupported:     {Code: "bad_request", Detail: "the request has a version that is not understood"},
}

// refusal observes a refused request and returns the answer to it.
func (c *clientConn) refusal(status int) []byte {
	p, ok := unreadable[status]
	if !ok {
		p = problem.Problem{Code: "bad_request", Detail: "the head of the request is not as HTTP asks for"}
	}
	p.Status = status
	if c.server.NewID != nil {
		p.CorrelationID = c.server.NewID()
	}
	body, err := json.Marshal(p)
	if err != nil { // it holds nothing that JSON cannot express
		panic(err)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nCache-Control: no-store\r\nConnection: close\r\n",
		status, http.StatusText(status), problem.ContentType, len(body))
	if p.CorrelationID != "" {
		fmt.Fprintf(&out, "tmx-correlation-id: %s\r\n", p.CorrelationID)
	}
	out.WriteString("\r\n")
	out.Write(body)
	c.observe(p)
	return out.Bytes()
}

func (c *clientConn) observe(p problem.Problem) {
	if c.server.Observer == nil {
		return
	}
	e := accesslog.Entry{Time: time.Now(), CorrelationID: p.CorrelationID, CorrelationReplaced: true, Status: p.Status, Code: p.Code}
	if ap, err := netip.ParseAddrPort(c.RemoteAddr().String()); err == nil {
		e.Client = ap.Addr().Unmap().WithZone("")
	}
	c.server.Observer.Observe(&e)
}
