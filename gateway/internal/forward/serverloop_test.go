//go:build linux

package forward_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/forward"
)

// looping is a server with the loop in front of an upstream.
type looping struct {
	*forward.Server
	address string
	served  <-chan struct{} // closed when Serve has returned
}

// setup is what a test changes of the usual server.
type setup struct {
	listener net.Listener // nil: a port of its own
	timeouts func(*config.Timeouts)
	server   func(*forward.Server)
}

// newLooping serves /x, which h answers.
func newLooping(t *testing.T, h http.HandlerFunc, o setup) *looping {
	t.Helper()
	up := httptest.NewServer(h)
	t.Cleanup(up.Close)
	return loopBefore(t, up.Listener.Addr().String(), o)
}

// loopBefore serves /x, which an upstream answers.
func loopBefore(t *testing.T, upstream string, o setup) *looping {
	t.Helper()
	g := newGateway(t, upstream)
	if o.listener == nil {
		o.listener = listen(t)
	}
	c := config.Default()
	if o.timeouts != nil {
		o.timeouts(&c.Timeouts)
	}
	s := forward.NewServer(g, c.Timeouts, c.Limits, slog.New(slog.DiscardHandler))
	s.Loop, s.NewID = g, func() string { return "made" }
	if o.server != nil {
		o.server(s)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(o.listener)
	}()
	t.Cleanup(func() {
		_ = s.Close()
		<-served
	})
	return &looping{Server: s, address: o.listener.Addr().String(), served: served}
}

// peer is a client's connection.
type peer struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func (l *looping) dial(t *testing.T) *peer {
	t.Helper()
	c, err := net.Dial("tcp", l.address)
	if err != nil {
		t.Fatal(err)
	}
	return newPeer(t, c)
}

func newPeer(t *testing.T, c net.Conn) *peer {
	t.Helper()
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return &peer{c, t, bufio.NewReader(c)}
}

func (p *peer) send(s string) {
	p.t.Helper()
	if _, err := io.WriteString(p, s); err != nil {
		p.t.Fatal(err)
	}
}

// answer reads an answer and returns it with its body.
func (p *peer) answer() (*http.Response, string) {
	p.t.Helper()
	res, err := http.ReadResponse(p.r, nil)
	if err != nil {
		p.t.Fatalf("no answer: %v", err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatalf("the answer breaks off: %v", err)
	}
	return res, string(body)
}

// ended reports whether the connection ends without a further byte.
func (p *peer) ended() bool {
	_, err := p.r.ReadByte()
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

const getX = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"

func saying(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// Connections that wait for a request end at once, one that has a request ends with
// its answer, and the wait ends with them.
func TestShutdownOfTheLoop(t *testing.T) {
	t.Parallel()
	t.Run("over HTTP/1", func(t *testing.T) { shutDownBusy(t, setup{}) })
	t.Run("over net/http's transport", func(t *testing.T) {
		shutDownBusy(t, setup{server: func(s *forward.Server) { forward.Aside(s.Loop) }})
	})
}

func shutDownBusy(t *testing.T, o setup) {
	t.Helper()
	t.Parallel()
	began, end := make(chan struct{}), make(chan struct{})
	l := newLooping(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(began)
			<-end
		}
		_, _ = io.WriteString(w, "ok")
	}, o)
	idle, busy := l.dial(t), l.dial(t)
	idle.send(getX)
	idle.answer()
	busy.send("GET /x/slow HTTP/1.1\r\nHost: a\r\n\r\n")
	<-began
	done := make(chan error, 1)
	go func() { done <- l.Shutdown(context.WithoutCancel(t.Context())) }()
	if !idle.ended() {
		t.Error("a connection without a request goes on")
	}
	select {
	case err := <-done:
		t.Errorf("Shutdown returned %v before the request was over", err)
	default:
	}
	close(end)
	if res, body := busy.answer(); body != "ok" || !res.Close {
		t.Errorf("the request under way got %q, and that the connection ends: %v", body, res.Close)
	}
	if !busy.ended() {
		t.Error("the connection goes on after its request")
	}
	if err := <-done; err != nil {
		t.Errorf("Shutdown = %v", err)
	}
	<-l.served
	if _, err := net.Dial("tcp", l.address); err == nil {
		t.Error("the port is still open")
	}
}

// shutDownInAnswer sends a request, another behind its head, and shuts the server down
// while the first one's answer comes, which says "ok". It returns what Shutdown does.
func shutDownInAnswer(t *testing.T, secure bool, second string) (c *peer, shutdown <-chan error) {
	t.Helper()
	end := make(chan struct{})
	pair, roots := certificate(t)
	o := setup{listener: listen(t)}
	if secure {
		o.listener = tls.NewListener(o.listener, &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}})
	}
	l := newLooping(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "o")
		_ = http.NewResponseController(w).Flush()
		<-end
		_, _ = io.WriteString(w, "k")
	}, o)
	c = l.dial(t)
	if secure {
		c = newPeer(t, tls.Client(c.Conn, &tls.Config{RootCAs: roots, ServerName: "example.com"}))
	}
	c.send(getX)
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.send(second)
	done := make(chan error, 1)
	go func() { done <- l.Shutdown(context.WithoutCancel(t.Context())) }()
	<-l.served // net/http's server too
	close(end)
	if body, err := io.ReadAll(res.Body); string(body) != "ok" || err != nil {
		t.Fatalf("the request under way got %q, %v", body, err)
	}
	return c, done
}

