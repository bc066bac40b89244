package forward_test

import (
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/coder/websocket"
)

// Row 73: a client without TLS, an upstream with it.
func TestWebSocketToAnUpstreamWithTLS(t *testing.T) {
	t.Parallel()
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header["Sec-Websocket-Key"]; len(got) != 1 || r.Header.Get("X-Forwarded-Proto") != "http" {
			t.Errorf("the upstream sees the keys %q and the scheme %q", got, r.Header.Get("X-Forwarded-Proto"))
		}
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = c.CloseNow() }()
		kind, text, err := c.Read(r.Context())
		if err == nil {
			_ = c.Write(r.Context(), kind, text)
			_, _, _ = c.Read(r.Context()) // the client's farewell
		}
	}))
	up.EnableHTTP2 = true // a WebSocket is not to be asked for over it
	up.StartTLS()
	t.Cleanup(up.Close)
	roots := x509.NewCertPool()
	roots.AddCert(up.Certificate())
	m := serveMany(t, nil, roots, up.URL)
	c, _, err := websocket.Dial(t.Context(), "ws://"+m.plain+"/api/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write(t.Context(), websocket.MessageText, []byte("hi")); err != nil {
		t.Fatal(err)
	}
	if _, text, err := c.Read(t.Context()); string(text) != "hi" || err != nil {
		t.Errorf("%q came back, %v", text, err)
	}
	_ = c.Close(websocket.StatusNormalClosure, "")
	if e := m.log.next(t); e.Status != 101 {
		t.Errorf("logged %d", e.Status)
	}
}

// An instance that is spoken to in HTTP/2 has no tunnels: the request goes as what
// else it is.
func TestWebSocketToAnUpstreamOfHTTP2(t *testing.T) {
	t.Parallel()
	endpoint, _ := serveH2(t, false, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUpgradeRequired)
		_, _ = io.WriteString(w, r.Header.Get("Upgrade")+r.Header.Get("Connection"))
	})
	m := serveMany(t, nil, nil, endpoint)
	_, res, err := websocket.Dial(t.Context(), "ws://"+m.plain+"/api/x", nil)
	if err == nil || res == nil || res.StatusCode != http.StatusUpgradeRequired {
		t.Fatalf("%v, %v; want the upstream's 426", res, err)
	}
	if body, _ := io.ReadAll(res.Body); len(body) != 0 {
		t.Errorf("the upstream sees the wish for an upgrade: %s", body)
	}
}
