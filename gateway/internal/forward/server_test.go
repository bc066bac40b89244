package forward_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/balance"
	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/filter"
	"specialroutes.example/gateway/internal/forward"
	"specialroutes.example/gateway/internal/registry/static"
	"specialroutes.example/gateway/internal/table"
	"specialroutes.example/services/routing"
)

// records has one record, which sticks by the gateway's cookie.
type records struct{ route *routing.Route }

func (r records) Route(string) *routing.Route { return r.route }
func (records) RoutingHeaders() []string      { return nil }

// newGateway leads /x to an upstream.
func newGateway(t *testing.T, upstream string) *forward.Gateway {
	t.Helper()
	c := config.Default()
	tab, err := table.New([]config.Route{{Prefix: "/x", Service: "x", Timeouts: c.Timeouts}})
	if err != nil {
		t.Fatal(err)
	}
	rt, err := routing.Compile(&routing.Record{Service: "x", Active: new(true), Sticky: &routing.Sticky{By: routing.ByGatewayCookie}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := forward.New(forward.Options{Limits: c.Limits, Upstream: c.Upstream, Chain: filter.Standard(filter.Settings{
		Table:     tab,
		Records:   func() filter.Records { return records{rt} },
		Instances: static.New(map[string][]config.Instance{"x": {{Address: upstream}}}).Load,
		Balancer:  balance.New(balance.Options{Now: time.Now}),
		Draw:      func(int64) int64 { return 1 },
		NewID:     func() string { return "made" },
		NewKey:    filter.RandomKey,
		Limits:    c.Limits, ExposeRoute: true, ClientLabels: c.ClientLabels,
	})})
	t.Cleanup(g.Close)
	return g
}

// serve serves h on l until the test ends.
func serve(t *testing.T, h http.Handler, l net.Listener) *forward.Server {
	t.Helper()
	c := config.Default()
	s := forward.NewServer(h, c.Timeouts, c.Limits, slog.New(slog.DiscardHandler))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() {
		_ = s.Close()
		<-done
	})
	return s
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A client's TLS shows upstream and in the cookie, over HTTP/1.1 and HTTP/2.
func TestTLS(t *testing.T) {
	t.Parallel()
	seen := make(chan http.Header, 1)
	up := httptest.NewTLSServer(nil) // for its certificate alone
	defer up.Close()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header
		w.Header().Set("Trailer", "X-T")
		b, _ := io.ReadAll(r.Body)
		_, _ = w.Write(b)
		w.Header().Set("X-T", "v")
	}))
	defer plain.Close()
	for _, protocol := range []string{"http/1.1", "h2"} {
		l := tls.NewListener(listen(t), &tls.Config{Certificates: up.TLS.Certificates, NextProtos: []string{protocol}})
		serve(t, newGateway(t, plain.Listener.Addr().String()), l)
		client := up.Client()
		transport := client.Transport.(*http.Transport).Clone()
		transport.ForceAttemptHTTP2 = true
		body := bytes.Repeat([]byte("0123456789"), 100_000)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+l.Addr().String()+"/x/%2F", io.NopCloser(bytes.NewReader(body)))
		if err != nil {
			t.Fatal(err)
		}
		res, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || !bytes.Equal(got, body) || res.Trailer.Get("X-T") != "v" {
			t.Errorf("%s: %d bytes, %v, trailer %v", protocol, len(got), err, res.Trailer)
		}
		if want := map[string]int{"http/1.1": 1, "h2": 2}[protocol]; res.ProtoMajor != want {
			t.Errorf("spoke %s", res.Proto)
		}
		if cookie := res.Header.Get("Set-Cookie"); !strings.HasSuffix(cookie, "; Secure") {
			t.Errorf("%s: cookie %q is not secure", protocol, cookie)
		}
		if h := <-seen; h.Get("X-Forwarded-Proto") != "https" || !strings.HasSuffix(h.Get("Forwarded"), ";proto=https") {
			t.Errorf("%s: X-Forwarded-Proto %q, Forwarded %q", protocol, h.Get("X-Forwarded-Proto"), h.Get("Forwarded"))
		}
		transport.CloseIdleConnections()
	}
}

// A wrapper that has the connection closed, as while the process drains, is heard
// whatever the answer is.
func TestConnectionCloseStays(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "ok")
	}))
	defer up.Close()
	g := newGateway(t, up.Listener.Addr().String())
	l := listen(t)
	serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		g.ServeHTTP(w, r)
	}), l)
	for path, status := range map[string]string{"/x": "200", "/nowhere": "404"} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path)
		all, err := io.ReadAll(c) // ends only if the connection is closed
		_ = c.Close()
		if err != nil || !strings.Contains(string(all), "HTTP/1.1 "+status) || strings.Count(string(all), "Connection: close") != 1 {
			t.Errorf("%s: %q, %v", path, all, err)
		}
	}
}

// A tunnel outlives Shutdown, but not its context.
func TestShutdownCutsTunnels(t *testing.T) {
	t.Parallel()
	up := listen(t)
	defer up.Close()
	go func() {
		c, err := up.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		r := bufio.NewReader(c)
		for line := ""; line != "\r\n"; {
			if line, err = r.ReadString('\n'); err != nil {
				return
			}
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.Copy(c, r)
	}()
	l := listen(t)
	s := serve(t, newGateway(t, up.Addr().String()), l)
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("no tunnel: %v %v", res, err)
	}
	_ = res.Body.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "x")
	if b, err := r.ReadByte(); err != nil || b != 'x' {
		t.Fatalf("the tunnel ended with Shutdown: %v", err)
	}
	cancel()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := r.ReadByte(); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("the tunnel goes on after the context: %v", err)
	}
}
