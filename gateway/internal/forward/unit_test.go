package forward

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"specialroutes.example/gateway/internal/config"
)

func TestBudgetIsAFifthOfTheActiveRequests(t *testing.T) {
	t.Parallel()
	for active, want := range map[int64]int{0: 0, 1: 1, 5: 1, 6: 2, 10: 2, 100: 20} {
		var b budget
		b.active.Store(active)
		got := 0
		for range 200 {
			if b.take() {
				got++
			}
		}
		if got != want {
			t.Errorf("%d active: %d second sends, want %d", active, got, want)
		}
		if b.giveBack(); want > 0 && !b.take() {
			t.Errorf("%d active: what was given back cannot be taken", active)
		}
	}
}

func TestBudgetIsRaceFree(t *testing.T) {
	t.Parallel()
	var b budget
	b.active.Store(50)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				if b.take() {
					b.giveBack()
				}
			}
		})
	}
	wg.Wait()
	if n := b.resends.Load(); n != 0 {
		t.Errorf("%d second sends are left", n)
	}
}

func TestHeadEnd(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]int{
		"": -1, "HTTP/1.1 200 OK": -1, "HTTP/1.1 200 OK\r\n": -1, "HTTP/1.1 200 OK\r\n\r": -1,
		"HTTP/1.1 200 OK\r\n\r\n": 19, "HTTP/1.1 200 OK\r\n\r\nbody": 19, "HTTP/1.1 200 OK\n\nbody": 17,
		"HTTP/1.1 200 OK\r\nA: b\n\r\nbody\r\n\r\n": 24,
	} {
		if got := headEnd([]byte(head), 0); got != want {
			t.Errorf("headEnd(%q) = %d, want %d", head, got, want)
		}
	}
}

func TestFactsOfAHead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]headFacts{
		"HTTP/1.1 204 No\r\nconnection: close, x-n ,, Keep-Alive\r\nConnection:Y\r\nPRAGMA: x\r\n\r\n": {[]string{"X-N", "Y"}, true},
		"HTTP/1.1 200\r\npragma: x\r\ncache-control: y\r\n\r\n":                                        {nil, false},
	} {
		var h answerHead
		if err := h.parse([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if f := factsOf(&h); !slices.Equal(f.connection, want.connection) || f.pragma != want.pragma {
			t.Errorf("%q: facts %+v, want %+v", text, *f, want)
		}
	}
}

// The head of an answer is found wherever its bytes are divided.
func TestUpstreamConnFindsTheHeadInPieces(t *testing.T) {
	t.Parallel()
	const answer = "HTTP/1.1 103 Hints\r\nConnection: A\r\n\r\nHTTP/1.1 204 No\r\nConnection: close, X-N\r\n\r\n"
	for size := 1; size <= len(answer)+5; size++ {
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			rest := answer + "stray"
			for rest != "" {
				n := min(size, len(rest))
				if _, err := io.WriteString(there, rest[:n]); err != nil {
					return
				}
				rest = rest[n:]
			}
		}()
		c := &upstreamConn{Conn: here}
		e := c.expect(false, false, "")
		e.begun.Store(true)
		var got []byte
		buffer := make([]byte, 4096)
		for e.facts.Load() == nil {
			n, err := c.Read(buffer)
			if err != nil {
				t.Fatalf("pieces of %d: %v", size, err)
			}
			got = append(got, buffer[:n]...)
		}
		if string(got) != answer {
			t.Errorf("pieces of %d: the transport sees %q", size, got)
		}
		if f := e.facts.Load(); !slices.Equal(f.connection, []string{"X-N"}) {
			t.Errorf("pieces of %d: facts %+v", size, *f)
		}
		_ = here.Close()
	}
}

