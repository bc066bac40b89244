package forwardtest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/config"
)

// Short limits for tests: brief is over soon, ample is not over in any test.
const (
	brief = 300 * time.Millisecond
	ample = time.Minute
)

func (g *gateway) connectLimit() time.Duration { return config.Default().Timeouts.Connect }

func limits(change func(*config.Timeouts)) func(*config.Config) {
	return func(c *config.Config) {
		c.Timeouts.Response, c.Timeouts.Idle, c.Timeouts.Tunnel, c.Timeouts.Total = ample, ample, ample, 0
		change(&c.Timeouts)
	}
}

func (s *suite) testTimeLimits(t *testing.T) {
	t.Run("response runs from the last byte of the request", s.testResponseLimit)
	t.Run("a client that stops sending", s.testSlowBody)
	t.Run("an upstream that stops reading", s.testStalledUpload)
	t.Run("an upstream that stops in mid-answer", s.testStalledAnswer)
	t.Run("a client that stops reading", s.testSlowReader)
	t.Run("a client that does not read 1xx answers", s.testNeverReadsInformational)
	t.Run("a client that asks and never reads", s.testNeverReads)
	t.Run("a kept connection outlives them", s.testKeptConnection)
	t.Run("total", s.testTotal)
	t.Run("total while a body comes", s.testTotalWhileBody)
	t.Run("head", s.testHeadLimit)
	t.Run("none", s.testNoLimits)
}

func (s *suite) testResponseLimit(t *testing.T) {
	up := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
		}
	})
	g := s.gateway(t, setup{instances: []string{up.address()}, config: limits(func(l *config.Timeouts) { l.Response = 4 * brief })})
	// The body takes longer than the limit, the answer does not.
	c := g.dial(t)
	c.send(head("POST", "/fast", "Content-Length: 5"))
	for range 5 {
		time.Sleep(brief) // the pace of this client is what is tested
		c.send("x")
	}
	c.read("POST").is(t, 200, "")
	g.get(t, "/slow").refused(t, 504, "response_timeout")
}

// Row 54: the client gets 408, and the upstream connection is freed.
func (s *suite) testSlowBody(t *testing.T) {
	ended := make(chan error, 2)
	up := newUpstream(t, func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		ended <- err
	})
	g := s.gateway(t, setup{instances: []string{up.address()}, config: limits(func(l *config.Timeouts) { l.Idle = brief })})
	// A short body may be waited for before the upstream is told of it.
	for i, length := range []string{"100000", "100"} {
		c := g.dial(t)
		c.send(head("POST", "/x", "Content-Length: "+length) + "x")
		c.read("POST").refused(t, 408, "request_timeout")
		if !c.ended() {
			t.Error("the connection goes on")
		}
		if e := g.entries.wait(t, i+1)[i]; e.Status != 408 || e.Fallback != "" {
			t.Errorf("logged %d, fallback %q", e.Status, e.Fallback)
		}
	}
	if err := within(t, ended, "the upstream waits for the rest"); err == nil {
		t.Error("the upstream takes the part for the whole")
	}
}

func (s *suite) testStalledUpload(t *testing.T) {
	g := s.gateway(t, setup{instances: []string{newStalled(t)}, config: limits(func(l *config.Timeouts) { l.Idle = brief })})
	c := g.dial(t)
	c.send(head("POST", "/x", "Content-Length: 1073741824"))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(c.Conn, io.LimitReader(zeros{}, 1<<30))
	}()
	c.read("POST").refused(t, 504, "idle_timeout")
	_ = c.Close()
	<-done
}

// newStalled accepts connections and never reads from them.
func newStalled(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String() // the kernel accepts
}

func (s *suite) testStalledAnswer(t *testing.T) {
	up := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		_, _ = io.WriteString(w, "abc")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(4 * brief):
			_, _ = io.WriteString(w, "def")
		}
	})
	g := s.gateway(t, setup{instances: []string{up.address()}, config: limits(func(l *config.Timeouts) { l.Idle = brief })})
	if a := g.get(t, "/x?type=text/plain"); a.body != "abc" || a.err == nil {
		t.Errorf("answer = %q, %v; want abc and a broken transfer", a.body, a.err)
	}
	if e := g.entries.only(t); e.Code != "idle_timeout" {
		t.Errorf("logged code %q, want idle_timeout", e.Code)
	}
	// Row 56: an event stream may be silent for longer.
	g.get(t, "/x?type=text/event-stream%3Bcharset=utf-8").is(t, 200, "abcdef")
}

func (s *suite) testSlowReader(t *testing.T) {
	done := make(chan struct{})
	up := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		defer close(done)
		_, _ = io.Copy(w, io.LimitReader(zeros{}, 1<<30))
	})
	g := s.gateway(t, setup{instances: []string{up.address()}, config: limits(func(l *config.Timeouts) { l.Idle = brief })})
	c := g.dial(t)
	c.send(head("GET", "/x"))
	if e := g.entries.only(t); e.Status != 200 && e.Status != 499 || e.Code != "client_idle" {
		t.Errorf("logged %d %q, want client_idle", e.Status, e.Code)
	}
	<-done
}

