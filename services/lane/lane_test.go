package lane_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"specialroutes.example/services/lane"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// estate is a service behind another one: front calls back with the handler's
// code, and back reports the header that arrived there.
type estate struct {
	front   string
	arrived chan http.Header
}

func newEstate(t *testing.T, o lane.Options, call func(ctx context.Context, client *http.Client, back string) error) *estate {
	t.Helper()
	e := &estate{arrived: make(chan http.Header, 100)}
	back := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { e.arrived <- req.Header }))
	t.Cleanup(back.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: &lane.Transport{Base: transport}}
	front := httptest.NewServer(lane.Middleware(o)(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		if err := call(req.Context(), client, back.URL); err != nil {
			t.Error(err)
		}
	})))
	t.Cleanup(front.Close)
	e.front = front.URL
	return e
}

// get asks front with the header and returns what arrived at back.
func (e *estate) get(t *testing.T, h http.Header) http.Header {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.front, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = h
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	select {
	case arrived := <-e.arrived:
		return arrived
	case <-t.Context().Done():
		t.Fatal("nothing arrived")
		return nil
	}
}

// plainCall asks back once, with nothing of its own.
func plainCall(ctx context.Context, client *http.Client, back string) error {
	return callWith(nil)(ctx, client, back)
}

func callWith(h http.Header) func(context.Context, *http.Client, string) error {
	return func(ctx context.Context, client *http.Client, back string) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, back, nil)
		if err != nil {
			return err
		}
		if h != nil {
			req.Header = h.Clone()
		}
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		return res.Body.Close()
	}
}

func TestTransport_CarriesTheEstatesHeadersAndTheConfiguredOnes(t *testing.T) {
	t.Parallel()
	sent := http.Header{
		"Tmx-Correlation-Id": {"c-1"}, "Tmx-Auth-Token": {"token"}, "Authorization": {"Bearer x"},
		"Tmx-User-Id": {"u-17"}, "Tmx-Org-Id": {"o-1"}, "Zone": {"blue"}, "Version": {"1.0.0", "second line"},
		"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		"Tracestate":  {"a=1", "b=2"}, "Baggage": {"k=v"},
		"Cookie": {"secret=1"}, "X-Other": {"stays here"},
	}
	arrived := newEstate(t, lane.Options{Headers: []string{"zone", "VERSION", "Zone"}}, plainCall).get(t, sent)
	for name, want := range sent {
		if name == "Cookie" || name == "X-Other" {
			want = nil
		}
		if got := arrived[name]; !slices.Equal(got, want) {
			t.Errorf("%s arrived as %q, want %q", name, got, want)
		}
	}
}

func TestTransport_KeepsWhatTheCallerSet(t *testing.T) {
	t.Parallel()
	sent := http.Header{"Tmx-User-Id": {"u-17"}, "Authorization": {"Bearer user"}, "Tmx-Org-Id": {"o-1"}}
	own := http.Header{"Authorization": {"Bearer service"}, "Tmx-Org-Id": nil}
	arrived := newEstate(t, lane.Options{}, callWith(own)).get(t, sent)
	if got := arrived["Authorization"]; !slices.Equal(got, []string{"Bearer service"}) {
		t.Errorf("Authorization = %q, want the caller's", got)
	}
	if got, present := arrived["Tmx-Org-Id"]; present {
		t.Errorf("Tmx-Org-Id = %q, want it kept back", got)
	}
	if got := arrived.Get("Tmx-User-Id"); got != "u-17" {
		t.Errorf("Tmx-User-Id = %q, want u-17", got)
	}
}

func TestTransport_CarriesThroughGoroutines(t *testing.T) {
	t.Parallel()
	afterwards := make(chan error, 1)
	e := newEstate(t, lane.Options{Headers: []string{"zone"}}, func(ctx context.Context, client *http.Client, back string) error {
		ctx = context.WithoutCancel(ctx)
		go func() { afterwards <- plainCall(ctx, client, back) }() // may well run when the request is over
		return nil
	})
	arrived := e.get(t, http.Header{"Zone": {"blue"}})
	if err := <-afterwards; err != nil {
		t.Fatal(err)
	}
	if got := arrived.Get("Zone"); got != "blue" {
		t.Errorf("zone = %q, want blue", got)
	}
}

// refusing fails the first calls, as a connection that is refused does.
type refusing struct {
	base  http.RoundTripper
	fails atomic.Int64
}

func (r *refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	if r.fails.Add(-1) >= 0 {
		return nil, errors.New("connection refused")
	}
	return r.base.RoundTrip(req)
}

