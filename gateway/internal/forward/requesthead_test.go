package forward

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"specialroutes.example/gateway/internal/config"
)

// Rows 1 to 5, 11 to 13, 36, 42, 50 and 129: what becomes of a head.
func TestScanRequest(t *testing.T) {
	t.Parallel()
	limits := config.Limits{HeaderBytes: 1 << 10, HeaderFields: 4}
	const get, post = "GET / HTTP/1.1\r\n", "POST / HTTP/1.1\r\nHost: a\r\n"
	for _, tt := range []struct {
		head string
		want string // a code, or what becomes of it
	}{
		{get + "Host: a\r\n\r\n", "take"},
		{post + "Content-Length: 65536\r\n\r\n", "take"},
		{post + "Content-Length: 0\r\n\r\n", "take"},
		{get + "Host: a\r\nConnection: close\r\n\r\n", "take and end"},
		{get + "Host: a\r\nConnection: x, CLOSE ,y\r\n\r\n", "take and end"},
		{get + "Host: a\r\nPragma: no-cache\r\n\r\n", "take, pragma"},
		{get + "Host: a\r\nPragma: no-cache\r\nCACHE-CONTROL: x\r\n\r\n", "take"},

		{post + "Content-Length: 65537\r\n\r\n", "hand over"},
		{post + "Transfer-Encoding: Chunked\r\n\r\n", "hand over"},
		{post + "Expect: 100-Continue\r\nContent-Length: 2\r\n\r\n", "hand over"},
		{get + "Host: a\r\nUpgrade: websocket\r\n\r\n", "hand over"},
		{"GET / HTTP/1.0\r\n\r\n", "hand over"},
		{"GET http://A/x HTTP/1.1\r\nHost: a\r\n\r\n", "hand over"},
		{"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "hand over"},
		{"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", "hand over"},

		{post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "400 bad_request"},
		{"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "400 bad_request"},
		{post + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n", "400 bad_request"},
		{post + "Content-Length: +2\r\n\r\n", "400 bad_request"},
		{post + "Content-Length: \r\n\r\n", "400 bad_request"},
		{post + "Content-Length: 9223372036854775808\r\n\r\n", "400 bad_request"},
		{post + "Transfer-Encoding: gzip, chunked\r\n\r\n", "501 bad_request"},
		{post + "Transfer-Encoding: chun\u212aed\r\n\r\n", "501 bad_request"},
		{post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "501 bad_request"},
		{get + "Host: a\r\nExpect: bogus\r\n\r\n", "417 expectation_failed"},
		{get + "\r\n", "400 bad_host"},
		{get + "Host: a\r\nHost: a\r\n\r\n", "400 bad_host"},
		{get + "Host: a b\r\n\r\n", "400 bad_host"},
		{get + "Host: a,b\r\n\r\n", "400 bad_host"},
		{"GET http://a/ HTTP/1.1\r\n\r\n", "400 bad_host"},
		{"GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n", "400 bad_host"},
		{"GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n", "400 bad_host"},
		{"GET http://a?x HTTP/1.1\r\nHost: b\r\n\r\n", "400 bad_host"},
		{"GET / HTTP/1.2\r\nHost: a\r\n\r\n", "505 bad_request"},
		{"GET / HTTP/2.0\r\nHost: a\r\n\r\n", "505 bad_request"},
		{"GET / HTTP/1.10\r\nHost: a\r\n\r\n", "400 bad_request"},
		{"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", "400 bad_request"},
		{"GET  HTTP/1.1\r\nHost: a\r\n\r\n", "400 bad_request"},
		{"G@T / HTTP/1.1\r\nHost: a\r\n\r\n", "400 bad_request"},
		{get + "Host: a\r\n X: folded\r\n\r\n", "400 bad_request"},
		{get + "Host: a\nX: b\r\n\r\n", "400 bad_request"},
		{get + "Host: a\r\nX: b\n\n", "400 bad_request"},
		{get + "Host: a\r\nX : b\r\n\r\n", "400 bad_request"},
		{get + "Host: a\r\n: b\r\n\r\n", "400 bad_request"},
		{get + "Host: a\r\nnothing\r\n\r\n", "400 bad_request"},
		{get + "Host: a\r\nX: a\x00b\r\n\r\n", "400 bad_request"},
		{get + "Host: a\r\nX: a\rb\r\n\r\n", "400 bad_request"},
		{get + "Host: a\r\nA: b\r\nA: b\r\nA: b\r\n\r\n", "take"},
		{get + "Host: a\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\n\r\n", "431 header_too_large"},
		{get + "Host: a\r\nA: " + strings.Repeat("b", 1<<10) + "\r\n\r\n", "431 header_too_large"},
	} {
		h := scanRequest([]byte(tt.head), limits)
		if got := fate(&h); got != tt.want {
			t.Errorf("scanRequest(%.120q) = %s, want %s", tt.head, got, tt.want)
		}
	}
}

// fate says in words what becomes of a head.
func fate(h *requestHead) string {
	switch {
	case h.verdict == verdictRefuse:
		return strconv.Itoa(h.refusal.Status) + " " + h.refusal.Code
	case h.verdict == verdictHandOver:
		return "hand over"
	case h.close:
		return "take and end"
	case h.pragma:
		return "take, pragma"
	}
	return "take"
}

func TestHeadEndIsFoundInPieces(t *testing.T) {
	t.Parallel()
	for _, head := range []string{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET /\n\n", "GET /\r\n\n", "GET /\n\r\n"} {
		whole := head + "GET / HTTP/1.1\r\n\r\n"
		for from := range len(head) {
			if got := headEnd([]byte(whole), from); got != len(head) {
				t.Errorf("headEnd(%q, %d) = %d, want %d", whole, from, got, len(head))
			}
			if got := headEnd([]byte(head[:from]), 0); got != -1 {
				t.Errorf("headEnd(%q, 0) = %d, want -1", head[:from], got)
			}
		}
	}
}

func TestARefusedHeadKeepsItsCorrelationID(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]string{
		"GET / HTTP/1.1\r\nTMX-Correlation-ID: mine\r\n\r\n":                       "mine",
		"GET / HTTP/1.1\r\nno field\r\ntmx-correlation-id:mine\r\n\r\n":            "mine",
		"GET / HTTP/1.1\r\ntmx-correlation-id: a b\r\n\r\n":                        "",
		"GET / HTTP/1.1\r\ntmx-correlation-id: a\r\ntmx-correlation-id: b\r\n\r\n": "",
		"GET / HTTP/1.1\r\ntmx-correlation-id: hal":                                "", // it may go on
		"GET / HTTP/1.1\r\n\r\ntmx-correlation-id: body\r\n":                       "",
		"\x16\x03\x01": "",
	} {
		if got, _ := correlationIn([]byte(head)); got != want {
			t.Errorf("correlationIn(%q) = %q, want %q", head, got, want)
		}
	}
}

// FuzzScanRequest compares with net/http: what is accepted here it accepts too, and
// reads as the same.
func FuzzScanRequest(f *testing.F) {
	for _, seed := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST /x?y HTTP/1.1\r\nHost: a:80\r\nContent-Length: 2\r\n\r\nhi",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nhi\r\n0\r\nX: y\r\n\r\nGET / HTTP/1.1\r\n\r\n",
		"GET http://a/ HTTP/1.0\r\nHost: a\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n",
		"GET /%zz HTTP/1.1\r\nHost: a\r\nPragma: no-cache\r\n\r\n", "GET /a#b HTTP/1.1\r\nHost: a\r\nConnection: close, x\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: a\n\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	limits := config.Default().Limits
	f.Fuzz(func(t *testing.T, p []byte) {
		size := headEnd(p, 0)
		if size < 0 {
			return
		}
		h := scanRequest(p[:size], limits)
		if h.verdict == verdictRefuse {
			return
		}
		rest := bufio.NewReader(bytes.NewReader(p))
		r, err := http.ReadRequest(rest)
		if err != nil {
			if _, bad := err.(interface{ Timeout() bool }); !bad { // net/url judges targets; both ways go through it
				t.Fatalf("net/http refuses %q: %v", p[:size], err)
			}
			return
		}
		if r.Method != string(h.method) || r.RequestURI != string(h.target) || r.ContentLength != h.length || r.Close != (h.close || h.http10 && r.Close) {
			t.Errorf("%q: read as %s %q, length %d, close %v; net/http has %s %q, %d, %v",
				p[:size], h.method, h.target, h.length, h.close, r.Method, r.RequestURI, r.ContentLength, r.Close)
		}
		if h.hosts > 0 && !strings.EqualFold(r.Host, string(h.host)) && !strings.HasPrefix(r.RequestURI, "*") && r.Method != http.MethodConnect {
			t.Errorf("%q: host %q, net/http has %q", p[:size], h.host, r.Host)
		}
		sameBody(t, p, size, &h, r, rest)
		if h.verdict == verdictTake {
			sameRequest(t, new(requestReader), p[:size], &h, r)
		}
	})
}

// sameBody compares where the body ends. Where net/http finds it whole and we do not,
// the connection ends; the other way round bytes would be read as two things.
func sameBody(t *testing.T, p []byte, size int, h *requestHead, r *http.Request, rest *bufio.Reader) {
	t.Helper()
	end, whole := size+int(min(max(h.length, 0), 1<<30)), true
	if h.length < 0 {
		var e bodyEnd
		n, done, err := e.follow(p[size:])
		end, whole = size+n, done && err == nil
	}
	body, err := io.ReadAll(r.Body)
	if whole = whole && end <= len(p); !whole {
		return
	}
	if err != nil {
		return // net/http is stricter: it ends the connection
	}
	left, _ := io.ReadAll(rest)
	if !bytes.Equal(left, p[end:]) {
		t.Errorf("%q: the body is %q, and net/http goes on with %q, not %q", p, body, left, p[end:])
	}
}

func BenchmarkScanRequest(b *testing.B) {
	head := []byte("GET /api/organization/v1/organizations/e254f8c HTTP/1.1\r\nHost: gateway.example:5555\r\nUser-Agent: curl/8.5\r\nAccept: */*\r\ntmx-correlation-id: 0b7f\r\n\r\n")
	limits := config.Default().Limits
	b.Run("scan", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if h := scanRequest(head, limits); h.verdict != verdictTake {
				b.Fatal(fate(&h))
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		h := scanRequest(head, limits)
		var q requestReader
		for b.Loop() {
			if _, err := q.read(head, &h, nil, ""); err != nil {
				b.Fatal(err)
			}
			q.reset()
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		source := bytes.NewReader(head)
		in := bufio.NewReader(source)
		for b.Loop() {
			source.Reset(head)
			in.Reset(source)
			if _, err := http.ReadRequest(in); err != nil {
				b.Fatal(err)
			}
		}
	})
}
