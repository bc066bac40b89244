package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"specialroutes.example/gateway/internal/records/recordstest"
)

// echoSocket accepts WebSockets and sends each message back, piece by piece as it
// comes. It notes the codes with which they are closed.
type echoSocket struct {
	*httptest.Server
	codes chan websocket.StatusCode
}

func newEchoSocket(t *testing.T) *echoSocket {
	t.Helper()
	e := &echoSocket{codes: make(chan websocket.StatusCode, 2048)}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/close" {
			c, err := websocket.Accept(w, r, nil)
			if err == nil {
				_ = c.Close(4001, "because of the upstream")
			}
			return
		}
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
		if err != nil {
			return
		}
		c.SetReadLimit(-1)
		defer func() { _ = c.CloseNow() }()
		for {
			kind, in, err := c.Reader(r.Context())
			if err != nil {
				e.codes <- websocket.CloseStatus(err)
				return
			}
			out, err := c.Writer(r.Context(), kind)
			if err != nil {
				return
			}
			if _, err := io.Copy(out, in); err != nil || out.Close() != nil {
				return
			}
		}
	}))
	t.Cleanup(e.Close)
	return e
}

// socket opens a WebSocket.
func socket(t *testing.T, url string, o *websocket.DialOptions) *websocket.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, res, err := websocket.Dial(ctx, url, o)
	if err != nil {
		t.Fatalf("%v (%v)", err, res)
	}
	c.SetReadLimit(-1)
	t.Cleanup(func() { _ = c.CloseNow() })
	return c
}

// echoed sends a message in pieces and fails the test unless it comes back whole.
func echoed(t *testing.T, c *websocket.Conn, kind websocket.MessageType, pieces ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		w, err := c.Writer(ctx, kind)
		for _, p := range pieces {
			if err == nil {
				_, err = io.WriteString(w, p)
			}
		}
		if err == nil {
			err = w.Close()
		}
		failed <- err
	}()
	gotKind, got, err := c.Read(ctx)
	if werr := <-failed; werr != nil || err != nil || gotKind != kind || string(got) != strings.Join(pieces, "") {
		t.Fatalf("%d bytes of kind %v came back, want %d of %v: %v, %v", len(got), gotKind, len(strings.Join(pieces, "")), kind, err, werr)
	}
}

func TestWebSocket_MessagesAndCloseCodesPass(t *testing.T) {
	t.Parallel()
	feed, up := recordstest.NewFeed(t), newEchoSocket(t)
	p := launch(t, settings(feed.URL, up.Server, ""), nil)
	url := "ws" + strings.TrimPrefix(p.data, "http") + "/api/org"
	for _, compression := range []websocket.CompressionMode{websocket.CompressionDisabled, websocket.CompressionContextTakeover} {
		c := socket(t, url+"/echo", &websocket.DialOptions{CompressionMode: compression})
		echoed(t, c, websocket.MessageText, "")
		echoed(t, c, websocket.MessageText, "a", "b", strings.Repeat("c", 70_000), "")
		echoed(t, c, websocket.MessageBinary, strings.Repeat("\x00\xff", 1<<20))
		c.CloseRead(t.Context()) // a pong is only seen by who reads
		if err := c.Ping(t.Context()); err != nil {
			t.Errorf("no pong: %v", err)
		}
		if err := c.Close(4002, "because of the client"); err != nil && !errors.As(err, new(websocket.CloseError)) {
			t.Errorf("close: %v", err)
		}
		if code := <-up.codes; code != 4002 {
			t.Errorf("the upstream sees the code %d, want 4002", code)
		}
	}
	_, _, err := socket(t, url+"/close", nil).Read(t.Context())
	if ce, ok := errors.AsType[websocket.CloseError](err); !ok || ce.Code != 4001 || ce.Reason != "because of the upstream" {
		t.Errorf("the client sees %v, want 4001 because of the upstream", err)
	}
}

