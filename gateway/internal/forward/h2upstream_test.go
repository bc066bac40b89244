package forward_test

import (
	"bufio"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"specialroutes.example/gateway/internal/config"
)

func TestHTTP2Upstream_RequestArrives(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, secure bool) {
		endpoint, roots := serveH2(t, secure, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			_, _ = fmt.Fprintf(w, "%d %s %s %s %d %q %v te=%q up=%q conn=%q ua=%q", r.ProtoMajor, r.Method, r.Host, r.RequestURI, r.ContentLength,
				body, err, r.Header["Te"], r.Header["Upgrade"], r.Header["Connection"], r.Header["User-Agent"])
		})
		m := serveMany(t, nil, roots, endpoint+"/base")
		host := strings.TrimPrefix(strings.TrimPrefix(endpoint, "h2c://"), "h2://")
		for _, tt := range []struct{ method, path, body, lines, want string }{
			{"GET", "/api//x//y%2Fz?a=%zz&b", "", "TE: trailers\r\n", `GET HOST /base//x//y%2Fz?a=%zz&b 0 "" <nil> te=["trailers"] up=[]`},
			{"GET", "/api", "", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n", `GET HOST /base/ 0 "" <nil> te=[] up=[]`},
			{"POST", "/api/x?", "hello", "Content-Length: 5\r\n", `POST HOST /base/x? 5 "hello" <nil> te=[] up=[]`},
			{"POST", "/api/x", "5\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked\r\n", `POST HOST /base/x -1 "hello" <nil> te=[] up=[]`},
			{"DELETE", "/api/x", "", "", `DELETE HOST /base/x 0 "" <nil> te=[] up=[]`},
		} {
			c := dialRaw(t, m.plain)
			c.send(tt.method + " " + tt.path + " HTTP/1.1\r\nHost: a\r\n" + tt.lines + "\r\n" + tt.body)
			res, body := c.read(tt.method)
			if want := "2 " + strings.ReplaceAll(tt.want, "HOST", host) + " conn=[] ua=[]"; res.StatusCode != 200 || body != want {
				t.Errorf("%s %s: %d\n%s, want\n%s", tt.method, tt.path, res.StatusCode, body, want)
			}
		}
	})
}

// W4: trailers pass, those that nobody announced too.
func TestHTTP2Upstream_Trailers(t *testing.T) {
	t.Parallel()
	endpoint, _ := serveH2(t, false, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Trailer", "X-Announced")
		_, _ = io.WriteString(w, "body "+r.Trailer.Get("X-Of-Request"))
		w.Header().Set("X-Announced", "1")
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "5")
		w.Header().Set(http.TrailerPrefix+"Set-Cookie", "leak=1")
	})
	m := serveMany(t, nil, nil, endpoint)
	check := func(res *http.Response, body, want string) {
		t.Helper()
		if res.StatusCode != 200 || body != want || res.Trailer.Get("X-Announced") != "1" || res.Trailer.Get("Grpc-Status") != "5" || res.Trailer["Set-Cookie"] != nil {
			t.Errorf("%d %q with trailers %v", res.StatusCode, body, res.Trailer)
		}
	}
	client, base := m.clientOf(t, false)
	req, _ := http.NewRequestWithContext(t.Context(), "POST", base+"/api/x", io.NopCloser(strings.NewReader("hi")))
	req.Trailer = http.Header{"X-Of-Request": {"t"}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	check(res, string(body), "body t")
	c := dialRaw(t, m.plain)
	c.send("GET /api/x HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n")
	res, text := c.read("GET")
	check(res, text, "body ")
}

