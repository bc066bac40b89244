package forward_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"specialroutes.example/gateway/internal/config"
)

// plainUpstream serves h over HTTP/1.1 and returns the endpoint.
func plainUpstream(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// bothWays runs a test over h2c and over TLS.
func bothWays(t *testing.T, run func(t *testing.T, secure bool)) {
	t.Helper()
	t.Run("h2c", func(t *testing.T) { t.Parallel(); run(t, false) })
	t.Run("TLS", func(t *testing.T) { t.Parallel(); run(t, true) })
}

func TestHTTP2Client_RequestArrivesAsOverHTTP1(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, secure bool) {
		up := plainUpstream(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, "%s %s %q %q %q %q %q", r.Method, r.RequestURI, r.Header["Cookie"], r.Header["Te"],
				r.Header.Get("X-Forwarded-Proto"), r.Header.Get("X-Forwarded-Host"), r.Header["Connection"])
		})
		m := serveMany(t, nil, nil, up)
		client, base := m.clientOf(t, secure)
		req, _ := http.NewRequestWithContext(t.Context(), "GET", base+"/api/a%2Fb//c?x=%zz", nil)
		req.Host = "shop.example"
		req.Header.Set("Te", "trailers")
		req.Header.Set("Cookie", "a=1; b=2") // travels as two fields
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		got, _ := io.ReadAll(res.Body)
		proto := "http"
		if secure {
			proto = "https"
		}
		want := fmt.Sprintf(`GET /a%%2Fb//c?x=%%zz ["a=1; b=2"] ["trailers"] %q "shop.example" []`, proto)
		if string(got) != want || res.ProtoMajor != 2 {
			t.Errorf("the upstream saw\n%s, want\n%s", got, want)
		}
		if e := m.log.next(t); e.Status != 200 || e.Host != "shop.example" || e.Client.String() != "127.0.0.1" {
			t.Errorf("logged %+v", e)
		}
	})
}

// Row 29: nothing of the upstream's connection comes to a client of HTTP/2.
func TestHTTP2Client_NoFieldOfTheConnection(t *testing.T) {
	t.Parallel()
	up := plainUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range map[string]string{"Keep-Alive": "timeout=5", "Connection": "keep-alive, X-N", "X-N": "leak",
			"Upgrade": "h2,h2c", "Proxy-Connection": "keep-alive", "X-Stays": "1"} {
			w.Header().Set(name, value)
		}
	})
	m := serveMany(t, nil, nil, up)
	client, base := m.clientOf(t, false)
	res, err := client.Get(base + "/api/x")
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	for _, name := range []string{"Keep-Alive", "Connection", "X-N", "Upgrade", "Proxy-Connection", "Transfer-Encoding"} {
		if got := res.Header.Values(name); got != nil {
			t.Errorf("the client sees %s: %q", name, got)
		}
	}
	if res.Header.Get("X-Stays") != "1" {
		t.Error("an end-to-end field is gone")
	}
}

// Rows 50 and 51: as no head of HTTP/2 comes in one piece, its fields are measured, but
// for what is added to them here.
func TestHTTP2Client_LongHeads(t *testing.T) {
	t.Parallel()
	m := serveMany(t, nil, nil, plainUpstream(t, func(http.ResponseWriter, *http.Request) {}))
	client, base := m.clientOf(t, false)
	for _, tt := range []struct{ fields, length, want int }{
		{98, 1, 200}, {99, 1, 431}, {1, 60 << 10, 200}, {1, 66 << 10, 431},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/api/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		for range tt.fields { // beside the host and the User-Agent
			req.Header.Add("X-A", strings.Repeat("a", tt.length))
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != tt.want {
			t.Errorf("%d fields of %d bytes: status %d, want %d", tt.fields, tt.length, res.StatusCode, tt.want)
		}
	}
}

func TestHTTP2Client_InformationalAnswersPass(t *testing.T) {
	t.Parallel()
	up := plainUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</s.css>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		_, _ = io.WriteString(w, "ok")
	})
	m := serveMany(t, nil, nil, up)
	client, base := m.clientOf(t, false)
	var hints []string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		hints = append(hints, fmt.Sprint(code, h["Link"]))
		return nil
	}})
	req, _ := http.NewRequestWithContext(ctx, "GET", base+"/api/x", nil)
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, _ := io.ReadAll(res.Body); string(body) != "ok" || res.Header.Get("Link") != "" || len(hints) != 1 || hints[0] != "103 [</s.css>]" {
		t.Errorf("hints %q, then %q with %v", hints, body, res.Header)
	}
}

