package forwardtest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// exchange is what passes on one connection of a client: bytes in, and what must
// come of them on both sides and in the log.
type exchange struct {
	name string
	sent string // by the client, in one write

	// answers are those that come back, in order: "200" whole and with the
	// upstream's body, or status and code of a refusal. An empty list says that the
	// connection closes without a word.
	answers []string

	// upstream are the requests that arrive there, in order, as method, target and
	// body.
	upstream []string

	ends bool // the gateway closes the connection behind the last answer
}

// arrived is one request as its bytes came.
type arrived struct {
	head string
	body string // without its framing
}

// brief is the request as an exchange names it.
func (a arrived) brief() string {
	line, _, _ := strings.Cut(a.head, "\r\n")
	return strings.TrimSpace(strings.TrimSuffix(line, " HTTP/1.1") + " " + a.body)
}

// arrivals are the requests that came to an upstream.
type arrivals struct {
	mu  sync.Mutex
	all []arrived
}

func (a *arrivals) list() []arrived {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.all)
}

// strictUpstream answers each request with the word ok and keeps its bytes. It
// takes one framing only: a request with two lengths or both framings fails the
// test, as does a head that is not lines ended by CRLF.
func strictUpstream(t *testing.T) (*raw, *arrivals) {
	t.Helper()
	seen := new(arrivals)
	return newRaw(t, func(u *raw, c net.Conn, r *bufio.Reader) {
		for head := u.readHead(r); head != ""; head = u.readHead(r) {
			body, err := readFramed(head, r)
			if err != nil {
				t.Errorf("the upstream cannot tell what this is: %v\n%q", err, head)
				return
			}
			seen.mu.Lock()
			seen.all = append(seen.all, arrived{head, body})
			seen.mu.Unlock()
			if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); err != nil {
				return
			}
		}
	}), seen
}

// readFramed reads the body that a head announces.
func readFramed(head string, r *bufio.Reader) (string, error) {
	lines := strings.SplitAfter(strings.TrimSuffix(head, "\r\n"), "\r\n")
	for _, line := range lines[:len(lines)-1] {
		text, ok := strings.CutSuffix(line, "\r\n")
		if !ok || strings.ContainsAny(text, "\r\n\x00") || strings.HasPrefix(text, " ") || strings.HasPrefix(text, "\t") {
			return "", fmt.Errorf("the line %q", line)
		}
	}
	lengths, codings := fieldLines(head, "Content-Length"), fieldLines(head, "Transfer-Encoding")
	switch {
	case len(lengths) > 1 || len(codings) > 1 || len(lengths)+len(codings) > 1:
		return "", fmt.Errorf("lengths %q and codings %q", lengths, codings)
	case len(codings) == 1 && codings[0] != "chunked":
		return "", fmt.Errorf("the coding %q", codings[0])
	case len(codings) == 1:
		body, err := io.ReadAll(httputil.NewChunkedReader(r))
		if err != nil {
			return "", err
		}
		for line := ""; line != "\r\n"; { // trailers, and the blank line
			if line, err = r.ReadString('\n'); err != nil {
				return "", err
			}
		}
		return string(body), nil
	case len(lengths) == 1:
		n, err := strconv.ParseUint(lengths[0], 10, 31)
		if err != nil {
			return "", err
		}
		body := make([]byte, n)
		_, err = io.ReadFull(r, body)
		return string(body), err
	}
	return "", nil
}

// exchanges runs each on a gateway of its own.
func (s *suite) exchanges(t *testing.T, all []exchange) {
	t.Helper()
	for _, x := range all {
		t.Run(x.name, func(t *testing.T) {
			up, seen := strictUpstream(t)
			g := s.gateway(t, setup{instances: []string{up.address()}})
			c := g.dial(t)
			c.send(x.sent)
			x.check(t, g, c, seen)
		})
	}
}

// check reads what comes of an exchange and fails the test where it is not as it
// must be.
func (x exchange) check(t *testing.T, g *gateway, c *client, seen *arrivals) {
	t.Helper()
	for i, want := range x.answers {
		a := c.read("GET")
		status, code, refused := strings.Cut(want, " ")
		if strconv.Itoa(a.StatusCode) != status {
			t.Fatalf("answer %d is %d %q, want %s", i+1, a.StatusCode, a.body, want)
		}
		if !refused {
			a.is(t, a.StatusCode, "ok")
		} else if got := a.problem(t)["code"]; got != code {
			t.Errorf("answer %d has the code %v, want %s", i+1, got, code)
		}
		e := g.entries.wait(t, i+1)[i]
		if strconv.Itoa(e.Status) != status || e.Code != code || e.Fallback != "" || e.Retries != 0 {
			t.Errorf("answer %d is logged as %d %q, fallback %q, %d retries", i+1, e.Status, e.Code, e.Fallback, e.Retries)
		}
	}
	if x.ends {
		if !c.ended() {
			t.Error("the connection goes on")
		}
	} else {
		c.send("GET " + prefix + "/after HTTP/1.1\r\nHost: a\r\n\r\n")
		c.read("GET").is(t, 200, "ok")
	}
	var got []string
	for _, a := range seen.list() {
		if b := a.brief(); b != "GET /after" {
			got = append(got, b)
		}
	}
	if !slices.Equal(got, x.upstream) {
		t.Errorf("the upstream saw %q, want %q", got, x.upstream)
	}
}
