package forwardtest

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/services/routing"
)

// echo answers with the request's body.
func echo(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(b)
}

// framingOf answers with how the request came: its method, length and encoding,
// and the hash of its body.
func framingOf(w http.ResponseWriter, r *http.Request) {
	hash := sha256.New()
	n, err := io.Copy(hash, r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	fmt.Fprintf(w, "%s %d %v %q %d %s", r.Method, r.ContentLength, r.TransferEncoding,
		r.Header.Values("Content-Length"), n, hex.EncodeToString(hash.Sum(nil)))
}

func (s *suite) testRequestBodies(t *testing.T) {
	t.Run("keep their framing, whatever the verb", s.testFraming)
	t.Run("that are not there have length 0 where one is expected", s.testNoBody)
	t.Run("of 100 MiB pass the alternate in flat memory", s.testLongBody)
	t.Run("that are broken are the client's fault", s.testBrokenBodies)
	t.Run("with an early answer", s.testEarlyAnswer)
	t.Run("wait for 100-continue", s.testExpect)
	t.Run("that nobody reads do not become the next request", s.testUnreadBody)
}

func (s *suite) testFraming(t *testing.T) {
	up := newUpstream(t, framingOf)
	g := s.gateway(t, setup{instances: []string{up.address()}})
	hash := func(s string) string { h := sha256.Sum256([]byte(s)); return hex.EncodeToString(h[:]) }
	none := hash("")
	for _, verb := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "BREW"} {
		// Without a body; Go's server says length 0 with and without the field.
		a := g.request(t, head(verb, "/x"))
		if want := fmt.Sprintf("%s 0 [] [] 0 %s", verb, none); a.body != want && verb != "POST" && verb != "PUT" && verb != "PATCH" {
			t.Errorf("%s without a body arrives as %q, want %q", verb, a.body, want)
		}
		if verb == "TRACE" {
			continue
		}
		a = g.request(t, head(verb, "/x", "Content-Length: 2")+"hi")
		if want := fmt.Sprintf(`%s 2 [] ["2"] 2 %s`, verb, hash("hi")); a.body != want {
			t.Errorf("%s with a length arrives as %q, want %q", verb, a.body, want)
		}
		a = g.request(t, head(verb, "/x", "Transfer-Encoding: chunked")+"2;a=b\r\nhi\r\n0\r\n\r\n")
		if want := fmt.Sprintf("%s -1 [chunked] [] 2 %s", verb, hash("hi")); a.body != want {
			t.Errorf("%s chunked arrives as %q, want %q", verb, a.body, want)
		}
		a = g.request(t, head(verb, "/x", "Transfer-Encoding: chunked")+"0\r\n\r\n")
		if want := fmt.Sprintf("%s -1 [chunked] [] 0 %s", verb, none); a.body != want {
			t.Errorf("%s chunked without a chunk arrives as %q, want %q", verb, a.body, want)
		}
	}
	for _, verb := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		a := g.request(t, head(verb, "/x", "Content-Length: 0"))
		if want := fmt.Sprintf(`%s 0 [] ["0"] 0 %s`, verb, none); a.body != want {
			t.Errorf("%s of length 0 arrives as %q, want %q", verb, a.body, want)
		}
	}
}

func (s *suite) testNoBody(t *testing.T) {
	up, seen := strictUpstream(t)
	g := s.gateway(t, setup{instances: []string{up.address()}})
	for i, verb := range []string{"POST", "PUT", "PATCH", "GET", "DELETE", "OPTIONS"} {
		g.request(t, head(verb, "/x")).is(t, 200, "ok")
		var want []string
		if i < 3 {
			want = []string{"0"}
		}
		if got := fieldLines(seen.list()[i].head, "Content-Length"); !slices.Equal(got, want) {
			t.Errorf("%s without a body arrives with Content-Length %q, want %q", verb, got, want)
		}
	}
}

