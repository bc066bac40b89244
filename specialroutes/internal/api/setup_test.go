package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"specialroutes.example/services/service"
	"specialroutes.example/specialroutes/internal/api/contracttest"
	"specialroutes.example/specialroutes/internal/feed"
	"specialroutes.example/specialroutes/internal/gateways"
	"specialroutes.example/specialroutes/internal/store"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// document is the contract, parsed once: that takes longer than most tests.
var document = sync.OnceValue(func() *contracttest.Document {
	return contracttest.Load(fatal{}, openapiDocument,
		// Records that may be of another version, or cannot be used.
		"$.body.records[*].record.**", "$.body.routes[*].record.**", "$.body.record.**",
		"$.body.instanceLabels[*].labels.**", "$.body.instances[*].labels.**",
		"$.body.entries[*].before.**", "$.body.entries[*].after.**",
		"$.body.changes[*].before.**", "$.body.changes[*].after.**",
		"$.query.a-parameter-of-tomorrow")
})

// fatal reports a document that cannot be used when no test is at hand.
type fatal struct{ testing.TB }

func (fatal) Helper()                        {}
func (fatal) Fatalf(format string, _ ...any) { panic(format) }

func engineWithoutStore(t *testing.T) *gin.Engine {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	return newEngine(Options{Feed: feed.New(nil, log), Log: log, Metrics: prometheus.NewRegistry(), Draining: new(service.Draining)})
}

// logs is a log that may be read while it is written.
type logs struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.String()
}

// server is the interface on a real socket, with a store and a running feed.
type server struct {
	t        testing.TB
	url      string
	client   *http.Client
	contract *contracttest.Transport
	store    store.Store
	feed     *feed.Feed
	drain    *service.Draining
	logs     *logs
}

// start serves a store. Every exchange with it is checked against the contract.
func start(t testing.TB, s store.Store, change ...func(*Options)) *server {
	t.Helper()
	srv := &server{t: t, store: s, drain: new(service.Draining), logs: new(logs)}
	log := slog.New(slog.NewJSONHandler(srv.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	srv.feed = feed.New(s, log)
	o := Options{
		Store: s, Feed: srv.feed, Log: log, Metrics: prometheus.NewRegistry(),
		Gateways: gateways.New(s, log), Draining: srv.drain, InsecureAdmin: true,
	}
	for _, f := range change {
		f(&o)
	}
	listener := httptest.NewUnstartedServer(New(o))
	listener.Config.DisableGeneralOptionsHandler = true // as main does
	listener.Start()
	srv.url = listener.URL
	base := &http.Transport{DisableCompression: true}
	srv.contract = &contracttest.Transport{T: t, Document: document(), Base: base}
	srv.client = &http.Client{Transport: srv.contract}

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- srv.feed.Run(ctx) }()
	t.Cleanup(func() {
		srv.feed.Stop()
		listener.Close()
		base.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("feed.Run = %v", err)
		}
	})
	waitFor(t, "the feed", func() bool { _, err := srv.feed.Head(); return err == nil })
	return srv
}

// of makes a subtest the one that fails.
func (s *server) of(t testing.TB) *server {
	s.t, s.contract.T = t, t
	return s
}

// answer is an answer, read.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request; headers are names and values in turn. A body is JSON unless
// they say otherwise.
func (s *server) do(method, path, body string, headers ...string) answer {
	s.t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequest(method, s.url+path, r)
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if strings.EqualFold(headers[i], "Host") {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := s.client.Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer{res.StatusCode, res.Header, string(data)}
}

// expect fails the test unless the answer has the status.
func (s *server) expect(status int, method, path, body string, headers ...string) answer {
	s.t.Helper()
	a := s.do(method, path, body, headers...)
	if a.status != status {
		s.t.Fatalf("%s %s %s = %d %s, want %d", method, path, body, a.status, a.body, status)
	}
	return a
}

// problemOf reads a problem document.
type problemOf struct {
	Status        int
	Code          string
	Detail        string
	CorrelationID string
	Route         string
	Errors        []struct{ Pointer, Detail string }
}

func (a answer) problem(t testing.TB) problemOf {
	t.Helper()
	var p problemOf
	if err := json.Unmarshal([]byte(a.body), &p); err != nil || a.header.Get("Content-Type") != "application/problem+json" {
		t.Fatalf("%d %s %q is no problem: %v", a.status, a.header.Get("Content-Type"), a.body, err)
	}
	if p.Status != a.status || p.CorrelationID == "" || p.CorrelationID != a.header.Get("tmx-correlation-id") {
		t.Errorf("%d with correlation ID %q is a problem of %+v", a.status, a.header.Get("tmx-correlation-id"), p)
	}
	return p
}

// pointers returns what the problem's errors point at.
func (p problemOf) pointers() []string {
	var list []string
	for _, e := range p.Errors {
		list = append(list, e.Pointer)
	}
	return list
}

// sameJSON says whether two documents are equal but for order and space.
func sameJSON(t testing.TB, a, b string) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Fatalf("%q: %v", a, err)
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	m, _ := json.Marshal(x)
	n, _ := json.Marshal(y)
	return bytes.Equal(m, n)
}