// W5: an answer that is one head alone stays that.
func TestHTTP2Upstream_TrailersOnly(t *testing.T) {
	t.Parallel()
	up := serveFrames(t, func(_ int, p *h2Peer) {
		for s := p.request(); s != 0; s = p.request() {
			p.head(s, true, ":status", "200", "content-type", "application/grpc", "grpc-status", "12", "grpc-message", "no such method")
		}
	})
	m := serveMany(t, nil, nil, up)
	f := dialFrames(t, m.plain)
	for stream := uint32(1); stream < 2000; stream += 2 {
		f.send(stream, true, ":method", "POST", ":path", "/api/x", ":scheme", "http", ":authority", "a", "te", "trailers", "content-type", "application/grpc")
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			if s, ok := frame.(*http2.SettingsFrame); ok && !s.IsAck() {
				_ = f.WriteSettingsAck()
			}
			h, ok := frame.(*http2.MetaHeadersFrame)
			if !ok {
				if frame.Header().StreamID == stream {
					t.Fatalf("stream %d has a frame before or behind its head: %v", stream, frame)
				}
				continue
			}
			if !h.StreamEnded() || h.PseudoValue("status") != "200" {
				t.Fatalf("stream %d: the head does not end it: %v", stream, h)
			}
			status := ""
			for _, field := range h.RegularFields() {
				if field.Name == "grpc-status" {
					status = field.Value
				}
			}
			if status != "12" {
				t.Fatalf("grpc-status %q", status)
			}
			break
		}
	}
}

func TestHTTP2Upstream_BothWaysAtOnce(t *testing.T) {
	t.Parallel()
	endpoint, _ := serveH2(t, false, func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		_ = rc.Flush()
		b := make([]byte, 1)
		for {
			if _, err := r.Body.Read(b); err != nil {
				return
			}
			_, _ = w.Write(b)
			_ = rc.Flush()
		}
	})
	m := serveMany(t, nil, nil, endpoint)
	client, base := m.clientOf(t, false)
	body, feeding := io.Pipe()
	res, err := client.Post(base+"/api/x", "", body) // returns before a byte of the body is sent
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b := make([]byte, 1)
	for _, want := range "abcdef" {
		_, _ = feeding.Write([]byte(string(want)))
		if _, err := io.ReadFull(res.Body, b); err != nil || rune(b[0]) != want {
			t.Fatalf("got %q, %v; want %q", b, err, want)
		}
	}
	_ = feeding.Close()
	if rest, err := io.ReadAll(res.Body); err != nil || len(rest) != 0 {
		t.Errorf("the end is %q, %v", rest, err)
	}
}

// An answer that ends while the client could still send ends for the client too.
func TestHTTP2Upstream_EndsBeforeASilentClient(t *testing.T) {
	t.Parallel()
	endpoint, _ := serveH2(t, false, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadFull(r.Body, make([]byte, 1))
		if r.URL.Path == "/refuse" {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = io.WriteString(w, "done")
	})
	m := serveMany(t, nil, nil, endpoint)
	client, base := m.clientOf(t, false)
	for path, want := range map[string]int{"/api/accept": 200, "/api/refuse": 403} {
		body, feeding := io.Pipe()
		go func() { _, _ = feeding.Write([]byte("x")) }()
		res, err := client.Post(base+path, "", body)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		if res.StatusCode != want || string(got) != "done" || err != nil {
			t.Errorf("%s: %d %q, %v", path, res.StatusCode, got, err)
		}
		_ = res.Body.Close()
		_ = feeding.Close()
		if e := m.log.next(t); e.Status != want || e.Code != "" {
			t.Errorf("%s: logged %d %q", path, e.Status, e.Code)
		}
	}
}

func answerOK(p *h2Peer, stream uint32) { p.head(stream, true, ":status", "200", "x-served", "yes") }

