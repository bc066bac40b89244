package forward_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/balance"
	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/filter"
	"specialroutes.example/gateway/internal/forward"
	"specialroutes.example/gateway/internal/registry/static"
	"specialroutes.example/gateway/internal/table"
)

// An instance that could not be connected to is back, and the request that finds
// that out is an upload without end. The others must not wait for it.
func TestASlowUploadThatProbesKeepsNobodyAway(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, 2)
	answers := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && name == "back" {
				arrived <- struct{}{}
			}
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, name)
		})
	}
	other := httptest.NewServer(answers("other"))
	t.Cleanup(other.Close)
	l := listen(t)
	address := l.Addr().String()
	l.Close()

	var late atomic.Int64
	balancer := balance.New(balance.Options{Now: func() time.Time { return time.Now().Add(time.Duration(late.Load())) }})
	front := probed(t, balancer, address, other.Listener.Addr().String())
	get := func() string {
		res, err := http.Get(front + "/x")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		return string(body)
	}
	for n := 0; balancer.Health("x", "back").Circuit != balance.CircuitOpen; n++ {
		if got := get(); got != "other" || n > 20 {
			t.Fatalf("call %d while one instance is away: %q, %+v", n, got, balancer.Health("x", "back"))
		}
	}
	serveAt(t, address, answers("back"))
	late.Store(int64(11 * time.Second))

	ctx, cancel := context.WithCancel(t.Context())
	var uploads sync.WaitGroup
	defer uploads.Wait()
	defer cancel()
	for range 2 { // one for each instance
		r, w := io.Pipe()
		defer w.Close()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, front+"/x", r)
		if err != nil {
			t.Fatal(err)
		}
		uploads.Go(func() {
			if res, err := http.DefaultClient.Do(req); err == nil {
				res.Body.Close()
			}
		})
		_, _ = io.WriteString(w, "the beginning")
	}
	<-arrived
	seen := make(map[string]int)
	for range 4 {
		seen[get()]++
	}
	if seen["back"] != 2 || seen["other"] != 2 {
		t.Errorf("while an upload probes, calls are answered by %v, want two each", seen)
	}
}

// probed serves /x from two instances and returns its base URL.
func probed(t *testing.T, balancer *balance.Balancer, back, other string) string {
	t.Helper()
	c := config.Default()
	tab, err := table.New([]config.Route{{Prefix: "/x", Service: "x", Timeouts: c.Timeouts}})
	if err != nil {
		t.Fatal(err)
	}
	g := forward.New(forward.Options{Limits: c.Limits, Upstream: c.Upstream, Chain: filter.Standard(filter.Settings{
		Table:     tab,
		Records:   func() filter.Records { return records{} },
		Instances: static.New(map[string][]config.Instance{"x": {{ID: "back", Address: back}, {ID: "other", Address: other}}}).Load,
		Balancer:  balancer,
		NewID:     func() string { return "made" },
		Limits:    c.Limits, ClientLabels: c.ClientLabels,
	})})
	t.Cleanup(g.Close)
	l := listen(t)
	serve(t, g, l)
	return "http://" + l.Addr().String()
}

// serveAt serves h at an address until the test ends.
func serveAt(t *testing.T, address string, h http.Handler) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
}
