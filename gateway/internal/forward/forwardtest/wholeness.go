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
	"strconv"
	"strings"
	"testing"
)

func (s *suite) testWholeness(t *testing.T) {
	t.Run("request bodies around 64 KiB", s.testBodyBorder)
	t.Run("request bodies that are sent again", s.testBodyAgain)
	t.Run("long answers", s.testLongAnswers)
	t.Run("killed upstreams", s.testKilledUpstream)
	t.Run("answers without their last line", s.testCutBeforeLastLine)
	t.Run("answers before the body is there", s.testAnswerWhileReading)
}

// noise returns n bytes that are not to be guessed, and their hash.
func noise(n int) (bytes, hash string) {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(b)
	sum := sha256.Sum256(b)
	return string(b), hex.EncodeToString(sum[:])
}

// chunksOf frames a body in chunks of at most size.
func chunksOf(body string, size int) string {
	var b strings.Builder
	for body != "" {
		n := min(size, len(body))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	return b.String() + "0\r\n\r\n"
}

// testBodyBorder sends bodies of lengths around those at which a path may take
// another way, twice on one connection.
func (s *suite) testBodyBorder(t *testing.T) {
	up := newUpstream(t, framingOf)
	g := s.gateway(t, setup{instances: []string{up.address()}})
	for _, n := range []int{0, 1, 4095, 4096, 4097, 65_535, 65_536, 65_537, 131_072, 1_000_000} {
		body, hash := noise(n)
		c := g.dial(t)
		for range 2 {
			c.send(head("POST", "/x", "Content-Length: "+strconv.Itoa(n)) + body)
			c.read("POST").is(t, 200, fmt.Sprintf(`POST %d [] ["%d"] %d %s`, n, n, n, hash))
			c.send(head("PUT", "/x", "Transfer-Encoding: chunked") + chunksOf(body, 10_000))
			c.read("PUT").is(t, 200, fmt.Sprintf("PUT -1 [chunked] [] %d %s", n, hash))
		}
	}
	for i, e := range g.entries.wait(t, 40) {
		if want := []int64{0, 1, 4095, 4096, 4097, 65_535, 65_536, 65_537, 131_072, 1_000_000}[i/4]; e.BytesIn != want {
			t.Errorf("entry %d has %d bytes in, want %d", i, e.BytesIn, want)
		}
	}
}

// Row 86 and R3: whoever takes the body at the second attempt gets all of it.
func (s *suite) testBodyAgain(t *testing.T) {
	for _, n := range []int{0, 1, 65_535, 65_536, 65_537, 1_000_000} {
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d bytes, chunked %v", n, chunked), func(t *testing.T) {
				up := newUpstream(t, framingOf)
				g := s.gateway(t, setup{instances: []string{closedPort(t), up.address()}})
				body, hash := noise(n)
				for range 2 { // one of them begins at the dead instance
					request := head("PUT", "/x", "Content-Length: "+strconv.Itoa(n)) + body
					if chunked {
						request = head("PUT", "/x", "Transfer-Encoding: chunked") + chunksOf(body, 32<<10)
					}
					a := g.request(t, request)
					if want := fmt.Sprintf(" %d %s", n, hash); a.StatusCode != 200 || !strings.HasSuffix(a.body, want) {
						t.Errorf("answer = %d %q, want %q at its end", a.StatusCode, a.body, want)
					}
				}
				if n := up.calls.Load(); n != 2 {
					t.Errorf("the upstream was called %d times for 2 requests", n)
				}
				retries := 0
				for _, e := range g.entries.wait(t, 2) {
					retries += e.Retries
				}
				if retries != 1 {
					t.Errorf("%d retries, want 1", retries)
				}
			})
		}
	}
}

// testLongAnswers shows that answers of every framing and length arrive as they
// were sent, on a kept connection, and to HTTP/1.0.
func (s *suite) testLongAnswers(t *testing.T) {
	for _, n := range []int{1 << 10, 65_536, 1 << 20, 16 << 20} {
		body, hash := noise(n)
		for name, answer := range map[string]string{
			"length":        "HTTP/1.1 200 OK\r\nContent-Length: " + strconv.Itoa(n) + "\r\n\r\n" + body,
			"chunked":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunksOf(body, 50_000),
			"until the end": "HTTP/1.1 200 OK\r\n\r\n" + body,
		} {
			t.Run(fmt.Sprintf("%d bytes, %s", n, name), func(t *testing.T) {
				up := newRaw(t, func(u *raw, c net.Conn, r *bufio.Reader) {
					for u.readHead(r) != "" {
						if _, err := io.WriteString(c, answer); err != nil || name == "until the end" {
							return
						}
					}
				})
				g := s.gateway(t, setup{instances: []string{up.address()}})
				c := g.dial(t)
				old := strings.Replace(head("GET", "/x"), "HTTP/1.1", "HTTP/1.0", 1)
				for i, request := range []string{head("GET", "/x"), head("GET", "/x"), old} {
					c.send(request)
					res, err := http.ReadResponse(c.r, nil)
					if err != nil {
						t.Fatal(err)
					}
					sum := sha256.New()
					got, err := io.Copy(sum, res.Body)
					if err != nil || got != int64(n) || hex.EncodeToString(sum.Sum(nil)) != hash {
						t.Errorf("answer %d: %d bytes, %v; want %d, and the same ones", i+1, got, err, n)
					}
					if e := g.entries.wait(t, i+1)[i]; e.BytesOut != int64(n) || e.Status != 200 || e.Code != "" {
						t.Errorf("answer %d: logged %d %q, %d bytes out", i+1, e.Status, e.Code, e.BytesOut)
					}
				}
			})
		}
	}
}