// An upstream that answers before the body is there is heard, and the connection
// with the client's other streams goes on.
func TestHTTP2Client_EarlyAnswer(t *testing.T) {
	t.Parallel()
	up := plainUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			w.Header().Set("Connection", "close")
			http.Error(w, "too much", http.StatusRequestEntityTooLarge)
			return
		}
		_, _ = io.WriteString(w, "ok")
	})
	m := serveMany(t, nil, nil, up)
	client, base := m.clientOf(t, false)
	body, feeding := io.Pipe()
	defer feeding.Close()
	go func() { _, _ = feeding.Write(make([]byte, 1<<20)) }()
	res, err := client.Post(base+"/api/x", "", body)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if res.StatusCode != 413 || string(got) != "too much\n" || err != nil {
		t.Errorf("answer %d %q, %v", res.StatusCode, got, err)
	}
	if e := m.log.next(t); e.Status != 413 {
		t.Errorf("logged %d", e.Status)
	}
	if res, err = client.Get(base + "/api/x"); err != nil || res.StatusCode != 200 {
		t.Errorf("another stream: %v, %v", res, err)
	} else {
		_ = res.Body.Close()
	}
}

// Row 62: a client that gives its stream up is logged as 499, and the upstream
// notices.
func TestHTTP2Client_Leaves(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]bool{"while an answer is awaited": false, "while it sends": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began, noticed := make(chan struct{}), make(chan struct{})
			up := plainUpstream(t, func(_ http.ResponseWriter, r *http.Request) {
				close(began)
				if read {
					_, _ = io.Copy(io.Discard, r.Body)
				}
				<-r.Context().Done()
				close(noticed)
			})
			m := serveMany(t, nil, nil, up)
			f := dialFrames(t, m.plain)
			f.send(1, !read, ":method", "POST", ":path", "/api/x", ":scheme", "http", ":authority", "a")
			if read {
				_ = f.WriteData(1, false, []byte("some"))
			}
			<-began
			left := time.Now()
			_ = f.WriteRSTStream(1, http2.ErrCodeCancel)
			<-noticed
			if took := time.Since(left); took > time.Second {
				t.Errorf("the upstream noticed after %v", took)
			}
			if e := m.log.next(t); e.Status != 499 || e.Code != "" {
				t.Errorf("logged %d %q", e.Status, e.Code)
			}
		})
	}
}

func TestHTTP2Client_TimeLimits(t *testing.T) {
	t.Parallel()
	up := plainUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/head":
			_, _ = io.WriteString(w, "begin")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case "/read":
			_, _ = io.Copy(io.Discard, r.Body)
		default:
			<-r.Context().Done()
		}
	})
	m := serveMany(t, func(l *config.Timeouts) { l.Response, l.Idle = 100*time.Millisecond, 100*time.Millisecond }, nil, up)
	client, base := m.clientOf(t, false)
	if res, err := client.Get(base + "/api/never"); err != nil || res.StatusCode != 504 {
		t.Errorf("no head in time: %v, %v", res, err)
	} else {
		_ = res.Body.Close()
	}
	silent, feeding := io.Pipe()
	defer feeding.Close()
	if res, err := client.Post(base+"/api/read", "", silent); err != nil || res.StatusCode != 408 {
		t.Errorf("no body in time: %v, %v", res, err)
	} else {
		_ = res.Body.Close()
	}
	res, err := client.Get(base + "/api/head")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got, err := io.ReadAll(res.Body); err == nil || string(got) != "begin" {
		t.Errorf("an answer that breaks off ends as %q, %v", got, err)
	}
}