// What the upstream says that it did not take is sent again, whatever it is: on
// another connection after GOAWAY, on the same after REFUSED_STREAM.
func TestHTTP2Upstream_WhatWasNotTakenIsSentAgain(t *testing.T) {
	t.Parallel()
	for name, turnAway := range map[string]func(p *h2Peer, stream uint32){
		"GOAWAY":               func(p *h2Peer, _ uint32) { _ = p.WriteGoAway(0, http2.ErrCodeNo, nil) },
		"GOAWAY with an error": func(p *h2Peer, _ uint32) { _ = p.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, nil) },
		"REFUSED_STREAM":       func(p *h2Peer, stream uint32) { _ = p.WriteRSTStream(stream, http2.ErrCodeRefusedStream) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var turned atomic.Int64
			up := serveFrames(t, func(_ int, p *h2Peer) {
				for s := p.request(); s != 0; s = p.request() {
					if turned.Add(1)%2 == 1 {
						turnAway(p, s)
						continue
					}
					answerOK(p, s)
				}
			})
			m := serveMany(t, nil, nil, up)
			for _, request := range []string{
				"GET /api/x HTTP/1.1\r\nHost: a\r\n\r\n",
				"POST /api/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
			} {
				c := dialRaw(t, m.plain)
				c.send(request)
				if res, body := c.read("GET"); res.StatusCode != 200 {
					t.Errorf("%q: %d %s", request, res.StatusCode, body)
				}
				if e := m.log.next(t); e.Retries != 1 || e.Status != 200 {
					t.Errorf("logged %d after %d retries", e.Status, e.Retries)
				}
			}
		})
	}
}

// A body is sent again whole, and one that is too long to be kept is not sent again.
func TestHTTP2Upstream_BodyIsSentAgainWhole(t *testing.T) {
	t.Parallel()
	for size, again := range map[int]bool{1000: true, 40 << 10: true, 1 << 20: false} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			var got atomic.Int64
			up := serveFrames(t, func(_ int, p *h2Peer) {
				_ = p.WriteWindowUpdate(0, 1<<30)
				for {
					f, err := p.ReadFrame()
					if err != nil {
						return
					}
					switch f := f.(type) {
					case *http2.HeadersFrame:
						requests.Add(1)
						got.Store(0)
						_ = p.WriteWindowUpdate(f.StreamID, 1<<30)
					case *http2.DataFrame:
						n := got.Add(int64(len(f.Data())))
						if requests.Load() == 1 {
							if n >= int64(min(size, 200<<10)) {
								_ = p.WriteRSTStream(f.StreamID, http2.ErrCodeRefusedStream)
							}
						} else if f.StreamEnded() {
							answerOK(p, f.StreamID)
						}
					}
				}
			})
			m := serveMany(t, nil, nil, up)
			c := dialRaw(t, m.plain)
			go func() {
				_, _ = io.WriteString(c.Conn, fmt.Sprintf("POST /api/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", size, strings.Repeat("b", size)))
			}()
			res, body := c.read("POST")
			switch {
			case again && (res.StatusCode != 200 || got.Load() != int64(size)):
				t.Errorf("%d %s; the second attempt had %d bytes of %d", res.StatusCode, body, got.Load(), size)
			case !again && (res.StatusCode != 502 || requests.Load() != 1):
				t.Errorf("%d after %d requests, want 502 after 1", res.StatusCode, requests.Load())
			}
		})
	}
}

// Rows 84 and 85: what may have been acted on is sent again only where that is
// safe, and once. net/http's own pool would send a PROTOCOL_ERROR again.
func TestHTTP2Upstream_WhatMayHaveBeenTaken(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(p *h2Peer, stream uint32){
		"the connection ends":   func(p *h2Peer, _ uint32) { _ = p.conn.Close() },
		"PROTOCOL_ERROR":        func(p *h2Peer, stream uint32) { _ = p.WriteRSTStream(stream, http2.ErrCodeProtocol) },
		"INTERNAL_ERROR":        func(p *h2Peer, stream uint32) { _ = p.WriteRSTStream(stream, http2.ErrCodeInternal) },
		"GOAWAY that covers it": func(p *h2Peer, stream uint32) { _ = p.WriteGoAway(stream, http2.ErrCodeNo, nil); _ = p.conn.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			up := serveFrames(t, func(_ int, p *h2Peer) {
				for s := p.request(); s != 0; s = p.request() {
					requests.Add(1)
					fail(p, s)
				}
			})
			m := serveMany(t, nil, nil, up)
			for request, want := range map[string]int64{
				"GET /api/x HTTP/1.1\r\nHost: a\r\n\r\n":                                             2,
				"POST /api/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello":                  1,
				"POST /api/x HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n": 1,
				"DELETE /api/x HTTP/1.1\r\nHost: a\r\n\r\n":                                          1,
			} {
				requests.Store(0)
				c := dialRaw(t, m.plain)
				c.send(request)
				if res, _ := c.read("GET"); res.StatusCode != 502 || requests.Load() != want {
					t.Errorf("%q: %d after %d requests, want 502 after %d", request, res.StatusCode, requests.Load(), want)
				}
			}
		})
	}
}

