package forward

import (
	"bufio"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func parsed(t *testing.T, raw string) (*answerHead, error) {
	t.Helper()
	h := new(answerHead)
	return h, h.parse([]byte(raw))
}

// Rows 6, 128 and 129, and what else http.ReadResponse hides.
func TestAnswerHeadsThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"status 000":                 "HTTP/1.1 000 No\r\n\r\n",
		"status 099":                 "HTTP/1.1 099 No\r\n\r\n",
		"a status of four digits":    "HTTP/1.1 2000 OK\r\n\r\n",
		"a status of two digits":     "HTTP/1.1 20 OK\r\n\r\n",
		"HTTP/2":                     "HTTP/2.0 200 OK\r\n\r\n",
		"HTTP/0.9":                   "HTTP/0.9 200 OK\r\n\r\n",
		"a version that is none":     "HTTP/1.x 200 OK\r\n\r\n",
		"no version":                 "200 OK\r\n\r\n",
		"no status line":             "\r\n\r\n",
		"two lengths":                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n",
		"a list of lengths":          "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\n",
		"a length with a sign":       "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\n",
		"a length that is negative":  "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n",
		"a length in base 16":        "HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\n",
		"a length over 63 bits":      "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n",
		"an empty length":            "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
		"a coding beside chunked":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		"chunked twice":              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		"identity":                   "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n",
		"chunked in HTTP/1.0":        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
		"a Kelvin sign":              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chun\u212aed\r\n\r\n",
		"a line without a colon":     "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n",
		"a blank before the colon":   "HTTP/1.1 200 OK\r\nX-A : 1\r\n\r\n",
		"a blank before a name":      "HTTP/1.1 200 OK\r\n X-A: 1\r\n\r\n",
		"an empty name":              "HTTP/1.1 200 OK\r\n: 1\r\n\r\n",
		"NUL in a value":             "HTTP/1.1 200 OK\r\nX-A: a\x00b\r\n\r\n",
		"CR in a value":              "HTTP/1.1 200 OK\r\nX-A: a\rb\r\n\r\n",
		"more fields than are taken": "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: 1\r\n", answerFieldsMost+1) + "\r\n",
	} {
		if h, err := parsed(t, raw); err == nil {
			t.Errorf("%s: read as status %d, %v", name, h.status, h.fields)
		}
	}
}

func TestAnswerHeadsPassAsTheyCame(t *testing.T) {
	t.Parallel()
	h, err := parsed(t, "HTTP/1.1 200\r\nPragma: no-cache\r\nconnection: close, X-N\r\nX-N: leak\r\nset-cookie: a\r\nSet-Cookie:  b \r\nX-Fold: a\r\n\t b\r\nX-Empty:\r\nX-Obs: caf\xe9\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	want := http.Header{
		"Pragma": {"no-cache"}, "Connection": {"close, X-N"}, "X-N": {"leak"}, "Set-Cookie": {"a", "b"},
		"X-Fold": {"a b"}, "X-Empty": {""}, "X-Obs": {"caf\xe9"},
	}
	if !maps.EqualFunc(h.fields, want, slices.Equal) {
		t.Errorf("fields = %q, want %q", h.fields, want)
	}
	if !h.closes || h.length != -1 || h.chunked {
		t.Errorf("closes %v, length %d, chunked %v; want true, -1, false", h.closes, h.length, h.chunked)
	}
}

// A head that is read after another has nothing of it.
func TestAnswerHeadsAreReadIntoTheSamePlace(t *testing.T) {
	t.Parallel()
	h := new(answerHead)
	for _, raw := range []string{
		"HTTP/1.0 404 No\r\nX-A: 1\r\nX-A: 2\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX-B: 1\r\n\r\n",
	} {
		if err := h.parse([]byte(raw)); err != nil {
			t.Fatal(err)
		}
	}
	if h.status != 200 || h.old || h.keeps || h.length != -1 || len(h.fields) != 1 || h.fields.Get("X-B") != "1" {
		t.Errorf("the second head is %+v", h)
	}
}

func TestBothLengthAndChunks(t *testing.T) {
	t.Parallel()
	h, err := parsed(t, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: Chunked\r\n\r\n")
	if err != nil || !h.chunked || !h.ambiguous || h.length != -1 {
		t.Errorf("chunked %v, ambiguous %v, length %d, %v; want true, true, -1, nil", h.chunked, h.ambiguous, h.length, err)
	}
}

// FuzzAnswerHead compares with http.ReadResponse: what is accepted here is accepted
// there, with the same meaning but for what that one hides.
func FuzzAnswerHead(f *testing.F) {
	for _, raw := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "HTTP/1.1 200\nA: b\n c\n\n", "HTTP/1.0 304 Not Modified\r\nConnection: keep-alive\r\n\r\n",
		"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n", "HTTP/1.1  299 Odd\r\nx-a:\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\nPragma: no-cache\r\nConnection: close, a\r\nA: b\r\n\r\n",
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		size := headEnd([]byte(raw), 0)
		if size < 0 {
			return
		}
		h := new(answerHead)
		if h.parse([]byte(raw[:size])) != nil {
			return
		}
		rest := bufio.NewReader(strings.NewReader(raw))
		want, err := http.ReadResponse(rest, nil)
		if err != nil {
			if _, bad := h.announced(); bad != nil {
				return
			}
			t.Fatalf("%q: accepted, and not by net/http: %v", raw, err)
		}
		if h.status != want.StatusCode || h.chunked && want.ContentLength > 0 || !h.chunked && !h.bodiless() && h.length != want.ContentLength {
			t.Fatalf("%q: status %d, length %d, chunked %v; net/http: %d, %d", raw, h.status, h.length, h.chunked, want.StatusCode, want.ContentLength)
		}
		for name, lines := range want.Header {
			if there := h.fields[name]; !slices.Equal(lines, there) && name != "Cache-Control" && name != "Content-Length" {
				t.Fatalf("%q: %s is %q, by net/http %q", raw, name, there, lines)
			}
		}
		for name := range h.fields {
			switch name {
			case "Connection", "Content-Length", "Transfer-Encoding", "Trailer":
				continue
			}
			if want.Header[name] == nil {
				t.Fatalf("%q: %s is there, by net/http it is not", raw, name)
			}
		}
	})
}
