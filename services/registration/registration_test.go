package registration_test

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"go.uber.org/goleak"

	"specialroutes.example/services/estate/consulagent/consulagenttest"
	"specialroutes.example/services/registration"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quick are waits for tests that need not measure them.
func quick() registration.Times {
	return registration.Times{Interval: time.Second, Watch: 20 * time.Millisecond, Least: 5 * time.Millisecond}
}

// run runs a registration until the test ends.
func run(t *testing.T, o registration.Options, at string) *registration.Registration {
	t.Helper()
	o.Times = quick()
	r, err := registration.New(o)
	if err != nil {
		t.Fatal(err)
	}
	addr, err := net.ResolveTCPAddr("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, addr, addr) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return r
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// passing returns the instances of the service "a" that pass.
func passing(t *testing.T, client *api.Client) []*api.ServiceEntry {
	t.Helper()
	entries, _, err := client.Health().Service("a", "", true, nil)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestARealAgentKnowsTheProcessFromItsStartToItsStop(t *testing.T) {
	t.Parallel()
	agent := consulagenttest.Start(t)
	config := api.DefaultNonPooledConfig()
	config.Address = agent.Address()
	client, err := api.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	var ready readiness
	process := httptest.NewServer(&ready)
	t.Cleanup(process.Close)
	r := run(t, registration.Options{
		Agent: agent.Address(), Service: "a", ID: "a-1", Labels: map[string]string{"version": "1.0.0", "org.zone": "x"},
	}, process.Listener.Addr().String())

	eventually(t, "the check passes", func() bool { return len(passing(t, client)) == 1 })
	got := passing(t, client)[0].Service
	if got.ID != "a-1" || net.JoinHostPort(got.Address, port(got.Port)) != process.Listener.Addr().String() ||
		!maps.Equal(got.Meta, map[string]string{"version": "1.0.0"}) || !slices.Equal(got.Tags, []string{"org.zone=x"}) {
		t.Errorf("registered %+v", got)
	}
	ready.set(http.StatusServiceUnavailable)
	eventually(t, "the check fails", func() bool { return len(passing(t, client)) == 0 })
	ready.set(http.StatusOK)

	if err := agent.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is back in an agent that lost it", func() bool { return len(passing(t, client)) == 1 })

	if err := r.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	known, err := client.Agent().Services()
	if err != nil || len(known) != 0 {
		t.Errorf("after Leave the agent knows %v, %v", known, err)
	}
	if err := r.Leave(t.Context()); err != nil {
		t.Errorf("leaving twice: %v", err)
	}
}

func port(n int) string { return (&net.TCPAddr{Port: n}).String()[1:] }

// readiness answers with a status.
type readiness struct {
	mu     sync.Mutex
	status int
}

func (r *readiness) set(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func (r *readiness) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if req.URL.Path != "/readyz" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if r.status != 0 {
		w.WriteHeader(r.status)
	}
}

// fake is an agent that can be away or forget, and notes what it is told.
type fake struct {
	*httptest.Server
	mu    sync.Mutex
	away  bool
	known bool
	told  []string // register, deregister
	last  api.AgentServiceRegistration
}

func newFake(t *testing.T) *fake {
	f := new(fake)
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fake) do(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fake) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.away:
		http.Error(w, "No cluster leader", http.StatusInternalServerError)
	case strings.HasPrefix(req.URL.Path, "/v1/agent/service/register"):
		f.known, f.told = true, append(f.told, "register")
		_ = json.NewDecoder(req.Body).Decode(&f.last)
	case strings.HasPrefix(req.URL.Path, "/v1/agent/service/deregister/"):
		f.told = append(f.told, "deregister")
		if !f.known {
			http.Error(w, "Unknown service ID", http.StatusNotFound)
		}
		f.known = false
	case !f.known:
		http.Error(w, "unknown service ID", http.StatusNotFound)
	default:
		_, _ = w.Write([]byte(`{"ID":"a-1"}`))
	}
}

func (f *fake) registered(times int) func() bool {
	return func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		n := 0
		for _, what := range f.told {
			if what == "register" {
				n++
			}
		}
		return n == times
	}
}

