package consul_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/registry/consul"
	"specialroutes.example/gateway/internal/registry/consul/consultest"
)

// two are a server with the instances 1 and 2 of the service "a", and a registry
// that knows them.
func two(t *testing.T, times consul.Times) (*consultest.Server, *consul.Registry) {
	t.Helper()
	s := consultest.NewServer(t)
	s.Set("a", consultest.Entry("1", "10.0.0.1", 80), consultest.Entry("2", "10.0.0.2", 80))
	r := follow(t, consul.Options{Address: s.URL, Table: []string{"a"}, Times: times, MaxAnswer: 1 << 20})
	shows(t, r, "1", "2")
	return s, r
}

// wrong has all answers be wrong, and returns when they have been seen.
func wrong(t *testing.T, s *consultest.Server, r *consul.Registry, h http.HandlerFunc) {
	t.Helper()
	before := r.Status().Errors
	s.Instead(h)
	eventually(t, "two errors", func() bool { return r.Status().Errors >= before+2 })
	if got := shown(r); !slices.Equal(got, []string{"1", "2"}) {
		t.Fatalf("during the errors instances = %v, want all", got)
	}
}

func status(code int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, code) }
}

// body is a good answer with any body.
func body(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Consul-Index", "7")
		w.Header().Set("X-Consul-LastContact", "0")
		_, _ = io.WriteString(w, text)
	}
}

func TestAnErrorTakesNothing(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.HandlerFunc{
		"no leader":      status(500, "No cluster leader"),
		"no such ACL":    status(403, "ACL not found"),
		"rate limited":   status(429, "rate limit exceeded"),
		"not found":      status(404, ""),
		"no JSON":        body("<html>a portal</html>"),
		"cut JSON":       body(`[{"Node":{`),
		"another JSON":   body(`{"a":1}`),
		"nothing":        body(""),
		"closed at once": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"emptied by ACLs": func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("X-Consul-Results-Filtered-By-ACLs", "true")
			body("[]")(w, req)
		},
		"too long": func(w http.ResponseWriter, req *http.Request) {
			body("[")(w, req)
			for range 1 << 20 {
				if _, err := io.WriteString(w, strings.Repeat(" ", 1<<10)); err != nil {
					return
				}
			}
		},
		"too long an error": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			for range 1 << 20 {
				if _, err := io.WriteString(w, strings.Repeat("x", 1<<10)); err != nil {
					return
				}
			}
		},
		"endless": func(w http.ResponseWriter, req *http.Request) {
			body("[")(w, req)
			for req.Context().Err() == nil {
				_, _ = io.WriteString(w, " ")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(time.Millisecond)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			times := quick()
			times.Answer = 100 * time.Millisecond
			s, r := two(t, times)
			wrong(t, s, r, h)
			if text := r.Status().LastError; text == "" || len(text) > 400 {
				t.Errorf("the error is %d bytes: %.100q", len(text), text)
			}
			if st := r.Status(); st.FailingSince.IsZero() || st.FailingSince.Before(st.Since) || st.LastErrorAt.Before(st.FailingSince) {
				t.Errorf("while questions fail: %+v", st)
			}
			s.Instead(nil)
			s.Set("a", consultest.Entry("3", "10.0.0.3", 80))
			shows(t, r, "1?", "2?", "3")
			if st := r.Status(); !st.FailingSince.IsZero() || st.LastErrorAt.IsZero() || st.Since.Before(st.LastErrorAt) {
				t.Errorf("afterwards: %+v", st)
			}
		})
	}
}

// The log does not tell of instances where none have ever been known.
func TestWithoutConsulFromTheStart(t *testing.T) {
	t.Parallel()
	lines := make(chan string, 100)
	follow(t, consul.Options{
		Address: "127.0.0.1:1", Table: []string{"a"}, Times: quick(),
		Log: slog.New(slog.NewTextHandler(lineWriter(lines), nil)),
	})
	if line := <-lines; !strings.Contains(line, "no instances are known yet") || strings.Contains(line, "stay in force") {
		t.Errorf("the log says %s", line)
	}
}

// lineWriter sends what is written, as long as there is room.
type lineWriter chan string

func (w lineWriter) Write(p []byte) (int, error) {
	select {
	case w <- string(p):
	default:
	}
	return len(p), nil
}

func TestAfterAnErrorWhatIsMissingIsUnconfirmed(t *testing.T) {
	t.Parallel()
	s, r := two(t, quick())
	s.Set("a")
	shows(t, r)
	s.Set("a", consultest.Entry("1", "10.0.0.1", 80), consultest.Entry("2", "10.0.0.2", 80))
	shows(t, r, "1", "2")

	wrong(t, s, r, status(500, "No cluster leader"))
	s.Set("a")
	s.Instead(nil) // it has come back empty
	shows(t, r, "1?", "2?")
	s.Set("a", consultest.Entry("2", "10.0.0.2", 80))
	shows(t, r, "1?", "2")
	r.ConnectFailed("a", "2") // it is listed
	r.ConnectFailed("a", "1")
	shows(t, r, "2")
	s.Set("a", consultest.Entry("1", "10.0.0.1", 80), consultest.Entry("2", "10.0.0.2", 80))
	shows(t, r, "1", "2")
}