// Row 63: an upstream that is killed in mid-answer leaves a broken transfer, and
// what came before it is not lost to the log.
func (s *suite) testKilledUpstream(t *testing.T) {
	part, _ := noise(1 << 20)
	for name, answer := range map[string]string{
		"length":             "HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" + part,
		"length, short":      "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
		"length, last byte":  "HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\n\r\n" + part,
		"chunked":            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.TrimSuffix(chunksOf(part, 5000), "0\r\n\r\n"),
		"chunked, at a size": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0",
		"until the end":      "HTTP/1.1 200 OK\r\n\r\n" + part,
	} {
		for _, reset := range []bool{false, true} {
			if !reset && name == "until the end" {
				continue // that is a whole answer
			}
			t.Run(fmt.Sprintf("%s, reset %v", name, reset), func(t *testing.T) { s.killed(t, answer, reset) })
		}
	}
}

// killed has the upstream die behind a part of an answer that the client has
// begun to read.
func (s *suite) killed(t *testing.T, answer string, reset bool) {
	t.Helper()
	begun := make(chan struct{})
	up := newRaw(t, func(u *raw, c net.Conn, r *bufio.Reader) {
		if u.readHead(r) == "" {
			return
		}
		_, _ = io.WriteString(c, answer)
		select {
		case <-begun:
		case <-t.Context().Done():
		}
		if reset {
			_ = c.(*net.TCPConn).SetLinger(0)
		}
	})
	g := s.gateway(t, setup{instances: []string{up.address()}})
	c := g.dial(t)
	c.send(head("GET", "/x"))
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	close(begun)
	if n, err := io.Copy(io.Discard, res.Body); err == nil {
		t.Errorf("%d bytes with a clean end, want a broken transfer", n)
	}
	if !c.ended() {
		t.Error("the connection goes on")
	}
	if e := g.entries.only(t); e.Status != 200 || e.Code != "answer_cut" || e.Retries != 0 || e.Fallback != "" {
		t.Errorf("logged %d %q, %d retries, fallback %q; want 200, answer_cut", e.Status, e.Code, e.Retries, e.Fallback)
	}
}

// Row 63: the last line of a chunked body is a part of it. A gateway may wait for
// it before it passes on what came before.
func (s *suite) testCutBeforeLastLine(t *testing.T) {
	up := serveOnce(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n")
	g := s.gateway(t, setup{instances: []string{up.address()}})
	if a := g.get(t, "/x"); a.StatusCode == 502 {
		a.refused(t, 502, "bad_answer")
	} else if a.err == nil {
		t.Errorf("answer = %d %q with a clean end, want a broken one", a.StatusCode, a.body)
	}
}

// Row 66: an answer that is given while the body is still read, to clients that
// stay and to clients that leave; the race detector sees what goes wrong.
func (s *suite) testAnswerWhileReading(t *testing.T) {
	up := newRaw(t, func(u *raw, c net.Conn, r *bufio.Reader) {
		if u.readHead(r) == "" {
			return
		}
		_, _ = io.CopyN(io.Discard, r, 10)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nearly")
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, r)
	})
	g := s.gateway(t, setup{instances: []string{up.address()}})
	body := strings.Repeat("x", 100_000)
	for i := range 200 {
		c := g.dial(t)
		request := head("POST", "/x", "Content-Length: 100000") + body[:40_000+i*200]
		if i%2 == 1 {
			request = head("POST", "/x", "Transfer-Encoding: chunked") + "186a0\r\n" + body[:40_000+i*200]
		}
		_, _ = io.WriteString(c.Conn, request)
		if i%3 == 0 {
			_ = c.Close()
			continue
		}
		if a := c.read("POST"); a.StatusCode != 200 || a.body != "early" {
			t.Fatalf("answer %d = %d %q", i, a.StatusCode, a.body)
		}
		_ = c.Close()
	}
	g.request(t, head("POST", "/x", "Content-Length: 10")+"0123456789").is(t, 200, "early")
}