func TestTransport_CarriesOnEachTryOfOneRequest(t *testing.T) {
	t.Parallel()
	e := newEstate(t, lane.Options{Headers: []string{"zone"}}, func(ctx context.Context, _ *http.Client, back string) error {
		base := new(http.Transport)
		defer base.CloseIdleConnections()
		flaky := &refusing{base: base}
		flaky.fails.Store(2)
		client := &http.Client{Transport: &lane.Transport{Base: flaky}}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, back, nil)
		if err != nil {
			return err
		}
		var res *http.Response
		for range 3 {
			if res, err = client.Do(req); err == nil {
				return res.Body.Close()
			}
		}
		return err
	})
	arrived := e.get(t, http.Header{"Zone": {"blue"}, "Baggage": {"k=v"}})
	if got := arrived["Zone"]; !slices.Equal(got, []string{"blue"}) {
		t.Errorf("zone = %q after two tries that failed, want blue, once", got)
	}
	if got := arrived["Baggage"]; !slices.Equal(got, []string{"k=v"}) {
		t.Errorf("baggage = %q, want it as it was, once", got)
	}
}

func TestTransport_NothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	e := newEstate(t, lane.Options{Headers: []string{"zone"}}, plainCall)
	var clients sync.WaitGroup
	for i := range 50 { // on few connections and in reused goroutines, with and without a label
		clients.Go(func() {
			if i%2 == 0 {
				e.get(t, http.Header{"Zone": {"blue"}})
			}
		})
	}
	clients.Wait()
	if got, present := e.get(t, http.Header{})["Zone"]; present {
		t.Errorf("zone = %q on a request without one", got)
	}
}

func TestTransport_ConcurrentRequestsDoNotMix(t *testing.T) {
	t.Parallel()
	answered := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprint(w, req.Header.Get(lane.CorrelationID))
	}))
	defer answered.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	client := &http.Client{Transport: &lane.Transport{Base: base}}
	var calls sync.WaitGroup
	for i := range 40 {
		calls.Go(func() {
			id := fmt.Sprintf("c-%d", i)
			ctx := lane.NewContext(t.Context(), lane.From(http.Header{lane.CorrelationID: {id}}))
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, answered.URL, nil)
			if err != nil {
				t.Error(err)
				return
			}
			res, err := client.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			var got string
			if _, err := fmt.Fscan(res.Body, &got); err != nil || got != id {
				t.Errorf("answered %q, %v, want %q", got, err, id)
			}
		})
	}
	calls.Wait()
}

func TestTransport_DoesNotChangeTheRequest(t *testing.T) {
	t.Parallel()
	base := roundTripperFunc(func(*http.Request) (*http.Response, error) { return httptest.NewRecorder().Result(), nil })
	ctx := lane.NewContext(t.Context(), lane.From(http.Header{lane.CorrelationID: {"c-1"}}))
	req := (&http.Request{Method: http.MethodGet, Host: "x"}).WithContext(ctx) // without a header map
	res, err := (&lane.Transport{Base: base}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if len(req.Header) != 0 {
		t.Errorf("the caller's header became %v", req.Header)
	}
}

func TestTransport_RedirectToAnotherHostGetsNothing(t *testing.T) {
	t.Parallel()
	seen := make(chan http.Header, 2)
	stranger := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { seen <- req.Header }))
	defer stranger.Close()
	mux := http.NewServeMux()
	mux.Handle("/away", http.RedirectHandler(stranger.URL, http.StatusFound))
	mux.Handle("/here", http.RedirectHandler("/end", http.StatusFound))
	mux.HandleFunc("/end", func(_ http.ResponseWriter, req *http.Request) { seen <- req.Header })
	own := httptest.NewServer(mux)
	defer own.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	client := &http.Client{Transport: &lane.Transport{Base: base}}
	ctx := lane.NewContext(t.Context(), lane.From(http.Header{lane.AuthToken: {"secret"}}))
	for path, want := range map[string]string{"/away": "", "/here": "secret"} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, own.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if got := (<-seen).Get(lane.AuthToken); got != want {
			t.Errorf("%s: token = %q, want %q", path, got, want)
		}
	}
}

func TestValues_AreACopy(t *testing.T) {
	t.Parallel()
	h := http.Header{lane.UserID: {"u-17"}}
	v := lane.From(h)
	h[lane.UserID][0] = "changed"
	if got := v.Get("tmx-user-id"); got != "u-17" {
		t.Errorf("Get = %q, want u-17", got)
	}
	if got := lane.FromContext(context.Background()).Get(lane.UserID); got != "" {
		t.Errorf("Get of an empty context = %q, want nothing", got)
	}
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
