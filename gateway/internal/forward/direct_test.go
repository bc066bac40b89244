//go:build linux

package forward

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/config"
)

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// A connection is used again only when nothing speaks against it.
func TestDirectKeepsSoundConnections(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, answer string
		kept         bool
	}{
		{"a length", okAnswer, true},
		{"no body", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", true},
		{"204", "HTTP/1.1 204 No Content\r\n\r\n", true},
		{"HTTP/1.0 that keeps", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", true},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", false},
		{"close", "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 2\r\n\r\nok", false},
		{"a length and chunks", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", false},
		{"stray bytes", okAnswer + okAnswer, false},
		{"stray bytes behind chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", false},
		{"204 with a length", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", false},
		{"204 with a coding", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			up := answerEach(t, tt.answer)
			g := serveDirect(t, nil, up.address())
			for range 5 {
				if status, body, err := g.ask(t, get); status/100 != 2 || body != "" && body != "ok" || err != nil {
					t.Fatalf("answer = %d %q, %v", status, body, err)
				}
				<-g.entries // the connection is back by then
			}
			want := int64(5)
			if tt.kept {
				want = 1
			}
			if n := up.accepted.Load(); n != want {
				t.Errorf("%d connections for 5 requests, want %d", n, want)
			}
		})
	}
}

// Row 87: an upstream that closes behind each answer fails nobody, and gets nothing
// twice, as soon as the end has arrived.
func TestDirectSeesClosedConnections(t *testing.T) {
	t.Parallel()
	closing := make(chan net.Conn, 1)
	up := script(t, func(c net.Conn, r *bufio.Reader) {
		if _, ok := takeRequest(r); ok {
			_, _ = io.WriteString(c, okAnswer)
			_ = c.(*net.TCPConn).CloseWrite()
			closing <- c
			_, _ = io.Copy(io.Discard, r)
		}
	})
	g := serveDirect(t, nil, up.address())
	for i := range 100 {
		status, body, err := g.ask(t, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
		<-closing
		if e := <-g.entries; status != 200 || body != "ok" || err != nil || e.Retries != 0 {
			t.Fatalf("request %d: %d %q, %v, %d retries", i, status, body, err, e.Retries)
		}
	}
	eventually(t, "closed by the sweep", func() bool { return g.idle() == 0 })
}

// Row 57, for bodies that are sent whole: the answer of an upstream that reads no
// further and resets is heard.
func TestDirectHearsEarlyAnswers(t *testing.T) {
	t.Parallel()
	up := script(t, func(c net.Conn, r *bufio.Reader) {
		_ = c.(*net.TCPConn).SetReadBuffer(4096)
		for line := ""; line != "\r\n"; {
			var err error
			if line, err = r.ReadString('\n'); err != nil {
				return
			}
		}
		_, _ = io.WriteString(c, "HTTP/1.1 413 Too Long\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbig")
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, r)
	})
	g := serveDirect(t, nil, up.address())
	body := strings.Repeat("x", 64<<10)
	for range 20 {
		status, answer, err := g.ask(t, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 65536\r\n\r\n"+body)
		if status != 413 || answer != "big" || err != nil {
			t.Fatalf("answer = %d %q, %v; want 413 big", status, answer, err)
		}
	}
}

// Row 71: a 101 that nobody asked for is no answer, and leaves no descriptor behind.
func TestDirectRefusesUnaskedUpgrades(t *testing.T) {
	t.Parallel()
	up := answerEach(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	g := serveDirect(t, nil, up.address())
	for range 100 {
		if status, _, _ := g.ask(t, get); status != http.StatusBadGateway {
			t.Fatalf("status = %d, want 502", status)
		}
		if e := <-g.entries; e.Code != "bad_answer" {
			t.Fatalf("logged %q", e.Code)
		}
	}
	if n := g.idle(); n != 0 || up.accepted.Load() != 100 {
		t.Errorf("%d connections are kept, %d were made; want 0, 100", n, up.accepted.Load())
	}
}

// Row 86: what a refused connect was to carry goes whole to the next instance.
func TestDirectSendsWholeBodiesAgain(t *testing.T) {
	t.Parallel()
	var got []byte
	up := script(t, func(c net.Conn, r *bufio.Reader) {
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			got, _ = io.ReadAll(req.Body)
			_, _ = io.WriteString(c, okAnswer)
		}
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	g := serveDirect(t, nil, l.Addr().String(), up.address())
	body := strings.Repeat("0123456789", 6000)
	for range 2 { // one of them begins at the instance that is away
		status, answer, err := g.ask(t, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n"+body)
		if status != 200 || answer != "ok" || err != nil || string(got) != body {
			t.Errorf("answer = %d %q, %v; %d bytes arrived, want 60000", status, answer, err, len(got))
		}
		<-g.entries
	}
}

// A head of almost the limit is read, whatever pieces it comes in; one over it is
// none.
func TestDirectReadsLongHeads(t *testing.T) {
	t.Parallel()
	for _, size := range []int{200 << 10, answerHeadMost + 1} {
		line := "X-A: " + strings.Repeat("a", 1000) + "\r\n"
		head := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + strings.Repeat(line, size/len(line)+1) + "\r\nok"
		up := script(t, func(c net.Conn, r *bufio.Reader) {
			if _, ok := takeRequest(r); !ok {
				return
			}
			for rest := head; rest != ""; {
				n := min(len(rest), 10_007)
				if _, err := io.WriteString(c, rest[:n]); err != nil {
					return
				}
				rest = rest[n:]
			}
			_, _ = io.Copy(io.Discard, r)
		})
		g := serveDirect(t, nil, up.address())
		want := 200
		if size > answerHeadMost {
			want = 502
		}
		if status, _, err := g.ask(t, get); status != want || err != nil {
			t.Errorf("a head of %d bytes: %d, %v; want %d", len(head), status, err, want)
		}
	}
}

// random returns bytes that are the same each time.
func random(n int) []byte {
	p := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(p)
	return p
}

// Long answers arrive byte for byte, whoever moves them: the kernel, a buffer, or
// both in turn.
func TestDirectMovesLongAnswers(t *testing.T) {
	t.Parallel()
	body := random(3<<20 + 17)
	want := sha256.Sum256(body)
	for name, head := range map[string]string{
		"length":        fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(body)),
		"until the end": "HTTP/1.1 200 OK\r\n\r\n",
	} {
		for _, piece := range []int{len(body), 100_000, 4096} {
			t.Run(fmt.Sprintf("%s, in pieces of %d", name, piece), func(t *testing.T) {
				t.Parallel()
				up := script(t, func(c net.Conn, r *bufio.Reader) {
					if _, ok := takeRequest(r); !ok {
						return
					}
					_, _ = io.WriteString(c, head)
					for rest := body; len(rest) > 0; {
						n, err := c.Write(rest[:min(piece, len(rest))])
						if err != nil {
							return
						}
						rest = rest[n:]
					}
				})
				g := serveDirect(t, nil, up.address())
				status, got, err := g.ask(t, get)
				if status != 200 || err != nil || sha256.Sum256([]byte(got)) != want {
					t.Errorf("%d, %d bytes of %d, %v", status, len(got), len(body), err)
				}
				if e := <-g.entries; e.BytesOut != int64(len(body)) || e.Code != "" {
					t.Errorf("logged %d bytes and %q", e.BytesOut, e.Code)
				}
			})
		}
	}
}

// Row 63: an upstream that dies while the kernel moves its answer cuts the client's.
func TestDirectCutsLongAnswers(t *testing.T) {
	t.Parallel()
	up := script(t, func(c net.Conn, r *bufio.Reader) {
		if _, ok := takeRequest(r); ok {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n")
			_, _ = c.Write(random(1 << 20))
		}
	})
	g := serveDirect(t, nil, up.address())
	status, body, err := g.ask(t, get)
	if status != 200 || len(body) > 1<<20 || err == nil {
		t.Errorf("%d, %d bytes, %v; want 200 and a cut", status, len(body), err)
	}
	if e := <-g.entries; e.Status != 200 || e.Code != "answer_cut" {
		t.Errorf("logged %d %q, want 200 answer_cut", e.Status, e.Code)
	}
}

func idleOf(d time.Duration) func(*config.Config) {
	return func(c *config.Config) { c.Timeouts.Idle = d }
}

// The idle limit holds while the kernel moves an answer, on either side, and does
// not end one that only takes long.
func TestDirectKeepsTheIdleLimitOfLongAnswers(t *testing.T) {
	t.Parallel()
	const idle = 400 * time.Millisecond
	t.Run("an upstream that stops", func(t *testing.T) {
		t.Parallel()
		up := script(t, func(c net.Conn, r *bufio.Reader) {
			if _, ok := takeRequest(r); ok {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n")
				_, _ = c.Write(random(1 << 20))
				_, _ = io.Copy(io.Discard, r)
			}
		})
		g := serveDirect(t, idleOf(idle), up.address())
		if _, _, err := g.ask(t, get); err == nil {
			t.Error("the answer ends as if it were whole")
		}
		if e := <-g.entries; e.Code != "idle_timeout" {
			t.Errorf("logged %q, want idle_timeout", e.Code)
		}
	})
	t.Run("an upstream that takes its time", func(t *testing.T) {
		t.Parallel()
		up := script(t, func(c net.Conn, r *bufio.Reader) {
			if _, ok := takeRequest(r); ok {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
				for range 10 {
					time.Sleep(idle / 4) // the pace of this upstream is what is tested
					_, _ = c.Write(random(100_000))
				}
			}
		})
		g := serveDirect(t, idleOf(idle), up.address())
		if status, body, err := g.ask(t, get); status != 200 || len(body) != 1_000_000 || err != nil {
			t.Errorf("%d, %d bytes, %v", status, len(body), err)
		}
	})
	t.Run("a client that stops reading", func(t *testing.T) {
		t.Parallel()
		up := script(t, func(c net.Conn, r *bufio.Reader) {
			if _, ok := takeRequest(r); ok {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
				for p := random(1 << 20); ; {
					if _, err := c.Write(p); err != nil {
						return
					}
				}
			}
		})
		g := serveDirect(t, idleOf(idle), up.address())
		_, _ = io.WriteString(g.dial(t), get)
		if e := <-g.entries; e.Status != 200 || e.Code != "client_idle" {
			t.Errorf("logged %d %q, want 200 client_idle", e.Status, e.Code)
		}
	})
}

// A client that reads on is not cut, though it takes longer than the limit to make room
// for what a socket takes at once.
func TestDirectKeepsClientsThatSlowDown(t *testing.T) {
	t.Parallel()
	const idle, size = 400 * time.Millisecond, 16 << 20
	for name, head := range map[string]string{"length": "Content-Length: " + strconv.Itoa(size) + "\r\n\r\n", "to the end": "\r\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := script(t, func(c net.Conn, r *bufio.Reader) {
				if _, ok := takeRequest(r); ok {
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+head)
					_, _ = c.Write(random(size))
				}
			})
			g := serveDirect(t, idleOf(idle), up.address())
			c := g.dial(t)
			_ = c.(*net.TCPConn).SetReadBuffer(16 << 10)
			_, _ = io.WriteString(c, get)
			if _, err := io.CopyN(io.Discard, c, 1<<20); err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(8 * idle); time.Now().Before(end); time.Sleep(idle / 40) { // the pace of this client is what is tested
				if _, err := io.CopyN(io.Discard, c, 4<<10); err != nil {
					t.Fatal(err)
				}
			}
			select {
			case e := <-g.entries:
				t.Errorf("ended after %d bytes: %q", e.BytesOut, e.Code)
			default:
			}
		})
	}
}

