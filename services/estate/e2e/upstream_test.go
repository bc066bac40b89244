package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// seen is what an upstream saw of one call.
type seen struct {
	method   string
	target   string // the request target as it stood in the request line
	host     string
	header   http.Header
	trailer  http.Header
	length   int64 // as announced; -1 when the body came chunked
	size     int64 // bytes of the body that arrived
	sum      string
	complete bool // the body was read to its end without an error
}

// upstream is a recording server: it stands where a service would.
type upstream struct {
	*httptest.Server
	name   string
	mu     sync.Mutex
	calls  []seen
	answer http.HandlerFunc
}

// newUpstream starts a server that records each call and then answers with its
// name, or as answer says. The body has been read by then.
func newUpstream(t testing.TB, name string, answer http.HandlerFunc) *upstream {
	t.Helper()
	u := &upstream{name: name, answer: answer}
	u.Server = httptest.NewServer(http.HandlerFunc(u.serve))
	t.Cleanup(func() {
		u.CloseClientConnections()
		u.Close()
	})
	return u
}

func (u *upstream) serve(w http.ResponseWriter, r *http.Request) {
	hash := sha256.New()
	n, err := io.Copy(hash, r.Body)
	u.mu.Lock()
	u.calls = append(u.calls, seen{
		method: r.Method, target: r.RequestURI, host: r.Host,
		header: r.Header.Clone(), trailer: r.Trailer.Clone(),
		length: r.ContentLength, size: n, sum: hex.EncodeToString(hash.Sum(nil)), complete: err == nil,
	})
	u.mu.Unlock()
	if u.answer != nil {
		u.answer(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, u.name)
}

func (u *upstream) addr() string { return strings.TrimPrefix(u.URL, "http://") }

func (u *upstream) all() []seen {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]seen(nil), u.calls...)
}

func (u *upstream) count() int { return len(u.all()) }

func (u *upstream) reset() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls = nil
}

// only returns the single call that was recorded.
func (u *upstream) only(t testing.TB) seen {
	t.Helper()
	calls := u.all()
	if len(calls) != 1 {
		t.Fatalf("%s saw %d calls, want 1", u.name, len(calls))
	}
	return calls[0]
}

// wantNone checks that nothing at all arrived.
func (u *upstream) wantNone(t testing.TB) {
	t.Helper()
	for _, c := range u.all() {
		t.Errorf("%s saw %s %s, want nothing", u.name, c.method, c.target)
	}
}