// A malformed answer is an answer: nothing is sent again.
func TestHTTP2Upstream_MalformedAnswer(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	up := serveFrames(t, func(_ int, p *h2Peer) {
		for s := p.request(); s != 0; s = p.request() {
			requests.Add(1)
			p.head(s, true, ":status", "200", "Upper", "case")
		}
	})
	m := serveMany(t, nil, nil, up)
	c := dialRaw(t, m.plain)
	c.send("GET /api/x HTTP/1.1\r\nHost: a\r\n\r\n")
	if res, _ := c.read("GET"); res.StatusCode != 502 || requests.Load() != 1 {
		t.Errorf("%d after %d requests, want 502 after 1", res.StatusCode, requests.Load())
	}
}

// R1: who cannot be connected to, or does not speak HTTP/2, gives way.
func TestHTTP2Upstream_ConnectFails(t *testing.T) {
	t.Parallel()
	plain := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(plain.Close)
	roots := x509.NewCertPool()
	roots.AddCert(plain.Certificate())
	good := plainUpstream(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	secured, _ := serveH2(t, true, func(http.ResponseWriter, *http.Request) {})
	for name, tt := range map[string]struct {
		endpoint string
		roots    *x509.CertPool
	}{
		"nobody listens":           {"h2c://127.0.0.1:1", nil},
		"TLS without HTTP/2":       {"h2://" + plain.Listener.Addr().String(), roots},
		"an untrusted certificate": {secured, x509.NewCertPool()},
	} {
		t.Run(name, func(t *testing.T) {
			m := serveMany(t, nil, tt.roots, good, tt.endpoint)
			c := dialRaw(t, m.plain)
			c.send("POST /api/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
			res, body := c.read("POST")
			if res.StatusCode != 200 || body != "hello" || res.Header.Get("X-Route-Fallback") != "wanted=v1; reason=connect" {
				t.Errorf("%d %q, fallback %q", res.StatusCode, body, res.Header.Get("X-Route-Fallback"))
			}
		})
	}
}

// An upstream from which no answer comes loses its connection, not the requests on
// it.
func TestHTTP2Upstream_ASilentConnectionIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	var conns atomic.Int64
	long := make(chan uint32, 1)
	up := serveFrames(t, func(n int, p *h2Peer) {
		conns.Add(1)
		for s := p.request(); s != 0; s = p.request() {
			switch {
			case n > 1:
				answerOK(p, s)
			case s == 1: // an answer that has begun
				p.head(s, false, ":status", "200")
				long <- s
			default: // silence, and then the end of the first
				time.AfterFunc(300*time.Millisecond, func() { _ = p.WriteData(1, true, []byte("end")) })
			}
		}
	})
	m := serveMany(t, func(l *config.Timeouts) { l.Response = 150 * time.Millisecond }, nil, up)
	client, base := m.clientOf(t, false)
	first, err := client.Get(base + "/api/long")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Body.Close()
	<-long
	for i, want := range []int{504, 200} {
		res, err := client.Get(base + "/api/x")
		if err != nil || res.StatusCode != want {
			t.Fatalf("request %d: %v, %v; want %d", i+1, res, err, want)
		}
		_ = res.Body.Close()
	}
	if got, err := io.ReadAll(first.Body); string(got) != "end" || err != nil {
		t.Errorf("the first answer: %q, %v", got, err)
	}
	if n := conns.Load(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

// Requests that come all at once to an upstream without a connection find one each,
// however few fit on it, and its health does not suffer.
func TestHTTP2Upstream_BurstWithoutAConnection(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ streams, burst int }{{1, 30}, {10, 200}} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			time.Sleep(500 * time.Millisecond) // or requests would follow each other on one
		}))
		t.Cleanup(s.Close)
		s.Config.Protocols = protocols(false, false, true)
		s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: tt.streams}
		s.Start()
		m := serveMany(t, nil, nil, "h2c://"+s.Listener.Addr().String())
		client, base := m.clientOf(t, false)
		var done sync.WaitGroup
		for range tt.burst {
			done.Go(func() {
				if res, err := client.Get(base + "/api/x"); err != nil || res.StatusCode != 200 {
					t.Errorf("%d streams a connection: %v, %v", tt.streams, res, err)
				} else {
					_ = res.Body.Close()
				}
			})
		}
		done.Wait()
		for _, e := range m.log.entries {
			if e.Code != "" || e.Fallback != "" {
				t.Errorf("%d streams a connection: code %q, fallback %q", tt.streams, e.Code, e.Fallback)
			}
		}
	}
}