// Row 62: a client that leaves is noticed soon, also where bytes that it sent before
// hide its end, and the instance does not pay for it.
func TestDirectNoticesClientsThatLeave(t *testing.T) {
	t.Parallel()
	for name, behind := range map[string]string{"alone": "", "with a further request": get} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked, left := make(chan struct{}), make(chan struct{})
			up := script(t, func(_ net.Conn, r *bufio.Reader) {
				if _, ok := takeRequest(r); ok {
					close(asked)
					_, _ = io.Copy(io.Discard, r)
					close(left)
				}
			})
			g := serveDirect(t, nil, up.address())
			c := g.dial(t)
			_, _ = io.WriteString(c, get+behind)
			<-asked
			began := time.Now()
			_ = c.Close()
			<-left
			if took := time.Since(began); took > time.Second {
				t.Errorf("noticed after %v, want < 1 s", took)
			}
			if e := <-g.entries; e.Status != statusClientGone || e.Code != "" {
				t.Errorf("logged %d %q, want 499", e.Status, e.Code)
			}
		})
	}
}

// TLS: connections are checked, and used again unless something came behind an
// answer, be it that TLS has read it already.
func TestDirectOverTLS(t *testing.T) {
	t.Parallel()
	for name, stray := range map[string]string{"a sound one": "", "one with stray bytes": okAnswer} {
		t.Run(name, func(t *testing.T) {
			made := make(chan struct{}, 100)
			up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c, rw, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				for {
					_, _ = io.WriteString(c, okAnswer+stray)
					if _, ok := takeRequest(rw.Reader); !ok {
						return
					}
				}
			}))
			up.Config.ConnState = func(_ net.Conn, s http.ConnState) {
				if s == http.StateNew {
					made <- struct{}{}
				}
			}
			up.StartTLS()
			defer up.Close()
			roots := x509.NewCertPool()
			roots.AddCert(up.Certificate())
			c := config.Default()
			g := serveDirectWith(t, Options{RootCAs: func() *x509.CertPool { return roots }}, &c, newAtEndpoint(t, up.URL))
			for range 4 {
				if status, body, err := g.ask(t, get); status != 200 || body != "ok" || err != nil {
					t.Fatalf("answer = %d %q, %v", status, body, err)
				}
				<-g.entries
			}
			want := 1
			if stray != "" {
				want = 4
			}
			if len(made) != want {
				t.Errorf("%d connections for 4 requests, want %d", len(made), want)
			}
		})
	}
}

// Neither a request nor an answer is written in more pieces than it takes.
func TestDirectWritesInOnePiece(t *testing.T) {
	t.Parallel()
	sizes := make(chan int, 1)
	up := script(t, func(c net.Conn, _ *bufio.Reader) {
		p := make([]byte, 100<<10)
		n, err := c.Read(p)
		if err != nil {
			return
		}
		sizes <- n - bytes.Index(p[:n], []byte("\r\n\r\n")) - 4
		_, _ = io.WriteString(c, okAnswer)
	})
	g := serveDirect(t, nil, up.address())
	c := g.dial(t)
	_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n"+strings.Repeat("x", 1000))
	if n := <-sizes; n != 1000 {
		t.Errorf("%d bytes of the body came with the head, want 1000", n)
	}
	p := make([]byte, 4096)
	if n, err := c.Read(p); err != nil || !strings.HasSuffix(string(p[:n]), "\r\n\r\nok") {
		t.Errorf("first read = %q, %v; want head and body", p[:n], err)
	}
}
