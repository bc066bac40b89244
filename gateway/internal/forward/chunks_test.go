package forward

import (
	"bytes"
	"errors"
	"io"
	"net/http/httputil"
	"strings"
	"testing"
)

// unchunk reads a chunked body that comes in pieces of so many bytes.
func unchunk(raw string, piece int) (body, trailer string, rest int, err error) {
	var c chunks
	var b strings.Builder
	for raw != "" && !c.done() {
		p := []byte(raw[:min(piece, len(raw))])
		data, used, err := c.next(p)
		if err != nil {
			return b.String(), "", len(raw), err
		}
		b.Write(data)
		raw = raw[used:]
	}
	if !c.done() {
		err = io.ErrUnexpectedEOF
	}
	return b.String(), string(c.trailer), len(raw), err
}

func TestChunksComeInAnyPieces(t *testing.T) {
	t.Parallel()
	for _, piece := range []int{1, 2, 3, 7, 1000} {
		body, trailer, rest, err := unchunk("3\r\nabc\r\nA;x=\"y\"\r\n0123456789\r\n001 \t\r\n!\r\n0\r\nX-T: v\r\nX-U: w\r\n\r\nnext", piece)
		if body != "abc0123456789!" || trailer != "X-T: v\r\nX-U: w\r\n\r\n" || rest != 4 || err != nil {
			t.Errorf("in pieces of %d: %q, %q, %d left, %v", piece, body, trailer, rest, err)
		}
	}
}

// Rows 7 to 10, of answers.
func TestChunksThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"a size over 63 bits":      "10000000000000002\r\nhi\r\n",
		"0x":                       "0x2\r\nhi\r\n",
		"a sign":                   "+2\r\nhi\r\n",
		"an underscore":            "0_2\r\nhi\r\n",
		"no size":                  "\r\nhi\r\n",
		"no size but an extension": ";a\r\nhi\r\n",
		"nonsense":                 "INVALID\r\n",
		"LF behind the size":       "2\nhi\r\n0\r\n\r\n",
		"LF behind the data":       "2\r\nhi\n0\r\n\r\n",
		"more data than the size":  "2\r\nhiX\r\n",
		"CR in an extension":       "2;a\rb\r\nhi\r\n",
		"LF in an extension":       "2;\nxx\r\nhi\r\n",
		"two CR":                   "2\r\r;a\r\nhi\r\n",
		"a blank before the size":  " 2\r\nhi\r\n",
		"a long extension":         "2;" + strings.Repeat("a", chunkLineMost) + "\r\nhi\r\n",
		"many extensions":          strings.Repeat("1;"+strings.Repeat("a", 4000)+"\r\nx\r\n", 6),
		"a trailer without an end": "0\r\n" + strings.Repeat("A: b\r\n", trailerMost),
	} {
		if body, _, _, err := unchunk(raw, 1000); !errors.Is(err, errChunk) {
			t.Errorf("%s: body %q, %v; want %v", name, body, err, errChunk)
		}
	}
}

// FuzzChunks compares with net/http's reader: what is a whole body here is one
// there, with the same data.
func FuzzChunks(f *testing.F) {
	f.Add("3\r\nabc\r\n0\r\n\r\n", 1)
	f.Add("3;a=b\r\nabc\r\n10\r\n0123456789abcdef\r\n0 \r\nA: b\r\n\r\nrest", 5)
	f.Fuzz(func(t *testing.T, raw string, piece int) {
		if piece < 1 {
			return
		}
		body, _, _, err := unchunk(raw, piece)
		want, wantErr := io.ReadAll(httputil.NewChunkedReader(strings.NewReader(raw)))
		if err == nil && (wantErr != nil || string(want) != body) {
			t.Fatalf("%q: %q here, %q and %v by net/http", raw, body, want, wantErr)
		}
		if again, _, _, err2 := unchunk(raw, 1<<20); again != body || (err == nil) != (err2 == nil) {
			t.Fatalf("%q: %q in pieces of %d, %q at once", raw, body, piece, again)
		}
	})
}

func TestChunksThatAreWrittenCanBeRead(t *testing.T) {
	t.Parallel()
	var out []byte
	for _, data := range []string{"a", "", strings.Repeat("b", 40_000)} {
		out = appendChunk(out, []byte(data))
	}
	out = append(out, "0\r\n\r\n"...)
	got, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(out)))
	if err != nil || len(got) != 40_001 {
		t.Errorf("%d bytes, %v; want 40001, nil", len(got), err)
	}
}
