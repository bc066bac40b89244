package forward

import (
	"bufio"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"specialroutes.example/gateway/internal/config"
)

// sameRequest compares the request that is made of a head which the loop takes with
// what net/http has read, but for the Cache-Control that it makes up.
func sameRequest(t *testing.T, q *requestReader, head []byte, h *requestHead, r *http.Request) {
	t.Helper()
	got, err := q.read(head, h, nil, "")
	if err != nil {
		t.Fatalf("%q: %v", head, err)
	}
	defer q.reset()
	delete(r.Header, "Host")
	if h.pragma {
		delete(r.Header, "Cache-Control")
	}
	if got.Method != r.Method || got.RequestURI != r.RequestURI || got.Host != r.Host || got.Proto != r.Proto ||
		got.ProtoMajor != r.ProtoMajor || got.ProtoMinor != r.ProtoMinor || got.ContentLength != r.ContentLength || got.Close != r.Close {
		t.Errorf("%q: read as %+v, net/http has %+v", head, got, r)
	}
	if !reflect.DeepEqual(got.Header, r.Header) {
		t.Errorf("%q: fields %q, net/http has %q", head, got.Header, r.Header)
	}
	if !reflect.DeepEqual(got.URL, r.URL) {
		t.Errorf("%q: URL %#v, net/http has %#v", head, got.URL, r.URL)
	}
}

// A request is read as net/http reads it, whatever the memory for it held before.
func TestRequestReaderReadsAsNetHTTPDoes(t *testing.T) {
	t.Parallel()
	var q requestReader
	limits := config.Default().Limits
	for range 2 {
		for _, fields := range []string{
			"", "a:b\r\nA: c\r\nx-Y_z:\t d e \t\r\n", "Connection: close, x\r\n", "Pragma: no-cache\r\n", "Content-Length: 3\r\n",
			"Pragma: no-cache\r\nCache-Control: x\r\n", "Cookie: a=b\r\nCOOKIE: c=d\r\nTrailer: x\r\nX:\r\n", strings.Repeat("A: b\r\n", 2*fieldsKept),
			"X-\u00fc: y\r\n", "X: \u00fc\xff\r\n",
		} {
			for _, line := range []string{
				"GET /", "POST /a/b?c=d", "PURGE /?", "GET /??", "GET /a%2fb%20c?%zz", "GET //a/b;c", "HEAD /a#b", "GET /\u00fc\"<>", "CONNECT /x", "GET /a:b@c",
			} {
				head := []byte(line + " HTTP/1.1\r\nhost: a.b:80\r\n" + fields + "\r\n")
				h := scanRequest(head, limits)
				if h.verdict == verdictRefuse {
					continue
				}
				r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(head))))
				if err != nil {
					t.Fatalf("net/http refuses %q: %v", head, err)
				}
				sameRequest(t, &q, head, &h, r)
			}
		}
	}
	bad := []byte("GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n")
	h := scanRequest(bad, limits)
	if _, err := q.read(bad, &h, nil, ""); err == nil {
		t.Errorf("%q is read, and net/http refuses it", bad)
	}
}

// To read a request like the one before takes no memory but for its text.
func TestRequestReaderUsesItsMemoryAgain(t *testing.T) {
	head := []byte("GET /a/b?c HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nuser-agent: curl\r\nCookie: a\r\n\r\n")
	h := scanRequest(head, config.Default().Limits)
	var q requestReader
	if n := testing.AllocsPerRun(100, func() {
		if _, err := q.read(head, &h, nil, ""); err != nil {
			t.Fatal(err)
		}
		q.reset()
	}); n > 1 {
		t.Errorf("%v allocations for a request, want 1", n)
	}
}
