package forward

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/accesslog"
	"specialroutes.example/gateway/internal/balance"
	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/filter"
	"specialroutes.example/gateway/internal/registry/static"
	"specialroutes.example/gateway/internal/table"
	"specialroutes.example/services/routing"
)

// dying is a connection that is closed, unnoticed, once it has been used.
type dying struct {
	net.Conn
	requests atomic.Int64
}

func (d *dying) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, []byte("POST ")) && d.requests.Add(1) > 1 {
		return 0, errors.New("broken pipe")
	}
	return d.Conn.Write(p)
}

type noRecord struct{}

func (noRecord) Route(string) *routing.Route { return nil }
func (noRecord) RoutingHeaders() []string    { return nil }

type lastEntry struct{ accesslog.Entry }

func (l *lastEntry) Observe(e *accesslog.Entry) { l.Entry = *e }

// A request that finds its connection closed before a byte is written goes whole,
// and once, on another one, and the instance does not pay for it.
func TestClosedConnectionsAreNoFailure(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		b, _ := io.ReadAll(r.Body)
		_, _ = w.Write(b)
	}))
	defer up.Close()
	c := config.Default()
	tab, err := table.New([]config.Route{{Prefix: "/", Service: "x", Timeouts: c.Timeouts}})
	if err != nil {
		t.Fatal(err)
	}
	var seen lastEntry
	g := New(Options{Limits: c.Limits, Upstream: c.Upstream, Observer: &seen, Chain: filter.Standard(filter.Settings{
		Table:     tab,
		Records:   func() filter.Records { return noRecord{} },
		Instances: static.New(map[string][]config.Instance{"x": {{Address: up.Listener.Addr().String()}}}).Load,
		Balancer:  balance.New(balance.Options{Now: time.Now}),
		NewID:     func() string { return "made" },
		Limits:    c.Limits, ClientLabels: c.ClientLabels,
	})})
	defer g.Close()
	transport := g.carrier.(*proxy).transport
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err == nil {
			wrapped := conn.(*upstreamConn)
			wrapped.Conn = &dying{Conn: wrapped.Conn}
		}
		return conn, err
	}
	front := httptest.NewServer(g)
	defer front.Close()
	for i := range 8 { // more than a circuit would stand
		res, err := front.Client().Post(front.URL, "text/plain", io.MultiReader(strings.NewReader("hel"), strings.NewReader("lo")))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK || string(body) != "hello" || calls.Load() != int64(i+1) {
			t.Fatalf("request %d: status %d, body %q, sent %d times", i+1, res.StatusCode, body, calls.Load())
		}
	}
	if seen.Retries != 1 || seen.Fallback != "" {
		t.Errorf("logged %d retries and the fallback %q, want 1 and none", seen.Retries, seen.Fallback)
	}
}
