package bench

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestConstantLoadSendsWhatIsDue(t *testing.T) {
	var calls atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		_, _ = w.Write([]byte(r.URL.Path))
	}))
	defer s.Close()
	times, err := constantLoad(t.Context(), s.Listener.Addr().String(), "/x", pace{500, 400 * time.Millisecond, patience, 4})
	if err != nil {
		t.Fatal(err)
	}
	if len(times) != 200 || calls.Load() != 200 {
		t.Errorf("%d times of %d calls, want 200", len(times), calls.Load())
	}
	for _, d := range times {
		if d <= 0 {
			t.Fatalf("an answer took %v", d)
		}
	}
}

// A server that answers one call at a time and holds the first for long makes all
// others late that were due meanwhile, though none of them is even sent.
func TestConstantLoadTimesFromTheMomentThatARequestIsDue(t *testing.T) {
	const held = 300 * time.Millisecond
	var calls atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if calls.Add(1) == 1 {
			time.Sleep(held) // what is measured is a server that is slow
		}
	}))
	defer s.Close()
	times, err := constantLoad(t.Context(), s.Listener.Addr().String(), "/", pace{200, held, patience, 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := quantile(times, 0.5); got < held/4 {
		t.Errorf("half of the answers took less than %v, while the only connection was held for %v", got, held)
	}
}

func TestConstantLoadRefusesWhatIsNoAnswer(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"another status": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"no length":      func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() },
		"too long":       func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, longestAnswer)) },
		"a head too long": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 2*longestAnswer))
		},
		"a connection's end": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		s := httptest.NewServer(h)
		_, err := constantLoad(t.Context(), s.Listener.Addr().String(), "/", pace{100, 100 * time.Millisecond, patience, 2})
		if !errors.Is(err, errAnswer) {
			t.Errorf("%s: error = %v, want errAnswer", name, err)
		}
		s.Close()
	}
	if _, err := constantLoad(t.Context(), "127.0.0.1:1", "/", pace{100, time.Second, patience, 1}); err == nil {
		t.Error("nobody listens, and it is no error")
	}
}

func TestConstantLoadCountsWhatIsNotAnswered(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer s.Close()
	defer close(release)
	p := pace{rate: 200, lasts: 100 * time.Millisecond, patience: 200 * time.Millisecond, connections: 4}
	times, err := constantLoad(t.Context(), s.Listener.Addr().String(), "/", p)
	if err != nil {
		t.Fatal(err)
	}
	if len(times) != p.total() {
		t.Errorf("%d times, want one for each of %d requests", len(times), p.total())
	}
	for _, d := range times {
		if d < p.patience {
			t.Fatalf("a request was waited for only %v, want at least %v", d, p.patience)
		}
	}
}