// What a client does not take is not the instance's fault, and what is cut within a
// 1xx answer is not followed by another one.
func (s *suite) testNeverReadsInformational(t *testing.T) {
	hint := "HTTP/1.1 103 Early Hints\r\nLink: " + strings.Repeat("a", 200<<10) + "\r\n\r\n"
	up := newRaw(t, func(u *raw, c net.Conn, r *bufio.Reader) {
		for {
			switch head := u.readHead(r); {
			case head == "":
				return
			case strings.Contains(head, "/hints"):
				for range 60 {
					if _, err := io.WriteString(c, hint); err != nil {
						return
					}
				}
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	g := s.gateway(t, setup{instances: []string{up.address()}, config: limits(func(l *config.Timeouts) { l.Idle = brief })})
	const clients = 3 // as many as open a circuit
	for i := range clients {
		c := g.dial(t)
		_ = c.Conn.(*net.TCPConn).SetReadBuffer(64 << 10)
		c.send(head("GET", "/hints"))
		if e := g.entries.wait(t, i+1)[i]; e.Status != 499 || e.Code != "client_idle" {
			t.Errorf("logged %d %q, want 499 client_idle", e.Status, e.Code)
		}
		all, _ := io.ReadAll(c.Conn)
		if i := strings.LastIndex(string(all), "HTTP/1.1 "); i < 0 || !strings.HasPrefix(hint, string(all[i:])) {
			t.Errorf("the part of a 1xx is followed by %.100q", all[max(i, 0):])
		}
	}
	g.get(t, "/x").is(t, 200, "ok")
	if e := g.entries.wait(t, clients+1)[clients]; e.Fallback != "" {
		t.Errorf("fallback %q: the instance pays for its clients", e.Fallback)
	}
}

// The answers are too short to be written before their requests are over.
func (s *suite) testNeverReads(t *testing.T) {
	up := newUpstream(t, ok(strings.Repeat("x", 1500)))
	g := s.gateway(t, setup{instances: []string{up.address()}, config: limits(func(l *config.Timeouts) { l.Idle = brief })})
	c := g.dial(t)
	requests := strings.Repeat(head("GET", "/x"), 1000)
	_ = c.SetDeadline(time.Now().Add(2 * soon))
	for {
		if _, err := io.WriteString(c.Conn, requests); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection goes on")
			}
			return
		}
	}
}

func (s *suite) testKeptConnection(t *testing.T) {
	up := newUpstream(t, ok("ok"))
	g := s.gateway(t, setup{instances: []string{up.address()}, config: limits(func(l *config.Timeouts) { l.Idle = brief })})
	c := g.dial(t)
	for range 2 {
		c.send(head("GET", "/x"))
		c.read("GET").is(t, 200, "ok")
		time.Sleep(2 * brief) // the pace of this client is what is tested
	}
}

func (s *suite) testTotal(t *testing.T) {
	up := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(brief / 10)
		}
	})
	g := s.gateway(t, setup{instances: []string{up.address()}, config: limits(func(l *config.Timeouts) { l.Total = 2 * brief })})
	if a := g.get(t, "/x"); a.err == nil {
		t.Error("the answer ends as if it were whole")
	}
	if e := g.entries.only(t); e.Code != "total_timeout" || e.Duration > 20*brief {
		t.Errorf("logged code %q after %v", e.Code, e.Duration)
	}
}

// The time that a client takes to send its body counts too, however steadily it comes,
// before the upstream is asked and after.
func (s *suite) testTotalWhileBody(t *testing.T) {
	up := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	g := s.gateway(t, setup{instances: []string{up.address()}, config: limits(func(l *config.Timeouts) { l.Total = 4 * brief })})
	for i, length := range []int{1000, 3} {
		c := g.dial(t)
		c.send(head("POST", "/x", "Content-Length: "+strconv.Itoa(length)))
		go func() {
			for range min(length, 20) {
				time.Sleep(brief) // the pace of this client is what is tested
				if _, err := io.WriteString(c.Conn, "x"); err != nil {
					return
				}
			}
		}()
		c.read("POST").refused(t, 504, "total_timeout")
		if e := g.entries.wait(t, i+1)[i]; e.Duration > 6*brief {
			t.Errorf("%d bytes: over after %v, want %v", length, e.Duration, 4*brief)
		}
	}
}

// Row 53: a head that does not come is not waited for.
func (s *suite) testHeadLimit(t *testing.T) {
	g := s.gateway(t, setup{config: func(c *config.Config) { c.Timeouts.Header = brief }})
	c := g.dial(t)
	c.send("GET / HTTP/1.1\r\nHost:")
	began := time.Now()
	_, _ = io.Copy(io.Discard, c.r)
	if took := time.Since(began); took > soon/2 {
		t.Errorf("the connection was closed after %v", took)
	}
}

func (s *suite) testNoLimits(t *testing.T) {
	up := newUpstream(t, ok(strings.Repeat("x", 1000)))
	g := s.gateway(t, setup{instances: []string{up.address()}, config: func(c *config.Config) {
		c.Timeouts = config.Timeouts{Connect: time.Second, Header: time.Second, KeepAlive: time.Second}
	}})
	if a := g.get(t, "/x"); a.StatusCode != 200 || len(a.body) != 1000 {
		t.Errorf("answer = %d, %d bytes", a.StatusCode, len(a.body))
	}
}