// testLongBody also shows that the old service sees nothing of a call that the
// alternate gets.
func (s *suite) testLongBody(t *testing.T) {
	const size = 100 << 20
	old := newUpstream(t, ok("old"))
	alternate := newUpstream(t, framingOf)
	g := s.gateway(t, setup{
		instances: []string{old.address()},
		records:   []*routing.Record{bookRecord(alternate.URL, 5)},
		draw:      always(10),
	})
	hash := sha256.New()
	source := rand.NewChaCha8([32]byte{1})
	peak := watchHeap(t)
	req, err := http.NewRequest("PUT", "http://"+g.address+prefix+"/x?q=%zz;1", io.TeeReader(io.LimitReader(source, size), hash))
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = size
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`PUT %d [] ["%d"] %d %s`, size, size, size, hex.EncodeToString(hash.Sum(nil)))
	if string(body) != want {
		t.Errorf("arrives as %q, want %q", body, want)
	}
	if n, o := alternate.calls.Load(), old.calls.Load(); n != 1 || o != 0 {
		t.Errorf("alternate called %d times, old %d; want 1, 0", n, o)
	}
	if grown := peak(); grown > 80<<20 {
		t.Errorf("the heap grew by %d MiB for a body of %d", grown>>20, size>>20)
	}
	if e := g.entries.only(t); e.BytesIn != size {
		t.Errorf("logged %d bytes in, want %d", e.BytesIn, size)
	}
}

// watchHeap samples what collections of the heap leave alive, until the returned
// function is called, which tells by how much it grew at most. A body that is held
// whole makes the heap grow, and so is there when it is collected. Other tests of the
// suite run at the same time, and hold some tens of MiB.
func watchHeap(t *testing.T) func() uint64 {
	t.Helper()
	heap := func() uint64 {
		alive := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(alive)
		return alive[0].Value.Uint64()
	}
	runtime.GC()
	base, most := heap(), uint64(0)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				most = max(most, heap())
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-done
		return max(most, base) - base
	}
}

// Rows 7, 8, 9 and 20: what is not framed as HTTP asks for is answered 400, and
// does not count against the instance.
func (s *suite) testBrokenBodies(t *testing.T) {
	up := newUpstream(t, echo)
	g := s.gateway(t, setup{instances: []string{up.address()}})
	for _, body := range []string{
		"10000000000000002\r\nhi", "0x2\r\nhi\r\n", "+2\r\nhi\r\n", "0_2\r\nhi\r\n", "\r\nhi", "INVALID\r\nhi\r\n",
		"2\r\nhiX\r\n", "2\r\nhi\r\nz\r\n", "2\nhi\r\n0\r\n\r\n", "2\r\nhi\n0\r\n\r\n",
	} {
		c := g.dial(t)
		c.send(head("POST", "/x", "Transfer-Encoding: chunked") + body)
		c.read("POST").refused(t, 400, "bad_body")
		if !c.ended() {
			t.Errorf("%q: the connection goes on", body)
		}
	}
	s.floodWithExtensions(t, g)
	for range 5 {
		g.request(t, head("POST", "/x", "Content-Length: 2")+"hi").is(t, 200, "hi")
	}
	for _, e := range g.entries.wait(t, 16) {
		if e.Fallback != "" || e.Retries != 0 {
			t.Errorf("fallback %q after %d retries: the instance paid for its client", e.Fallback, e.Retries)
		}
	}
}

// floodWithExtensions shows row 10: chunks of one byte, each with a long
// extension, are cut off before they have cost much.
func (s *suite) floodWithExtensions(t *testing.T, g *gateway) {
	t.Helper()
	c := g.dial(t)
	c.send(head("POST", "/x", "Transfer-Encoding: chunked"))
	sent := make(chan int)
	go func() {
		chunk, n := "1;"+strings.Repeat("a", 4000)+"\r\nx\r\n", 0
		for ; n < 64<<20; n += len(chunk) {
			if _, err := io.WriteString(c.Conn, chunk); err != nil {
				break
			}
		}
		sent <- n
	}()
	c.read("POST").refused(t, 400, "bad_body")
	_ = c.Close()
	if n := <-sent; n > 32<<20 { // what the system's buffers hold, and no more
		t.Errorf("%d bytes were taken", n)
	}
}