func TestUpstreamConnInsertsSlashesOnce(t *testing.T) {
	t.Parallel()
	here, there := net.Pipe()
	defer here.Close()
	seen := make(chan string)
	go func() {
		b, _ := io.ReadAll(there)
		seen <- string(b)
	}()
	c := &upstreamConn{Conn: here}
	c.expect(false, false, "//")
	for _, p := range []string{"GET /a b HTTP/1.1\r\n", "GET /x\r\n"} {
		if n, err := io.WriteString(c, p); n != len(p) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	_ = here.Close()
	if got, want := <-seen, "GET ///a b HTTP/1.1\r\nGET /x\r\n"; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	all := config.Timeouts{Response: 3 * time.Second, Idle: 5 * time.Second, Tunnel: 20 * time.Second}
	total := all
	total.Total = 4 * time.Second
	tests := []struct {
		name   string
		limits config.Timeouts
		steps  func(w *watch)
		after  time.Duration // from the start; 0 is never
		cause  error
	}{
		{"nothing is sent", all, func(*watch) {}, 5 * time.Second, errUpstreamIdle},
		{"sending goes on", all, func(w *watch) {
			for range 10 {
				time.Sleep(4 * time.Second)
				w.progress()
			}
		}, 45 * time.Second, errUpstreamIdle},
		{"no answer", all, func(w *watch) {
			time.Sleep(time.Second)
			w.enter(waiting)
		}, 4 * time.Second, errResponseTimeout},
		{"no answer to what was long in sending", all, func(w *watch) {
			for range 3 {
				time.Sleep(4 * time.Second)
				w.progress()
			}
			w.enter(waiting)
		}, 15 * time.Second, errResponseTimeout},
		{"an answer that stops", all, func(w *watch) {
			w.enter(waiting)
			time.Sleep(2 * time.Second)
			w.enter(answering)
		}, 7 * time.Second, errUpstreamIdle},
		{"a stream that stops", all, func(w *watch) {
			w.enter(answering)
			w.enter(streaming)
			time.Sleep(19 * time.Second)
			w.progress()
		}, 39 * time.Second, errUpstreamIdle},
		{"an early answer outlives the sending", all, func(w *watch) {
			w.enter(answering)
			w.enter(waiting)
			time.Sleep(4 * time.Second)
		}, 5 * time.Second, errUpstreamIdle},
		{"a second attempt", all, func(w *watch) {
			w.enter(waiting)
			time.Sleep(2 * time.Second)
			w.again()
			w.enter(waiting)
		}, 5 * time.Second, errResponseTimeout},
		{"total", total, func(w *watch) {
			w.enter(answering)
			for range 3 {
				time.Sleep(time.Second)
				w.progress()
			}
		}, 4 * time.Second, errTotalTimeout},
		{"idle alone, while waiting", config.Timeouts{Idle: time.Second}, func(w *watch) {
			w.enter(waiting)
			time.Sleep(time.Minute)
		}, 0, nil},
		{"no limits", config.Timeouts{}, func(w *watch) {
			w.enter(waiting)
			time.Sleep(time.Hour)
		}, 0, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var after time.Duration
				var cause error
				w := newWatch(tt.limits, func(err error) { after, cause = time.Since(start), err })
				tt.steps(w)
				if tt.after > 0 {
					time.Sleep(time.Hour)
				}
				w.stop()
				synctest.Wait()
				if after != tt.after || !errors.Is(cause, tt.cause) {
					t.Errorf("expired after %v: %v; want %v: %v", after, cause, tt.after, tt.cause)
				}
			})
		})
	}
}

func TestEveryErrorHasAnAnswer(t *testing.T) {
	t.Parallel()
	for _, err := range []error{errBadBody, errBodyTooLarge, errBodyIdle, errUpstreamIdle, errResponseTimeout,
		errTotalTimeout, errConnect, errBadAnswer, errUnsendable, &connectError{io.EOF}} {
		r := refusalFor(fmt.Errorf("wrapped: %w", err))
		if r.Code == "internal" || r.Status < 400 || r.Detail == "" {
			t.Errorf("%v: %+v", err, r)
		}
	}
	if r := refusalFor(io.EOF); r.Code != "internal" || r.Status != 500 || strings.Contains(r.Detail, "EOF") {
		t.Errorf("an unforeseen error: %+v", r)
	}
}