// Row 73: TLS on either side alone.
func TestWebSocket_TLSOnOneSide(t *testing.T) {
	t.Parallel()
	certFile, keyFile := certificate(t)
	text, err := os.ReadFile(certFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	up := newEchoSocket(t)
	port := launchAt(t, up.URL, certFile, keyFile)
	secure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	c := socket(t, "wss://127.0.0.1:"+port+"/echo", &websocket.DialOptions{HTTPClient: secure})
	echoed(t, c, websocket.MessageText, "from TLS")
	_ = c.Close(websocket.StatusNormalClosure, "")
	if code := <-up.codes; code != websocket.StatusNormalClosure {
		t.Errorf("code %d", code)
	}
}

// W1: tunnels outlive every change of the records, of their own route too, and W7:
// they end within the drain limit.
func TestWebSocket_SurvivesChangesAndEndsWithTheDrain(t *testing.T) {
	t.Parallel()
	feed, up, other := recordstest.NewFeed(t), newEchoSocket(t), upstream(t, "NEW")
	feed.Put("org", recordstest.BookRecord("org", 10, other.URL))
	p := launch(t, strings.Replace(settings(feed.URL, up.Server, ""), "limit: 5s", "limit: 1s", 1), nil)
	url := "ws" + strings.TrimPrefix(p.data, "http") + "/api/org/echo"
	var all []*websocket.Conn
	for range 100 {
		all = append(all, socket(t, url, nil))
	}
	for i := range 50 {
		feed.Put("org", recordstest.BookRecord("org", i%10, other.URL))
	}
	feed.Put("org", recordstest.BookRecord("org", 0, other.URL))
	eventually(t, "the last change is in force", func() bool {
		_, _, body := get(t, p.data+"/api/org/x")
		return strings.HasPrefix(body, "NEW")
	})
	feed.Delete("org")
	for _, c := range all {
		echoed(t, c, websocket.MessageText, "still there")
	}
	began := time.Now()
	code := p.terminate(t)
	if took := time.Since(began); code != 1 || took > 5*time.Second {
		t.Errorf("exit code %d after %v, want 1 after the limit of 1s", code, took)
	}
	for range all {
		<-up.codes
	}
}

// usage is what a process holds, by its own metrics.
func (p *process) usage(t *testing.T) (descriptors, goroutines int) {
	t.Helper()
	_, _, text := get(t, p.admin+"/metrics")
	for name, n := range map[string]*int{"process_open_fds": &descriptors, "go_goroutines": &goroutines} {
		m := regexp.MustCompile(`(?m)^` + name + ` (\d+)`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no %s", name)
		}
		*n, _ = strconv.Atoi(m[1])
	}
	return descriptors, goroutines
}

// settle waits until the process holds no more than it did.
func (p *process) settle(t *testing.T, descriptors, goroutines int) {
	t.Helper()
	var d, g int
	eventually(t, "descriptors and goroutines are back", func() bool {
		d, g = p.usage(t)
		return d <= descriptors+2 && g <= goroutines+4 // kept connections of this test
	})
}

// Whatever way tunnels end, nothing of them is left.
func TestWebSocket_LeavesNothing(t *testing.T) {
	t.Parallel()
	feed, up := recordstest.NewFeed(t), newEchoSocket(t)
	p := launch(t, settings(feed.URL, up.Server, ""), nil)
	url := "ws" + strings.TrimPrefix(p.data, "http") + "/api/org"
	_ = socket(t, url+"/echo", nil).CloseNow()
	p.settle(t, 1<<10, 1<<10)
	descriptors, goroutines := p.usage(t)
	for range 3 {
		var all []*websocket.Conn
		for i := range 200 {
			c := socket(t, url+"/echo", nil)
			if i%2 == 0 {
				echoed(t, c, websocket.MessageText, "x")
			}
			all = append(all, c)
		}
		var done sync.WaitGroup
		for i, c := range all {
			done.Go(func() {
				if i%3 == 0 {
					_ = c.Close(websocket.StatusNormalClosure, "")
				} else {
					_ = c.CloseNow()
				}
			})
		}
		done.Wait()
		p.settle(t, descriptors, goroutines)
	}
}

// Row 71: a 101 that does not fit is 502 each time, and leaves nothing.
func TestWebSocket_AnswersThatDoNotFitLeaveNothing(t *testing.T) {
	t.Parallel()
	feed := recordstest.NewFeed(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n")
					_, _ = io.Copy(io.Discard, c) // until the gateway closes it
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	p := launch(t, fmt.Sprintf("routes: [{prefix: /api/org, service: org}]\ninstances: {org: [{id: a, address: %q}]}\nrecords: {url: %q}\n", l.Addr(), feed.URL), nil)
	c, err := net.Dial("tcp", strings.TrimPrefix(p.data, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := bufio.NewReader(c)
	ask := func(lines string) {
		t.Helper()
		if _, err := io.WriteString(c, "GET /api/org/x HTTP/1.1\r\nHost: a\r\n"+lines+"\r\n"); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		if res.StatusCode != http.StatusBadGateway || !bytes.Contains(body, []byte("bad_answer")) {
			t.Fatalf("%d %s, want 502", res.StatusCode, body)
		}
	}
	const wish = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
	ask("")
	ask(wish)
	descriptors, goroutines := p.usage(t)
	for i := range 1000 {
		if i%2 == 0 {
			ask("")
		} else {
			ask(wish)
		}
	}
	p.settle(t, descriptors, goroutines)
}