// Row 57: an upstream that refuses a long body is heard, whether it says so at
// once or in the middle, and whether it reads on or resets the connection.
func (s *suite) testEarlyAnswer(t *testing.T) {
	for _, tt := range []struct {
		name   string
		reads  int64 // before it answers
		drains bool
	}{
		{"at once, and reads on", 0, true},
		{"at once, and resets", 0, false},
		{"in the middle, and reads on", 1 << 20, true},
		{"in the middle, and resets", 1 << 20, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			up := newRaw(t, func(u *raw, c net.Conn, r *bufio.Reader) {
				if u.readHead(r) == "" {
					return
				}
				_, _ = io.CopyN(io.Discard, r, tt.reads)
				_, _ = io.WriteString(c, "HTTP/1.1 413 Too Long\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig")
				if tt.drains {
					_ = c.(*net.TCPConn).CloseWrite()
					_, _ = io.Copy(io.Discard, r)
				}
			})
			g := s.gateway(t, setup{instances: []string{up.address()}})
			for range 5 {
				c := g.dial(t)
				c.send(head("POST", "/x", "Content-Length: 4194304"))
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					_, _ = io.Copy(c.Conn, io.LimitReader(zeros{}, 4<<20))
				}()
				if a := c.read("POST"); a.StatusCode != 413 || a.body != "big" {
					t.Errorf("status %d %q, want 413", a.StatusCode, a.body)
				}
				_ = c.Close()
				<-sent
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Row 19: a connection whose body was never sent is not used again.
func (s *suite) testExpect(t *testing.T) {
	up := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refuse" {
			w.WriteHeader(http.StatusExpectationFailed)
			return
		}
		echo(w, r)
	})
	g := s.gateway(t, setup{instances: []string{up.address()}})
	for range 50 {
		c := g.dial(t)
		c.send(head("POST", "/refuse", "Expect: 100-continue", "Content-Length: 5"))
		if a := c.read("POST"); a.StatusCode != http.StatusExpectationFailed {
			t.Fatalf("status = %d, want 417", a.StatusCode)
		}
		g.request(t, head("POST", "/x", "Content-Length: 2")+"hi").is(t, 200, "hi")
	}
	c := g.dial(t)
	c.send(head("POST", "/x", "Expect: 100-continue", "Content-Length: 5"))
	if a := c.read("POST"); a.StatusCode != http.StatusContinue {
		t.Fatalf("status = %d, want 100", a.StatusCode)
	}
	c.send("hello")
	c.read("POST").is(t, 200, "hello")
}

func (s *suite) testUnreadBody(t *testing.T) {
	up := newUpstream(t, ok("reached"))
	g := s.gateway(t, setup{config: func(c *config.Config) {
		c.Routes = append(c.Routes, config.Route{Prefix: "/smuggled", Service: "other"})
		c.Instances = map[string][]config.Instance{"other": {{Address: up.address()}}}
	}})
	const hidden = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
	c := g.dial(t)
	c.send(head("POST", "/x", "Content-Length: 1000"))
	c.read("POST").refused(t, 503, "no_instance")
	_, _ = io.WriteString(c, hidden+strings.Repeat(" ", 1000-len(hidden)))
	if !c.ended() {
		t.Error("the connection goes on after a body that was not read")
	}
	withheld := g.dial(t)
	withheld.send(head("POST", "/x", "Content-Length: 1000"))
	withheld.read("POST").refused(t, 503, "no_instance")
	if !withheld.ended() {
		t.Error("the connection waits for a body that nobody reads")
	}
	if n := up.calls.Load(); n != 0 {
		t.Errorf("what was in a body was taken for a request %d times", n)
	}
}
