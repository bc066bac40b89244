//go:build linux

package forward

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
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

// directGateway serves the engine alone, with as little of a server around it as it
// takes: no judgement of heads, no refusals in words.
type directGateway struct {
	*direct
	net.Listener
	serving sync.WaitGroup

	mu      sync.Mutex
	conns   []net.Conn
	entries chan accesslog.Entry
}

// serveDirect serves an engine in front of the instances until the test ends.
func serveDirect(t testing.TB, change func(*config.Config), instances ...string) *directGateway {
	t.Helper()
	c := config.Default()
	if change != nil {
		change(&c)
	}
	return serveDirectWith(t, Options{}, &c, noRecord{}, instances...)
}

func serveDirectWith(t testing.TB, o Options, c *config.Config, records filter.Records, instances ...string) *directGateway {
	t.Helper()
	tab, err := table.New([]config.Route{{Prefix: "/", Service: "x", Timeouts: c.Timeouts}})
	if err != nil {
		t.Fatal(err)
	}
	var all []config.Instance
	for i, address := range instances {
		all = append(all, config.Instance{ID: "i" + strconv.Itoa(i), Address: address})
	}
	o.Limits, o.Upstream = c.Limits, c.Upstream
	o.Chain = filter.Standard(filter.Settings{
		Table:     tab,
		Records:   func() filter.Records { return records },
		Draw:      func(sum int64) int64 { return sum },
		Instances: static.New(map[string][]config.Instance{"x": all}).Load,
		Balancer:  balance.New(balance.Options{Now: time.Now}),
		NewID:     func() string { return "made" },
		Limits:    c.Limits, ClientLabels: c.ClientLabels,
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &directGateway{direct: newDirect(o, new(budget)), Listener: l, entries: make(chan accesslog.Entry, 1000)}
	g.serving.Go(g.accept)
	t.Cleanup(g.end)
	return g
}

func (g *directGateway) accept() {
	for {
		conn, err := g.Accept()
		if err != nil {
			return
		}
		g.mu.Lock()
		g.conns = append(g.conns, conn)
		g.mu.Unlock()
		g.serving.Go(func() {
			defer conn.Close()
			g.serve(&client{
				conn: conn, tcp: conn.(*net.TCPConn), plain: true, in: bufio.NewReader(conn),
				tracked: new(tracked), loop: newLoop(new(Server)),
			})
		})
	}
}

func (g *directGateway) end() {
	_ = g.Close()
	g.mu.Lock()
	for _, conn := range g.conns {
		_ = conn.Close()
	}
	g.mu.Unlock()
	g.serving.Wait()
	g.close()
}

// serve carries request after request. A refusal is a head without a body.
func (g *directGateway) serve(cl *client) {
	for {
		r, err := http.ReadRequest(cl.in)
		if err != nil {
			return
		}
		r.RemoteAddr = cl.conn.RemoteAddr().String()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		ex, rep := &filter.Exchange{Request: r}, new(reply)
		if err = g.chain.Request(ex); err == nil {
			err = g.carry(cl, ex, body, rep)
		}
		if err != nil && !rep.begun && !errors.Is(err, errClientGone) {
			refusal := refusalFor(err)
			rep.status, rep.keep, ex.Entry.Code = refusal.Status, true, refusal.Code
			_, _ = cl.conn.Write(appendAnswerHead(nil, nil, answerForm{status: refusal.Status, framing: framedByLength}))
		}
		ex.Entry.Status, ex.Entry.BytesOut = rep.status, rep.bytes
		g.entries <- ex.Entry
		if !rep.keep {
			return
		}
	}
}

// dial connects to the gateway.
func (g *directGateway) dial(t testing.TB) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", g.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	return c
}

// ask sends a request on a connection of its own and reads the answer.
func (g *directGateway) ask(t testing.TB, request string) (status int, body string, err error) {
	t.Helper()
	c := g.dial(t)
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, "", err
	}
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

// idle returns how many connections to upstreams are idle.
func (g *directGateway) idle() (n int64) {
	for _, p := range *g.links.pools.Load() {
		n += p.idle.Load()
	}
	return n
}

// atEndpoint is records by which all requests go to an endpoint.
type atEndpoint struct{ route *routing.Route }

func newAtEndpoint(t testing.TB, url string) atEndpoint {
	t.Helper()
	route, err := routing.Compile(&routing.Record{
		Service: "x", Active: new(true), Default: new("old"),
		Variants: []routing.Variant{{Name: "old", Weight: new(int64(0))}, {Name: "new", Weight: new(int64(1)), Endpoint: &url}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return atEndpoint{route}
}

func (a atEndpoint) Route(string) *routing.Route { return a.route }
func (a atEndpoint) RoutingHeaders() []string    { return nil }

const get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

// scripted is an upstream that serves each connection by a script.
type scripted struct {
	net.Listener
	accepted atomic.Int64
	serving  sync.WaitGroup
	mu       sync.Mutex
	conns    []net.Conn
}

// script serves connections until the test ends; each is closed when serve returns.
func script(t testing.TB, serve func(c net.Conn, r *bufio.Reader)) *scripted {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &scripted{Listener: l}
	u.serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			u.accepted.Add(1)
			u.mu.Lock()
			u.conns = append(u.conns, c)
			u.mu.Unlock()
			u.serving.Go(func() {
				defer c.Close()
				serve(c, bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(u.end)
	return u
}

func (u *scripted) address() string { return u.Addr().String() }

func (u *scripted) end() {
	_ = u.Close()
	u.mu.Lock()
	for _, c := range u.conns {
		_ = c.Close()
	}
	u.mu.Unlock()
	u.serving.Wait()
}

// takeRequest reads a request whole; false is the end of the connection.
func takeRequest(r *bufio.Reader) (*http.Request, bool) {
	req, err := http.ReadRequest(r)
	if err != nil {
		return nil, false
	}
	_, err = io.Copy(io.Discard, req.Body)
	return req, err == nil
}

// answerEach answers every request with the same bytes.
func answerEach(t testing.TB, answer string) *scripted {
	t.Helper()
	return script(t, func(c net.Conn, r *bufio.Reader) {
		for {
			if _, ok := takeRequest(r); !ok {
				return
			}
			if _, err := io.WriteString(c, answer); err != nil {
				return
			}
		}
	})
}

// eventually waits until something holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for over := time.Now().Add(10 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(over) {
			t.Fatalf("in ten seconds: not %s", what)
		}
	}
}