// Row 63: an upstream that dies in mid-answer is a stream that breaks, not one that
// ends.
func TestHTTP2Client_AnswerThatBreaksOff(t *testing.T) {
	t.Parallel()
	up := plainUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "begin")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	m := serveMany(t, nil, nil, up)
	client, base := m.clientOf(t, false)
	res, err := client.Get(base + "/api/x")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got, err := io.ReadAll(res.Body); err == nil || string(got) != "begin" {
		t.Errorf("the answer ends as %q, %v", got, err)
	}
	if e := m.log.next(t); e.Code != "answer_cut" {
		t.Errorf("logged %d %q", e.Status, e.Code)
	}
}

// frames is a client's connection of bare frames.
type frames struct {
	*http2.Framer
	t     *testing.T
	conn  net.Conn
	block bytes.Buffer
	enc   *hpack.Encoder
}

func dialFrames(t *testing.T, address string) *frames {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(soon))
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	f := &frames{Framer: http2.NewFramer(c, bufio.NewReader(c)), t: t, conn: c}
	f.enc = hpack.NewEncoder(&f.block)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return f
}

// send sends a head whose fields are names and values in turn.
func (f *frames) send(stream uint32, end bool, fields ...string) {
	f.t.Helper()
	f.block.Reset()
	for i := 0; i < len(fields); i += 2 {
		_ = f.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: f.block.Bytes(), EndHeaders: true, EndStream: end}); err != nil {
		f.t.Fatal(err)
	}
}

// outcome reads what comes of a stream: its status, or that it or the connection
// was reset.
func (f *frames) outcome(stream uint32) string {
	f.t.Helper()
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return "closed"
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			if frame.StreamID == stream {
				return frame.PseudoValue("status")
			}
		case *http2.RSTStreamFrame:
			if frame.StreamID == stream {
				return "reset"
			}
		case *http2.GoAwayFrame:
			return "closed"
		}
	}
}

// Row 21: what would be another message over HTTP/1 does not get there.
func TestHTTP2Client_WhatWouldDesynchronise(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	up := plainUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		_, _ = io.Copy(w, r.Body)
	})
	m := serveMany(t, nil, nil, up)
	head := []string{":method", "POST", ":path", "/api/x", ":scheme", "http", ":authority", "a"}
	for name, tt := range map[string]struct {
		fields []string
		data   string // ends the stream
		want   string
	}{
		"a body shorter than its length":  {[]string{"content-length", "5"}, "x", "400"},
		"a body longer than its length":   {[]string{"content-length", "1"}, "xyz", "reset"},
		"two lengths":                     {[]string{"content-length", "1", "content-length", "3"}, "xyz", "400 reset"},
		"another length behind the first": {[]string{"content-length", "5", "content-length", "6"}, "hello", "400"},
		"a length twice":                  {[]string{"content-length", "5", "content-length", "5"}, "hello", "400"},
		"lengths on one line":             {[]string{"content-length", "5, 5"}, "hello", "400 reset"},
		"a length with a sign":            {[]string{"content-length", "+5"}, "hello", "400 reset"},
		"a transfer coding":               {[]string{"transfer-encoding", "chunked"}, "0\r\n\r\n", "400 reset"},
		"a line break in a value":         {[]string{"x-a", "b\r\nx-c: d"}, "", "reset closed"},
		"a space in a name":               {[]string{"x a", "b"}, "", "reset closed"},
		"a colon in a name":               {[]string{"x:a", "b"}, "", "reset closed"},
		"an upper case name":              {[]string{"X-A", "b"}, "", "reset closed"},
		"another host than the authority": {[]string{"host", "b"}, "", "400"},
		"two hosts":                       {[]string{"host", "a", "host", "a"}, "", "400"},
		"a field of the connection":       {[]string{"connection", "x-forwarded-for"}, "", "400 reset"},
		"another TE":                      {[]string{"te", "gzip"}, "", "400 reset"},
		"the same host":                   {[]string{"host", "a"}, "hi", "200"},
		"a length that is right":          {[]string{"content-length", "2"}, "hi", "200"},
	} {
		t.Run(name, func(t *testing.T) {
			before := calls.Load()
			f := dialFrames(t, m.plain)
			f.send(1, false, append(head, tt.fields...)...)
			_ = f.WriteData(1, true, []byte(tt.data))
			got := f.outcome(1)
			if !strings.Contains(tt.want, got) {
				t.Errorf("outcome %q, want %q", got, tt.want)
			}
			if n := calls.Load() - before; (got == "200") != (n == 1) {
				t.Errorf("outcome %q, and %d requests upstream", got, n)
			}
		})
	}
	for _, path := range []string{"/api/a b", "api", "", "*", "http://a/api"} {
		before := calls.Load()
		f := dialFrames(t, m.plain)
		f.send(1, true, ":method", "GET", ":path", path, ":scheme", "http", ":authority", "a")
		if got := f.outcome(1); got == "200" || calls.Load() != before {
			t.Errorf("path %q: %s, and %d requests upstream", path, got, calls.Load()-before)
		}
	}
	f := dialFrames(t, m.plain)
	f.send(1, true, ":method", "CONNECT", ":authority", "a:80")
	if got := f.outcome(1); got != "400" {
		t.Errorf("CONNECT: %s, want 400", got)
	}
}