// A request that is on the socket when its connection is to end is answered, under TLS
// too.
func TestShutdownHearsWhatHasCome(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		c, done := shutDownInAnswer(t, secure, getX)
		if res, body := c.answer(); body != "ok" || !res.Close {
			t.Errorf("TLS %v: answer %q, Connection: close is %v", secure, body, res.Close)
		}
		if !c.ended() {
			t.Errorf("TLS %v: the connection goes on", secure)
		}
		if err := <-done; err != nil {
			t.Errorf("Shutdown = %v", err)
		}
	}
}

// A request that comes while another one is under way, whose answer then says that the
// connection ends, does not make that answer lost.
func TestShutdownKeepsTheAnswerBeforeAnotherRequest(t *testing.T) {
	t.Parallel()
	began, end := make(chan struct{}), make(chan struct{})
	l := newLooping(t, func(w http.ResponseWriter, _ *http.Request) {
		close(began)
		<-end
		_, _ = io.WriteString(w, "ok")
	}, setup{})
	c := l.dial(t)
	c.send(getX)
	<-began
	c.send(getX)
	done := make(chan error, 1)
	go func() { done <- l.Shutdown(context.WithoutCancel(t.Context())) }()
	<-l.served
	close(end)
	if res, body := c.answer(); body != "ok" || !res.Close {
		t.Errorf("answer %q, Connection: close is %v", body, res.Close)
	}
	if !c.ended() {
		t.Error("the connection goes on")
	}
	_ = c.Close()
	if err := <-done; err != nil {
		t.Errorf("Shutdown = %v", err)
	}
}

// One that only net/http's server could take, which has ended, is told.
func TestShutdownAnswersToWhatCannotBeHandedOver(t *testing.T) {
	t.Parallel()
	c, done := shutDownInAnswer(t, false, "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
	if res, body := c.answer(); res.StatusCode != 503 || !res.Close || !strings.Contains(body, "shutting_down") {
		t.Errorf("answer %d %q, Connection: close is %v", res.StatusCode, body, res.Close)
	}
	if !c.ended() {
		t.Error("the connection goes on")
	}
	if err := <-done; err != nil {
		t.Errorf("Shutdown = %v", err)
	}
}

// What is still under way when Shutdown's context ends is named, and Close cuts it.
func TestShutdownEndsWithItsContext(t *testing.T) {
	t.Parallel()
	began, end := make(chan struct{}), make(chan struct{})
	l := newLooping(t, func(http.ResponseWriter, *http.Request) {
		close(began)
		<-end
	}, setup{})
	defer close(end)
	c := l.dial(t)
	c.send(getX)
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown = %v, want the context's error", err)
	}
	_ = l.Close()
	if !c.ended() {
		t.Error("Close leaves a request under way")
	}
}

// While the process drains, answers tell the client to go elsewhere.
func TestDrainingClosesConnections(t *testing.T) {
	t.Parallel()
	var draining atomic.Bool
	l := newLooping(t, saying("ok"), setup{server: func(s *forward.Server) { s.Draining = draining.Load }})
	c := l.dial(t)
	c.send(getX)
	if res, _ := c.answer(); res.Close {
		t.Error("an answer ends the connection before the drain")
	}
	draining.Store(true)
	c.send(getX)
	if res, _ := c.answer(); !res.Close || !c.ended() {
		t.Error("an answer in the drain does not end the connection")
	}
}

