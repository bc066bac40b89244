package forward_test

import (
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
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

type noRecords struct{}

func (noRecords) Route(string) *routing.Route { return nil }
func (noRecords) RoutingHeaders() []string    { return nil }

// BenchmarkForward compares the gateway with a bare ReverseProxy in one run; the
// ratio counts, not the times.
func BenchmarkForward(b *testing.B) {
	body := make([]byte, 180)
	target, err := url.Parse("http://" + answering(b, body))
	if err != nil {
		b.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}
	defer transport.CloseIdleConnections()
	stock := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.SetXForwarded()
	}}
	g := benchGateway(b, target.Host)
	defer g.Close()
	b.Run("stock", func(b *testing.B) { requests(b, stock, nil) })
	b.Run("gateway", func(b *testing.B) { requests(b, g, nil) })
	b.Run("loop", func(b *testing.B) { requests(b, g, g) })
}

// answering answers whatever comes with a body, and costs next to nothing, so that
// what is measured is the gateway's. It returns the address.
func answering(b *testing.B, body []byte) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	answer := append([]byte("HTTP/1.1 200 OK\r\nServer: bench\r\nDate: Tue, 15 Nov 1994 08:12:31 GMT\r\n"+
		"Content-Type: application/json\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"), body...)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				for p := make([]byte, 4096); ; {
					if _, err := c.Read(p); err != nil {
						return
					}
					if _, err := c.Write(answer); err != nil {
						return
					}
				}
			})
		}
	})
	b.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return l.Addr().String()
}

func benchGateway(b *testing.B, upstream string) *forward.Gateway {
	b.Helper()
	c := config.Default()
	tab, err := table.New([]config.Route{{Prefix: "/api/x", Service: "x", Timeouts: c.Timeouts}})
	if err != nil {
		b.Fatal(err)
	}
	chain := filter.Standard(filter.Settings{
		Table:     tab,
		Records:   func() filter.Records { return noRecords{} },
		Instances: static.New(map[string][]config.Instance{"x": {{Address: upstream}}}).Load,
		Balancer:  balance.New(balance.Options{Now: time.Now}),
		Draw:      func(sum int64) int64 { return 1 + rand.Int64N(sum) },
		NewID:     func() string { return "made" },
		Limits:    c.Limits, ClientLabels: c.ClientLabels, ExposeRoute: true,
	})
	return forward.New(forward.Options{Chain: chain, Limits: c.Limits, Upstream: c.Upstream})
}

// requests sends b.N requests one after the other over one connection. With a loop
// they never reach the handler.
func requests(b *testing.B, h http.Handler, loop *forward.Gateway) {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	c := config.Default()
	s := forward.NewServer(h, c.Timeouts, c.Limits, slog.New(slog.DiscardHandler))
	s.Loop = loop
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	defer func() {
		_ = s.Close()
		<-done
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	buffer := make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := io.WriteString(conn, "GET /api/x/v1/organizations/1 HTTP/1.1\r\nHost: a\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n"); err != nil {
			b.Fatal(err)
		}
		if n, err := conn.Read(buffer); err != nil || n < 180 {
			b.Fatal(n, err)
		}
	}
}