// Row 72 and RFC 8441: a WebSocket over HTTP/2 is not offered.
func TestHTTP2Client_NoTunnel(t *testing.T) {
	t.Parallel()
	m := serveMany(t, nil, nil, plainUpstream(t, func(http.ResponseWriter, *http.Request) { t.Error("the upstream was called") }))
	f := dialFrames(t, m.plain)
	f.send(1, false, ":method", "CONNECT", ":protocol", "websocket", ":path", "/api/x", ":scheme", "http", ":authority", "a")
	if got := f.outcome(1); got != "reset" && got != "closed" {
		t.Errorf("extended CONNECT: %s", got)
	}
}

// One stream that waits holds up none of the others.
func TestHTTP2Client_StreamsOfOneConnectionAreIndependent(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	up := plainUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-release
		}
		_, _ = io.WriteString(w, r.URL.Path)
	})
	m := serveMany(t, nil, nil, up)
	client, base := m.clientOf(t, true)
	slow := make(chan string)
	go func() {
		res, err := client.Get(base + "/api/slow")
		if err != nil {
			slow <- err.Error()
			return
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		slow <- string(b)
	}()
	for range 50 {
		res, err := client.Get(base + "/api/fast")
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if string(b) != "/fast" {
			t.Fatalf("answer %q", b)
		}
	}
	close(release)
	if got := <-slow; got != "/slow" {
		t.Errorf("the slow one: %q", got)
	}
}

// A drain tells clients of HTTP/2 to go elsewhere, and completes what they have begun.
func TestHTTP2Client_Drain(t *testing.T) {
	t.Parallel()
	began, release := make(chan struct{}), make(chan struct{})
	up := plainUpstream(t, func(http.ResponseWriter, *http.Request) {
		close(began)
		<-release
	})
	m := serveMany(t, nil, nil, up)
	f := dialFrames(t, m.plain)
	f.send(1, true, ":method", "GET", ":path", "/api/x", ":scheme", "http", ":authority", "a")
	<-began
	ended := make(chan error)
	go func() { ended <- m.servers[0].Shutdown(t.Context()) }()
	for goAway := false; !goAway; {
		frame, err := f.ReadFrame()
		if err != nil {
			t.Fatalf("no GOAWAY: %v", err)
		}
		_, goAway = frame.(*http2.GoAwayFrame)
	}
	close(release)
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			t.Fatalf("no answer: %v", err)
		}
		if h, ok := frame.(*http2.MetaHeadersFrame); ok {
			if got := h.PseudoValue("status"); got != "200" {
				t.Errorf("status %s", got)
			}
			break
		}
	}
	if err := <-ended; err != nil {
		t.Errorf("the drain ended with %v", err)
	}
}