// Connections are shared.
func TestHTTP2Upstream_OneConnectionForMany(t *testing.T) {
	t.Parallel()
	var together sync.WaitGroup
	together.Add(40)
	var mu sync.Mutex
	peers := make(map[string]int)
	endpoint, _ := serveH2(t, false, func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		peers[r.RemoteAddr]++
		mu.Unlock()
		together.Done()
		together.Wait()
	})
	m := serveMany(t, nil, nil, endpoint)
	client, base := m.clientOf(t, false)
	var done sync.WaitGroup
	for range 40 {
		done.Go(func() {
			if res, err := client.Get(base + "/api/x"); err != nil || res.StatusCode != 200 {
				t.Errorf("%v, %v", res, err)
			} else {
				_ = res.Body.Close()
			}
		})
	}
	done.Wait()
	if len(peers) != 1 {
		t.Errorf("%d connections for 40 requests at once: %v", len(peers), peers)
	}
}

// A gRPC call may be silent for longer than a body may, either way.
func TestHTTP2Upstream_SilentGRPCStream(t *testing.T) {
	t.Parallel()
	endpoint, _ := serveH2(t, false, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		_, _ = io.Copy(w, r.Body)
	})
	m := serveMany(t, func(l *config.Timeouts) { l.Idle, l.Tunnel = 50*time.Millisecond, time.Minute }, nil, endpoint)
	client, base := m.clientOf(t, false)
	for kind, want := range map[string]int{"application/grpc": 200, "application/grpc+proto": 200, "application/grpc-web": 408, "text/plain": 408} {
		body, feeding := io.Pipe()
		go func() {
			time.Sleep(300 * time.Millisecond) // the pace of this client is what is tested
			_, _ = feeding.Write([]byte("late"))
			_ = feeding.Close()
		}()
		res, err := client.Post(base+"/api/x", kind, body)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != want || want == 200 && string(got) != "late" {
			t.Errorf("%s: %d %q, want %d", kind, res.StatusCode, got, want)
		}
	}
}