// Requests that come together are answered in their order, also those that are
// net/http's, and what is refused behind them does not overtake.
func TestPipelining(t *testing.T) {
	t.Parallel()
	l := newLooping(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.URL.Path+string(b))
	}, setup{})
	request := func(path, lines, body string) string {
		return "POST /x" + path + " HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n" + body
	}
	c := l.dial(t)
	c.send(request("/1", "Content-Length: 2\r\n", "hi") + request("/2", "", "") + "\r\n" +
		request("/3", "Transfer-Encoding: chunked\r\n", "2;a=b\r\nhi\r\n0\r\nX: y\r\n\r\n") + request("/4", "Content-Length: 2\r\n", "ho") +
		request("/5", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n") +
		request("/6", "Transfer-Encoding: chunked\r\nContent-Length: 4\r\ntmx-correlation-id: mine\r\n", "0\r\n\r\n"+getX))
	for _, want := range []string{"/1hi", "/2", "/3hi", "/4ho", "/5"} {
		if res, body := c.answer(); res.StatusCode != http.StatusOK || body != want {
			t.Fatalf("answer %d %q, want %q", res.StatusCode, body, want)
		}
	}
	res, body := c.answer()
	if res.StatusCode != http.StatusBadRequest || res.Header.Get("Content-Type") != "application/problem+json" || res.Header.Get("tmx-correlation-id") != "mine" {
		t.Errorf("what is framed twice is answered %d %s", res.StatusCode, body)
	}
	if !c.ended() {
		t.Error("the connection goes on behind it")
	}
}

// Row 129, on a connection that was handed over too, and on later requests of it.
func TestPragmaIsNotMadeCacheControl(t *testing.T) {
	t.Parallel()
	up := listen(t) // net/http's server would make it up once more
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			c, err := up.Accept()
			if err != nil {
				return
			}
			answerWithField(c, "Cache-Control")
		}
	}()
	defer func() { _ = up.Close(); <-served }()
	l := loopBefore(t, up.Addr().String(), setup{})
	c := l.dial(t)
	for _, also := range []string{"", "Upgrade: x\r\n", ""} {
		for _, said := range []string{"", "no-cache", "x"} {
			line := ""
			if said != "" {
				line = "Cache-Control: " + said + "\r\n"
			}
			c.send("GET /x HTTP/1.1\r\nHost: a\r\nPragma: no-cache\r\n" + also + line + "\r\n")
			if res, got := c.answer(); res.StatusCode != http.StatusOK || got != said {
				t.Errorf("%q: status %d, the upstream sees Cache-Control %q, want %q", also, res.StatusCode, got, said)
			}
		}
	}
}

// answerWithField answers one request with the value of a field that it has, and ends
// the connection.
func answerWithField(c net.Conn, name string) {
	defer c.Close()
	r, value := bufio.NewReader(c), ""
	for {
		line, err := r.ReadString('\n')
		if err != nil || line == "\r\n" {
			break
		}
		if v, ok := strings.CutPrefix(line, name+": "); ok {
			value += strings.TrimSpace(v)
		}
	}
	fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(value), value)
}

// Over the limit an idle connection makes room for a new one.
func TestMaxConnections(t *testing.T) {
	t.Parallel()
	l := newLooping(t, saying("ok"), setup{server: func(s *forward.Server) { s.MaxConnections = 3 }})
	var all []*peer
	for range 20 {
		c := l.dial(t)
		c.send(getX)
		if _, body := c.answer(); body != "ok" {
			t.Fatalf("answer %q", body)
		}
		all = append(all, c)
	}
	open := 0
	for _, c := range all {
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if _, err := c.r.ReadByte(); errors.Is(err, os.ErrDeadlineExceeded) {
			open++
		}
	}
	if open == 0 || open > 3 {
		t.Errorf("%d connections are open, want 1 to 3", open)
	}
}

