package forward

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"specialroutes.example/gateway/internal/config"
)

// gateBefore returns a gate through which p comes, in pieces of at most size bytes.
func gateBefore(t *testing.T, p string, size int) *gate {
	t.Helper()
	c := config.Default()
	s := NewServer(http.NotFoundHandler(), c.Timeouts, c.Limits, slog.New(slog.DiscardHandler))
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		for len(p) > 0 {
			n := min(size, len(p))
			if _, err := io.WriteString(there, p[:n]); err != nil {
				return
			}
			p = p[n:]
		}
	}()
	t.Cleanup(func() { _ = here.Close() })
	return s.newGate(here, nil).(*gate)
}

// What is well passes as it came, however it is cut into pieces on either side.
func TestGatePassesRequests(t *testing.T) {
	t.Parallel()
	const post = "POST / HTTP/1.1\r\nHost: a\r\n"
	all := "GET / HTTP/1.1\r\nHost: a\r\n\r\n" +
		post + "Content-Length: 5\r\n\r\nGET /" +
		post + "Transfer-Encoding: chunked\r\n\r\n5;a=\"b\"\r\nGET /\r\n00\r\nX: y\r\nZ:\r\n\r\n" +
		post + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" +
		"GET / HTTP/1.0\r\n\r\n"
	for _, size := range []int{1, 2, 3, 7, 64, 4096} {
		for _, read := range []func(io.Reader) io.Reader{
			iotest.OneByteReader, iotest.HalfReader, func(r io.Reader) io.Reader { return r },
		} {
			got, err := io.ReadAll(read(gateBefore(t, all, size)))
			if err != nil || string(got) != all {
				t.Errorf("pieces of %d: %q, %v", size, got, err)
			}
		}
	}
}

// The longest length that there is does not open the gate for what is not looked at.
func TestGateCountsTheLongestBody(t *testing.T) {
	t.Parallel()
	for _, length := range []string{"9223372036854775807", "9223372036854775741", "9223372036854775000"} {
		head := "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + length + "\r\n\r\n"
		g := gateBefore(t, head+"x", 4096)
		if n, err := g.Read(make([]byte, len(head))); n == 0 || err != nil {
			t.Fatalf("%d bytes of the head, %v", n, err)
		}
		if g.pass <= 0 || g.refusal != nil {
			t.Errorf("behind a length of %s pass %d bytes, want more than 0", length, g.pass)
		}
	}
}

// What is refused never passes, nor anything behind it: what passes in its place is
// refused by whoever reads it.
func TestGateWithholdsWhatIsRefused(t *testing.T) {
	t.Parallel()
	const good = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
	for _, bad := range []string{
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nHost: secret\r\n\r\n",
		"GET / HTTP/1.1\nHost: secret\n\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: secret", // and no more
		"\x00secret",
		"\r\n\r\n\r\nsecret\r\n\r\n",
	} {
		for _, size := range []int{1, 5, 4096} {
			got, err := io.ReadAll(gateBefore(t, good+bad+"GET /secret HTTP/1.1\r\n\r\n", size))
			rest, ok := bytes.CutPrefix(got, []byte(good))
			if err != nil || !ok || !strings.HasSuffix(string(rest), refusedHead) || len(rest) > len(refusedHead)+1 {
				t.Errorf("%q in pieces of %d: %q passes, %v", bad, size, rest, err)
			}
		}
	}
}

// HTTP/2 and tunnels pass whatever they hold.
func TestGateIsOpenForWhatIsNotHTTP1(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 5, 4096} {
		all := preface + "\x00\x00\n\n\x00 anything\r\n\r\n"
		if got, err := io.ReadAll(gateBefore(t, all, size)); err != nil || string(got) != all {
			t.Errorf("HTTP/2 in pieces of %d: %q, %v", size, got, err)
		}
		const upgrade, frames = "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n", "\x81\x00\n\n\x00"
		g := gateBefore(t, upgrade+frames, size)
		head := make([]byte, len(upgrade))
		if _, err := io.ReadFull(g, head); err != nil || string(head) != upgrade {
			t.Fatalf("the head is %q, %v", head, err)
		}
		g.server.noteState(g, http.StateHijacked)
		if got, err := io.ReadAll(g); err != nil || string(got) != frames {
			t.Errorf("a tunnel in pieces of %d: %q, %v", size, got, err)
		}
	}
}
