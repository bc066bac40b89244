package forwardtest

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// testStreams shows row 60: heads and events pass when they come, whatever says
// how long the answer is.
func (s *suite) testStreams(t *testing.T) {
	t.Run("events", func(t *testing.T) { s.stream(t, "Content-Type: text/event-stream; charset=utf-8\r\n") })
	t.Run("chunks", func(t *testing.T) { s.stream(t, "Content-Type: application/json\r\n") })
	t.Run("a slow answer of known length", s.testSlowAnswer)
	t.Run("both ways at once", s.testBothWays)
}

// stream has the upstream send a head, and then each event when it is told to.
func (s *suite) stream(t *testing.T, fields string) {
	next := make(chan string)
	up := newRaw(t, func(u *raw, c net.Conn, r *bufio.Reader) {
		if u.readHead(r) == "" {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"+fields+"\r\n")
		for event := range next {
			_, _ = io.WriteString(c, event)
		}
	})
	g := s.gateway(t, setup{instances: []string{up.address()}})
	c := g.dial(t)
	c.send(head("GET", "/x"))
	res, err := http.ReadResponse(c.r, nil) // returns only if the head comes alone
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		next <- "6\r\ndata\n\n\r\n"
		b := make([]byte, 6)
		if _, err := io.ReadFull(res.Body, b); err != nil || string(b) != "data\n\n" {
			t.Fatalf("event = %q, %v", b, err)
		}
	}
	next <- "0\r\n\r\n"
	close(next)
	if rest, err := io.ReadAll(res.Body); err != nil || len(rest) != 0 {
		t.Errorf("end = %q, %v", rest, err)
	}
}

func (s *suite) testSlowAnswer(t *testing.T) {
	next := make(chan struct{})
	up := newRaw(t, func(u *raw, c net.Conn, r *bufio.Reader) {
		if u.readHead(r) == "" {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na")
		<-next
		_, _ = io.WriteString(c, "b")
	})
	g := s.gateway(t, setup{instances: []string{up.address()}})
	c := g.dial(t)
	c.send(head("GET", "/x"))
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	if _, err := io.ReadFull(res.Body, b); err != nil {
		t.Fatal(err)
	}
	close(next)
	if _, err := io.ReadFull(res.Body, b); err != nil || b[0] != 'b' {
		t.Errorf("second byte = %q, %v", b, err)
	}
}

func (s *suite) testBothWays(t *testing.T) {
	up := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		_ = rc.EnableFullDuplex()
		b := make([]byte, 1)
		for {
			if _, err := r.Body.Read(b); err != nil {
				return
			}
			_, _ = w.Write(b)
			_ = rc.Flush()
		}
	})
	g := s.gateway(t, setup{instances: []string{up.address()}})
	c := g.dial(t)
	_ = c.SetDeadline(time.Now().Add(soon))
	c.send(head("POST", "/x", "Transfer-Encoding: chunked"))
	c.send("1\r\na\r\n")
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	for _, want := range "abcdef" {
		if _, err := io.ReadFull(res.Body, b); err != nil || rune(b[0]) != want {
			t.Fatalf("got %q, %v; want %q", b, err, want)
		}
		c.send("1\r\n" + string(want+1) + "\r\n")
	}
	c.send("0\r\n\r\n")
	_, _ = io.Copy(io.Discard, res.Body)
}