// 1xx answers pass in order, and one client that does not read them holds up nobody
// else on the upstream's connection.
func TestHTTP2Upstream_InformationalAnswers(t *testing.T) {
	t.Parallel()
	var conns atomic.Int64
	up := serveFrames(t, func(_ int, p *h2Peer) {
		conns.Add(1)
		for s := p.request(); s != 0; s = p.request() {
			for i := range 8 {
				p.head(s, false, ":status", "103", "link", fmt.Sprint(i), "x-route-variant", "leak")
			}
			answerOK(p, s)
		}
	})
	m := serveMany(t, nil, nil, up)
	c := dialRaw(t, m.plain)
	for range 3 {
		c.send("GET /api/x HTTP/1.1\r\nHost: a\r\n\r\n")
		for i := range 8 {
			res, _ := c.read("GET")
			if res.StatusCode != 103 || res.Header.Get("Link") != fmt.Sprint(i) || res.Header.Get("X-Route-Variant") != "" {
				t.Fatalf("answer %d is %d %v", i, res.StatusCode, res.Header)
			}
		}
		if res, _ := c.read("GET"); res.StatusCode != 200 || res.Header.Get("Link") != "" || res.Header.Get("X-Served") != "yes" {
			t.Fatalf("the answer is %d %v", res.StatusCode, res.Header)
		}
	}
	deaf := dialRaw(t, m.plain)
	go func() { // as much as is taken
		for {
			if _, err := io.WriteString(deaf.Conn, strings.Repeat("GET /api/x HTTP/1.1\r\nHost: a\r\n\r\n", 100)); err != nil {
				return
			}
		}
	}()
	for range 200 {
		c.send("GET /api/x HTTP/1.1\r\nHost: a\r\n\r\n")
		for range 9 {
			c.read("GET")
		}
	}
	_ = deaf.Close()
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

func TestHTTP2Upstream_FloodOfInformationalAnswers(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	up := serveFrames(t, func(_ int, p *h2Peer) {
		for s := p.request(); s != 0; s = p.request() {
			requests.Add(1)
			for range 1000 {
				p.head(s, false, ":status", "103", "link", "x")
			}
		}
	})
	m := serveMany(t, nil, nil, up)
	c := dialRaw(t, m.plain)
	c.send("GET /api/x HTTP/1.1\r\nHost: a\r\n\r\n")
	for range 65 {
		if res, _ := c.read("GET"); res.StatusCode != 103 {
			if res.StatusCode != 502 || requests.Load() != 1 {
				t.Errorf("%d after %d requests, want 502 after 1", res.StatusCode, requests.Load())
			}
			return
		}
	}
	t.Errorf("the flood goes on: %+v", m.log.next(t))
}

func TestHTTP2Upstream_ExpectContinue(t *testing.T) {
	t.Parallel()
	endpoint, _ := serveH2(t, false, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/no" {
			w.WriteHeader(http.StatusExpectationFailed)
			return
		}
		_, _ = io.Copy(w, r.Body)
	})
	m := serveMany(t, nil, nil, endpoint)
	for path, want := range map[string]int{"/yes": 100, "/no": 417} {
		c := dialRaw(t, m.plain)
		c.send("POST /api" + path + " HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
		res, _ := c.read("POST")
		if res.StatusCode != want {
			t.Fatalf("%s: %d, want %d", path, res.StatusCode, want)
		}
		if want == 100 {
			c.send("hi")
			if res, body := c.read("POST"); res.StatusCode != 200 || body != "hi" {
				t.Errorf("%d %q", res.StatusCode, body)
			}
		}
	}
}

// An upstream that leaves as it should fails nobody, whatever the method: what it
// does not take any more goes to the other variant.
func TestHTTP2Upstream_LeavesUnderLoad(t *testing.T) {
	t.Parallel()
	echo := func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }
	leaving := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	leaving.Config.Protocols = protocols(false, false, true)
	leaving.Start()
	t.Cleanup(leaving.Close)
	m := serveMany(t, nil, nil, plainUpstream(t, echo), "h2c://"+leaving.Listener.Addr().String())
	client, base := m.clientOf(t, false)
	var done sync.WaitGroup
	var answered, moved atomic.Int64
	for range 16 {
		done.Go(func() {
			for moved.Load() < 200 && !t.Failed() {
				res, err := client.Post(base+"/api/x", "", strings.NewReader("hello"))
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if res.StatusCode != 200 || string(body) != "hello" || err != nil {
					t.Errorf("%d %q, %v", res.StatusCode, body, err)
				}
				if res.Header.Get("X-Route-Fallback") != "" {
					moved.Add(1)
				}
				if answered.Add(1) == 500 {
					done.Go(func() {
						if err := leaving.Config.Shutdown(t.Context()); err != nil {
							t.Error(err)
						}
					})
				}
			}
		})
	}
	done.Wait()
}

