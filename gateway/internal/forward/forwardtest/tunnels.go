package forwardtest

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/config"
)

func (s *suite) testTunnels(t *testing.T) {
	t.Run("carry bytes both ways", s.testTunnel)
	t.Run("end one half at a time", s.testHalfClose)
	t.Run("are made for WebSockets only", s.testOtherUpgrades)
	t.Run("need a 101 that fits", s.testUnasked)
	t.Run("end when they are idle", s.testIdleTunnel)
}

const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade, X-N\r\nUpgrade: websocket\r\nX-N: leak\r\n" +
	"Keep-Alive: 5\r\nX-Route-Variant: leak\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"

// websocket asks for a WebSocket.
func websocket(lines ...string) string {
	return head("GET", "/ws", append(lines, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13")...)
}

// tunnelling switches protocols and hands the connection to then.
func tunnelling(t *testing.T, heads chan<- string, then func(c net.Conn, r *bufio.Reader)) *raw {
	t.Helper()
	return newRaw(t, func(u *raw, c net.Conn, r *bufio.Reader) {
		head := u.readHead(r)
		heads <- head
		_, _ = io.WriteString(c, switching)
		then(c, r)
	})
}

// Rows 27, 69, 72 and 73: tokens in any case and list, what came with the request
// is not lost, and only the upgrade itself passes of the hop-by-hop fields.
func (s *suite) testTunnel(t *testing.T) {
	heads := make(chan string, 8)
	up := tunnelling(t, heads, func(c net.Conn, r *bufio.Reader) { _, _ = io.Copy(c, r) })
	g := s.gateway(t, setup{instances: []string{up.address()}})
	for _, lines := range [][]string{
		{"Connection: Upgrade, x-internal-auth", "Upgrade: websocket", "x-internal-auth: 1"},
		{"Connection: keep-alive, UPGRADE", "Upgrade: WebSocket"},
		{"Connection: keep-alive", "Connection: upgrade", "Upgrade: foo, websocket"},
	} {
		c := g.dial(t)
		c.send(websocket(lines...) + "EARLY")
		res, err := http.ReadResponse(c.r, nil)
		if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("%q: no tunnel: %v %v", lines, res, err)
		}
		for _, name := range []string{"X-N", "Keep-Alive"} {
			if got := res.Header.Values(name); got != nil {
				t.Errorf("101 has %s: %q", name, got)
			}
		}
		if got := res.Header.Get("X-Route-Variant"); got != "default" || len(res.Header.Values("Tmx-Correlation-Id")) != 1 {
			t.Errorf("101 did not pass the post filters: %v", res.Header)
		}
		c.send("LATER")
		b := make([]byte, 10)
		if _, err := io.ReadFull(c.r, b); err != nil || string(b) != "EARLYLATER" {
			t.Errorf("echo = %q, %v; want EARLYLATER", b, err)
		}
		_ = c.Close()
		got := <-heads
		if up, conn := fieldLines(got, "Upgrade"), fieldLines(got, "Connection"); len(up) != 1 || up[0] != "websocket" || len(conn) != 1 || conn[0] != "Upgrade" {
			t.Errorf("upstream sees Connection %q, Upgrade %q", conn, up)
		}
		if fieldLines(got, "x-internal-auth") != nil || len(fieldLines(got, "Sec-WebSocket-Key")) != 1 {
			t.Errorf("upstream sees\n%s", got)
		}
	}
	for _, e := range g.entries.wait(t, 3) {
		if e.Status != 101 || e.BytesOut != 10 {
			t.Errorf("logged %d with %d bytes out, want 101 with 10", e.Status, e.BytesOut)
		}
	}
}

// Row 67.
func (s *suite) testHalfClose(t *testing.T) {
	heads := make(chan string, 1)
	up := tunnelling(t, heads, func(c net.Conn, r *bufio.Reader) {
		_, _ = io.Copy(io.Discard, r)
		_, _ = io.WriteString(c, "LATE")
	})
	g := s.gateway(t, setup{instances: []string{up.address()}})
	c := g.dial(t)
	c.send(websocket("Connection: Upgrade", "Upgrade: websocket"))
	if a, err := http.ReadResponse(c.r, nil); err != nil || a.StatusCode != 101 {
		t.Fatalf("no tunnel: %v", err)
	}
	_ = c.Conn.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(c.r); string(got) != "LATE" {
		t.Errorf("after half a close: %q, %v; want LATE", got, err)
	}
}

// Rows 18, 70 and 72: any other upgrade is left out, and the request goes as what
// else it is.
func (s *suite) testOtherUpgrades(t *testing.T) {
	up := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Header.Get("Upgrade")+r.Header.Get("Connection")+r.Header.Get("Http2-Settings")+string(b))
	})
	g := s.gateway(t, setup{instances: []string{up.address()}})
	g.get(t, "/x", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA").is(t, 200, "")
	g.get(t, "/x", "Connection: Upgrade", "Upgrade: web\u017focket").is(t, 200, "")
	g.get(t, "/x", "Connection: close", "Upgrade: websocket").is(t, 200, "")
	g.request(t, head("POST", "/x", "Connection: Upgrade", "Upgrade: websocket", "Content-Length: 2")+"hi").is(t, 200, "hi")
}

// Row 71.
func (s *suite) testUnasked(t *testing.T) {
	for _, tt := range []struct{ request, answer string }{
		{head("GET", "/x"), switching},
		{head("GET", "/x"), "HTTP/1.1 101 Switching Protocols\r\n\r\n"},
		{websocket("Connection: Upgrade", "Upgrade: websocket"), strings.ReplaceAll(switching, "websocket", "foo")},
		{websocket("Connection: Upgrade", "Upgrade: websocket"), "HTTP/1.1 101 Switching Protocols\r\n\r\n"},
	} {
		closed := make(chan struct{})
		up := newRaw(t, func(u *raw, c net.Conn, r *bufio.Reader) {
			if u.readHead(r) == "" {
				return
			}
			_, _ = io.WriteString(c, tt.answer)
			_, _ = io.Copy(io.Discard, r)
			close(closed)
		})
		g := s.gateway(t, setup{instances: []string{up.address()}})
		g.request(t, tt.request).refused(t, 502, "bad_answer")
		select {
		case <-closed:
		case <-time.After(soon):
			t.Errorf("the upstream connection stays open after %q", tt.answer)
		}
	}
}

func (s *suite) testIdleTunnel(t *testing.T) {
	heads := make(chan string, 1)
	up := tunnelling(t, heads, func(c net.Conn, r *bufio.Reader) { _, _ = io.Copy(c, r) })
	g := s.gateway(t, setup{instances: []string{up.address()}, config: limits(func(l *config.Timeouts) { l.Idle, l.Tunnel = brief/4, 4*brief })})
	c := g.dial(t)
	c.send(websocket("Connection: Upgrade", "Upgrade: websocket"))
	if a, err := http.ReadResponse(c.r, nil); err != nil || a.StatusCode != 101 {
		t.Fatalf("no tunnel: %v", err)
	}
	began := time.Now()
	for range 5 { // not idle
		time.Sleep(brief) // the pace of this client is what is tested
		c.send("x")
		if b, err := c.r.ReadByte(); err != nil || b != 'x' {
			t.Fatalf("the tunnel ended after %v: %v", time.Since(began), err)
		}
	}
	if !c.ended() {
		t.Error("the tunnel goes on")
	}
}