// So does one that net/http has, of either version, and no answer is lost for it.
func TestMaxConnectionsElsewhere(t *testing.T) {
	t.Parallel()
	const chunked = "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
	start := func(t *testing.T) *looping {
		return newLooping(t, saying("ok"), setup{server: func(s *forward.Server) { s.MaxConnections = 1 }})
	}
	t.Run("handed over", func(t *testing.T) {
		t.Parallel()
		l := start(t)
		for range 5 {
			c := l.dial(t)
			c.send(chunked)
			if _, body := c.answer(); body != "ok" {
				t.Fatalf("answer %q", body)
			}
		}
	})
	t.Run("HTTP/2", func(t *testing.T) {
		t.Parallel()
		l := start(t)
		for range 3 {
			transport := &http.Transport{Protocols: protocols(false, false, true)}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport, Timeout: soon}
			res, err := client.Get("http://" + l.address + "/x")
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(res.Body); string(body) != "ok" || err != nil {
				t.Fatalf("%q, %v", body, err)
			}
		}
	})
}

// Row 53: whoever never ends a head is left after the limit, on a kept connection
// too, whoever has it.
func TestHeadLimitOnKeptConnections(t *testing.T) {
	t.Parallel()
	const limit = 300 * time.Millisecond
	l := newLooping(t, saying("ok"), setup{timeouts: func(c *config.Timeouts) { c.Header = limit }})
	for _, first := range []string{"", getX, "GET /x HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\n\r\n"} {
		c := l.dial(t)
		if first != "" {
			c.send(first)
			c.answer()
		}
		began := time.Now()
		c.send("GET /x HTTP/1.1\r\n")
		if !c.ended() {
			t.Errorf("%q: the connection goes on", first)
		}
		if took := time.Since(began); took < limit*9/10 || took > 20*limit {
			t.Errorf("%q: ended after %v, want %v", first, took, limit)
		}
	}
}

// Under TLS the loop serves HTTP/1.1, and net/http HTTP/2 and what the loop does not
// take; all of them know that it is TLS. Refusals are problem documents there too.
func TestLoopOverTLS(t *testing.T) {
	t.Parallel()
	certified := httptest.NewTLSServer(nil) // for its certificate alone
	defer certified.Close()
	l := newLooping(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Header.Get("X-Forwarded-Proto")+string(b))
	}, setup{listener: tls.NewListener(listen(t), &tls.Config{Certificates: certified.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}})})
	roots := certified.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	raw, err := tls.Dial("tcp", l.address, &tls.Config{RootCAs: roots, ServerName: "example.com", NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	c := newPeer(t, raw)
	for range 3 {
		c.send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
		if res, body := c.answer(); body != "httpshi" || !strings.HasSuffix(res.Header.Get("Set-Cookie"), "; Secure") {
			t.Errorf("the loop answers %q, cookie %q", body, res.Header.Get("Set-Cookie"))
		}
	}
	c.send("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nho\r\n0\r\n\r\n")
	if res, body := c.answer(); body != "httpsho" || !strings.HasSuffix(res.Header.Get("Set-Cookie"), "; Secure") {
		t.Errorf("net/http answers %q, cookie %q", body, res.Header.Get("Set-Cookie"))
	}
	c.send("GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
	if res, body := c.answer(); res.StatusCode != http.StatusBadRequest || !strings.Contains(body, `"bad_host"`) {
		t.Errorf("two hosts are answered %d %s", res.StatusCode, body)
	}
	if !c.ended() {
		t.Error("the connection goes on")
	}
	h2 := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com"}, ForceAttemptHTTP2: true}
	defer h2.CloseIdleConnections()
	res, err := (&http.Client{Transport: h2}).Post("https://"+l.address+"/x", "", bytes.NewReader([]byte("h2")))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, _ := io.ReadAll(res.Body); res.ProtoMajor != 2 || string(body) != "httpsh2" {
		t.Errorf("HTTP/%d answers %q", res.ProtoMajor, body)
	}
}

// An idle connection keeps no buffer, and its stack shrinks.
func TestIdleConnectionsAreSmall(t *testing.T) {
	const count, most = 500, 16 << 10
	l := newLooping(t, saying("ok"), setup{})
	held := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse)
	}
	held() // what earlier tests have left
	before := held()
	for range count {
		c := l.dial(t)
		c.send(getX)
		c.answer()
	}
	// Each collection halves the stacks that it finds at rest.
	each := int64(most + 1)
	for collections := 0; each > most && collections < 50; collections++ {
		each = (held() - before) / count
	}
	t.Logf("%d bytes a connection, the client's side among them", each)
	if each > most {
		t.Errorf("an idle connection holds %d bytes, want at most 16 KiB", each)
	}
}