// An answer that has its length and is reset is not followed by another one.
func TestHTTP2Upstream_AnswerThatIsReset(t *testing.T) {
	t.Parallel()
	up := serveFrames(t, func(_ int, p *h2Peer) {
		for s := p.request(); s != 0; s = p.request() {
			p.head(s, false, ":status", "200", "content-length", "5")
			_ = p.WriteData(s, false, []byte("hello"))
			_ = p.WriteRSTStream(s, http2.ErrCodeInternal)
		}
	})
	m := serveMany(t, nil, nil, up)
	for name, extra := range map[string]string{"the loop": "", "net/http": "Expect: 100-continue\r\n"} {
		for range 20 { // the reset may come before anything was passed on
			c := dialRaw(t, m.plain)
			c.send("GET /api/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + extra + "\r\n")
			all, _ := io.ReadAll(c.r)
			if n := strings.Count(string(all), "HTTP/1.1 "); n > 1 {
				t.Fatalf("%s: %d answers to one request: %q", name, n, all)
			}
			_ = c.Close()
		}
	}
}

// A request that was sent twice is not sent a third time to another kind of target, and
// what it took of the share of such requests is given back.
func TestHTTP2Upstream_AfterASecondSend(t *testing.T) {
	t.Parallel()
	for name, extra := range map[string]string{"the loop": "", "net/http": "Expect: 100-continue\r\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			up := serveFrames(t, func(_ int, p *h2Peer) {
				for s := p.request(); s != 0; s = p.request() {
					if requests.Add(1) < 3 {
						_ = p.WriteRSTStream(s, http2.ErrCodeInternal)
					} else {
						answerOK(p, s)
					}
				}
			})
			m := serveMany(t, nil, nil, up, "http://"+dyingUpstream(t))
			for i, want := range []struct {
				status   int
				requests int64
			}{{502, 1}, {200, 3}} {
				c := dialRaw(t, m.plain)
				c.send("GET /api/x HTTP/1.1\r\nHost: a\r\n" + extra + "\r\n")
				if res, _ := c.read("GET"); res.StatusCode != want.status || requests.Load() != want.requests {
					t.Errorf("request %d: %d after %d over HTTP/2, want %d after %d", i+1, res.StatusCode, requests.Load(), want.status, want.requests)
				}
			}
		})
	}
}

// dyingUpstream reads one request and is gone.
func dyingUpstream(t *testing.T) string {
	t.Helper()
	l := listen(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = http.ReadRequest(bufio.NewReader(c))
		_ = l.Close()
		_ = c.Close()
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

// An answer that has its length does not wait for the end of the stream.
func TestHTTP2Upstream_WholeAnswerBeforeTheEnd(t *testing.T) {
	t.Parallel()
	read := make(chan struct{})
	up := serveFrames(t, func(_ int, p *h2Peer) {
		for s := p.request(); s != 0; s = p.request() {
			p.head(s, false, ":status", "200", "content-length", "5")
			_ = p.WriteData(s, false, []byte("hello"))
			<-read
			_ = p.WriteData(s, true, nil)
		}
	})
	t.Cleanup(func() { close(read) })
	m := serveMany(t, nil, nil, up)
	for name, extra := range map[string]string{"the loop": "", "net/http": "Expect: 100-continue\r\n"} {
		c := dialRaw(t, m.plain)
		c.send("GET /api/x HTTP/1.1\r\nHost: a\r\n" + extra + "\r\n")
		res, body := c.read("GET")
		if res.StatusCode != http.StatusOK || body != "hello" {
			t.Errorf("%s: %d %q", name, res.StatusCode, body)
		}
		read <- struct{}{}
		if e := m.log.next(t); e.Status != http.StatusOK || e.Code != "" || e.BytesOut != 5 {
			t.Errorf("%s: logged %+v", name, e)
		}
	}
}

// What was given to the transport for a request is not used for the next one while
// it may still be read: the race detector tells.
func TestHTTP2Upstream_AnswersBeforeTheBody(t *testing.T) {
	t.Parallel()
	up, _ := serveH2(t, false, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	m := serveMany(t, nil, nil, up)
	body := strings.Repeat("b", 12000)
	request := fmt.Sprintf("POST /api/x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 40 {
				c, err := net.Dial("tcp", m.plain)
				if err != nil {
					t.Error(err)
					return
				}
				r := bufio.NewReader(c)
				for range i % 5 {
					_, _ = io.WriteString(c, request)
					res, err := http.ReadResponse(r, nil)
					if err != nil {
						break
					}
					_, _ = io.Copy(io.Discard, res.Body)
				}
				_, _ = io.WriteString(c, request) // who leaves without the answer
				_ = c.Close()
			}
		})
	}
	all.Wait()
}
