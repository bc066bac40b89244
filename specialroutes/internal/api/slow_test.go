package api

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestABodyThatTricklesComesToAnEnd(t *testing.T) {
	t.Parallel()
	srv := start(t, openSQLite(t), func(o *Options) { o.BodyTimeout = 100 * time.Millisecond })
	for head, status := range map[string]string{
		"PUT " + bookPath + " HTTP/1.1\r\nContent-Type: application/json": "408",
		"PUT " + bookPath + " HTTP/1.1\r\nContent-Type: text/plain":       "415",
		"POST /nothing HTTP/1.1": "404",
	} {
		trickle(t, srv, head, status)
	}
}

func trickle(t *testing.T, srv *server, head, status string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(srv.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, head+"\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c) // ends, because what is left of the body is not waited for
	if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 "+status+" ") {
		t.Errorf("%s: the answer is %q, %v, want %s and an end", head, got, err, status)
	}
}