func TestTheProcessComesBackWhenItIsForgotten(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.away = true
	r := run(t, registration.Options{Agent: f.URL, Service: "a", ID: "a-1"}, "127.0.0.1:80")
	time.Sleep(50 * time.Millisecond) // some looks at an agent that is away
	f.do(func() { f.away = false })
	eventually(t, "the first registering", f.registered(1))
	time.Sleep(100 * time.Millisecond) // some looks at one that knows it
	if !f.registered(1)() {
		t.Error("it registers though the agent knows it")
	}
	f.do(func() { f.known = false })
	eventually(t, "the second registering", f.registered(2))
	f.do(func() { f.known = false })
	if err := r.Leave(t.Context()); err != nil {
		t.Errorf("leaving an agent that does not know it: %v", err)
	}
	time.Sleep(100 * time.Millisecond)
	f.do(func() {
		if f.told[len(f.told)-1] != "deregister" {
			t.Errorf("the agent was told %v, want deregister at the end", f.told)
		}
	})
}

func TestWhatAnEarlierProcessLeftIsReplaced(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.known = true
	run(t, registration.Options{Agent: f.URL, Service: "a", ID: "a-1", Labels: map[string]string{"version": "2"}}, "127.0.0.1:81")
	eventually(t, "the registering", f.registered(1))
	f.do(func() {
		if f.last.Port != 81 || f.last.Meta["version"] != "2" {
			t.Errorf("registered %+v", f.last)
		}
	})
}

func TestLeavingAnAgentThatIsAwayIsAnErrorInTime(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	r := run(t, registration.Options{Agent: f.URL, Service: "a", ID: "a-1"}, "127.0.0.1:80")
	eventually(t, "the registering", f.registered(1))
	f.do(func() { f.away = true })
	if err := r.Leave(t.Context()); err == nil || !strings.Contains(err.Error(), "No cluster leader") {
		t.Errorf("Leave: %v", err)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ listening, configured, address, check string }{
		"the address it listens on":    {"10.0.0.1:80", "", "10.0.0.1", "http://10.0.0.1:80/readyz"},
		"of IPv6":                      {"[::1]:80", "", "::1", "http://[::1]:80/readyz"},
		"all interfaces are the node":  {"0.0.0.0:80", "", "", "http://127.0.0.1:80/readyz"},
		"of IPv6 too":                  {"[::]:80", "", "", "http://127.0.0.1:80/readyz"},
		"the configured one is before": {"[::]:80", "web.example", "web.example", "http://web.example:80/readyz"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			run(t, registration.Options{Agent: f.URL, Service: "a", ID: "a-1", Address: tt.configured, Passing: true}, tt.listening)
			eventually(t, "the registering", f.registered(1))
			f.do(func() {
				if f.last.Address != tt.address || f.last.Port != 80 || f.last.Check.HTTP != tt.check || f.last.Check.Status != "passing" {
					t.Errorf("registered %q:%d with %q, %s", f.last.Address, f.last.Port, f.last.Check.HTTP, f.last.Check.Status)
				}
			})
		})
	}
}

func TestWhatCannotBeUsedIsRefused(t *testing.T) {
	t.Parallel()
	for _, o := range []registration.Options{
		{Agent: "127.0.0.1:1", ID: "x"}, {Agent: "127.0.0.1:1", Service: "x"}, {Agent: "gopher://x:1", Service: "x", ID: "x"},
	} {
		if _, err := registration.New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

func TestParseLabels(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]map[string]string{
		"":                      {},
		"version=1.0.0,zone=a":  {"version": "1.0.0", "zone": "a"},
		" version = 1.0.0 , a=": {"version": "1.0.0", "a": ""},
		"q=a=b":                 {"q": "a=b"},
	} {
		if got, err := registration.ParseLabels(text); err != nil || !maps.Equal(got, want) {
			t.Errorf("ParseLabels(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"version", "=1", "a=1,a=2", "a=1,b"} {
		if got, err := registration.ParseLabels(text); err == nil {
			t.Errorf("ParseLabels(%q) = %v, want an error", text, got)
		}
	}
}
