package forwardtest

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// client is a connection to the gateway that sends what it is told.
type client struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

// dial connects to the gateway.
func (g *gateway) dial(t *testing.T) *client {
	t.Helper()
	c, err := net.Dial("tcp", g.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(2 * soon)); err != nil {
		t.Fatal(err)
	}
	cl := &client{Conn: c, t: t, r: bufio.NewReader(c)}
	if g.kept {
		cl.keep()
	}
	return cl
}

// send writes bytes as they are.
func (c *client) send(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		c.t.Fatal(err)
	}
}

// answer is what came back.
type answer struct {
	*http.Response
	body string
	err  error // how the body ended; nil is a clean end
}

// read reads one answer. method is that of the request.
func (c *client) read(method string) answer {
	c.t.Helper()
	res, err := http.ReadResponse(c.r, &http.Request{Method: method})
	if err != nil {
		c.t.Fatalf("no answer: %v", err)
	}
	body, err := io.ReadAll(res.Body)
	return answer{res, string(body), err}
}

// ended reports whether the gateway closes the connection, before long and without
// a further byte.
func (c *client) ended() bool {
	_ = c.SetReadDeadline(time.Now().Add(soon))
	_, err := c.r.ReadByte()
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// request sends bytes on a connection of its own and returns the answer.
func (g *gateway) request(t *testing.T, bytes string) answer {
	t.Helper()
	c := g.dial(t)
	c.send(bytes)
	method, _, _ := strings.Cut(bytes, " ")
	return c.read(method)
}

// get requests a path below the prefix, with further lines in the head.
func (g *gateway) get(t *testing.T, path string, lines ...string) answer {
	t.Helper()
	return g.request(t, head("GET", path, lines...))
}

// head is the head of a request for a path below the prefix.
func head(method, path string, lines ...string) string {
	var b strings.Builder
	b.WriteString(method + " " + prefix + path + " HTTP/1.1\r\nHost: a\r\n")
	for _, line := range lines {
		b.WriteString(line + "\r\n")
	}
	return b.String() + "\r\n"
}

// problem reads an answer of the gateway's own.
func (a answer) problem(t *testing.T) map[string]any {
	t.Helper()
	if got := a.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Fatalf("status %d with Content-Type %q, want a problem: %s", a.StatusCode, got, a.body)
	}
	var p map[string]any
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatalf("problem %q: %v", a.body, err)
	}
	for _, member := range []string{"type", "title", "status", "detail", "code", "correlationId"} {
		if p[member] == nil || p[member] == "" {
			t.Errorf("the problem has no %s: %s", member, a.body)
		}
	}
	if p["status"] != float64(a.StatusCode) {
		t.Errorf("the problem says status %v, the answer %d", p["status"], a.StatusCode)
	}
	return p
}

// refused fails the test unless the answer is a problem of that status and code.
func (a answer) refused(t *testing.T, status int, code string) {
	t.Helper()
	if a.StatusCode != status {
		t.Fatalf("status = %d, want %d: %s", a.StatusCode, status, a.body)
	}
	if p := a.problem(t); p["code"] != code {
		t.Errorf("code = %v, want %s", p["code"], code)
	}
}

// is fails the test unless the answer is a whole one of that status and body.
func (a answer) is(t *testing.T, status int, body string) {
	t.Helper()
	if a.StatusCode != status || a.body != body || a.err != nil {
		t.Fatalf("answer = %d %q (%v), want %d %q", a.StatusCode, a.body, a.err, status, body)
	}
}

// within waits for something that should happen at once, and ends the test with a
// sentence when it does not.
func within[T any](t *testing.T, c <-chan T, sentence string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(soon):
		t.Fatal(sentence)
		panic("unreachable")
	}
}