// A restarted agent takes all checks for critical until they have run.
func TestSoonAfterAnErrorWhatGoesIsUnconfirmedToo(t *testing.T) {
	t.Parallel()
	s, r := two(t, quick())
	wrong(t, s, r, status(500, ""))
	s.Instead(nil)
	s.Set("a", consultest.Entry("1", "10.0.0.1", 80), consultest.Entry("2", "10.0.0.2", 80))
	eventually(t, "it is followed again", func() bool { q := s.Queries(); return q[len(q)-1].Index > 1 })
	s.Set("a")
	shows(t, r, "1?", "2?")
}

func TestAnIndexThatGoesBackwardsBeginsAnew(t *testing.T) {
	t.Parallel()
	s, r := two(t, quick())
	s.SetIndex(5)
	s.Set("a", consultest.Entry("2", "10.0.0.2", 80))
	shows(t, r, "1?", "2")
	eventually(t, "a question with index 0 within one question", func() bool {
		q := s.Queries()
		again := slices.IndexFunc(q, func(q consultest.Query) bool { return q.Index > 6 })
		if again < 0 {
			return false
		}
		restart := slices.IndexFunc(q[again:], func(q consultest.Query) bool { return q.Index == 0 })
		return restart >= 0 && restart <= 2
	})
	s.Set("a", consultest.Entry("2", "10.0.0.2", 80), consultest.Entry("3", "10.0.0.3", 80))
	shows(t, r, "1?", "2", "3")
}

func TestUnconfirmedInstancesGoWhenTheirTimeIsOver(t *testing.T) {
	t.Parallel()
	times := quick()
	times.Unconfirmed = time.Second
	s, r := two(t, times)
	wrong(t, s, r, status(500, ""))
	time.Sleep(2 * times.Unconfirmed) // the time does not run while Consul is away
	if got := shown(r); !slices.Equal(got, []string{"1", "2"}) {
		t.Fatalf("while Consul is away instances = %v, want all", got)
	}
	s.Set("a", consultest.Entry("1", "10.0.0.1", 80))
	s.Instead(nil)
	shows(t, r, "1", "2?")
	shows(t, r, "1")
	s.Set("a") // and then an unbroken watch holds again
	shows(t, r)
}

func TestAnAgentThatIsAwayAgainKeepsTheUnconfirmed(t *testing.T) {
	t.Parallel()
	times := quick()
	times.Unconfirmed = time.Second
	s, r := two(t, times)
	wrong(t, s, r, status(500, ""))
	s.Set("a", consultest.Entry("1", "10.0.0.1", 80))
	s.Instead(nil)
	shows(t, r, "1", "2?")
	before := r.Status().Errors
	s.Instead(status(500, ""))
	eventually(t, "an error", func() bool { return r.Status().Errors > before })
	if slices.Equal(shown(r), []string{"1"}) {
		t.Skip("too slow: their time was over before Consul went away again")
	}
	time.Sleep(2 * times.Unconfirmed)
	if got := shown(r); !slices.Equal(got, []string{"1", "2?"}) {
		t.Errorf("while Consul is away instances = %v, want both", got)
	}
}

func TestSteadyChurnIsAskedForOnceInASecond(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.HandlerFunc{
		"always another index, always the same": nil,
		"index 0":                               body("[]"),
		"errors":                                status(500, ""),
		"no index": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Consul-LastContact", "0")
			_, _ = io.WriteString(w, "[]")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := consultest.NewServer(t)
			s.Set("a", consultest.Entry("1", "10.0.0.1", 80))
			s.Instead(h)
			times := consul.DefaultTimes()
			times.Least = 10 * time.Millisecond
			r := follow(t, consul.Options{Address: s.URL, Table: []string{"a"}, Times: times})
			if h == nil {
				awaitReady(t, r)
			}
			snapshot := r.Load()
			for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				s.SetIndex(uint64(time.Now().UnixNano()))
			}
			q := s.Queries()
			if most := int(time.Since(q[0].At)/time.Second) + 3; len(q) > most || len(q) < 2 {
				t.Errorf("%d questions in %s, want 2 to %d", len(q), time.Since(q[0].At), most)
			}
			if r.Load() != snapshot {
				t.Error("equal data have swapped the snapshot")
			}
		})
	}
}

func TestManyWatchersComeBackSpread(t *testing.T) {
	t.Parallel()
	s := consultest.NewServer(t)
	s.Instead(status(500, "No cluster leader"))
	var table []string
	for n := range 100 {
		table = append(table, fmt.Sprintf("s%d", n))
	}
	times := consul.DefaultTimes()
	r := follow(t, consul.Options{Address: s.URL, Table: table, Times: times})
	eventually(t, "all have failed", func() bool { return r.Status().Errors >= 300 })
	// The third question of each follows a delay of 250 to 500 ms after the second,
	// which followed one as long after the first, which all asked at once.
	asked := make(map[string]int)
	var first, last time.Time
	for _, q := range s.Queries() {
		if asked[q.Service]++; asked[q.Service] != 3 {
			continue
		}
		if first.IsZero() {
			first = q.At
		}
		last = q.At
	}
	if spread := last.Sub(first); spread < 150*time.Millisecond {
		t.Errorf("100 services asked again within %s", spread)
	}
}
