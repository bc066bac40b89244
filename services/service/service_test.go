package service_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"specialroutes.example/services/service"
)

// running is a call of Run and the addresses of its endpoints.
type running struct {
	stop   context.CancelFunc
	result chan error
	listen chan string // "name address", one for each port
}

func run(t *testing.T, o service.Options) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	if o.Drain.Limit == 0 {
		o.Drain.Limit = 20 * time.Second
	}
	r := &running{stop: cancel, result: make(chan error, 1), listen: make(chan string, len(o.Endpoints))}
	o.OnListen = func(name string, addr net.Addr) { r.listen <- name + " " + addr.String() }
	var done sync.WaitGroup
	done.Go(func() { r.result <- service.Run(ctx, o) })
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	return r
}

// address returns the address of the next port to open, which must be of that name.
func (r *running) address(t *testing.T, name string) string {
	t.Helper()
	var gotName, address string
	select {
	case line := <-r.listen:
		if _, err := fmt.Sscan(line, &gotName, &address); err != nil {
			t.Fatal(err)
		}
	case err := <-r.result:
		t.Fatalf("Run = %v before the %s port was open", err, name)
	}
	if gotName != name {
		t.Fatalf("opened %s, want %s", gotName, name)
	}
	return address
}

func ok() *http.Server {
	return service.HTTPServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok")
	}))
}

func TestRun_EndpointOpensWhenTold(t *testing.T) {
	t.Parallel()
	open := make(chan struct{})
	r := run(t, service.Options{Endpoints: []service.Endpoint{
		{Name: "data", Address: "127.0.0.1:0", Server: ok(), Open: open},
		{Name: "admin", Address: "127.0.0.1:0", Server: ok()},
	}})
	r.address(t, "admin")
	select {
	case line := <-r.listen:
		t.Fatalf("%s opened too early", line)
	default:
	}
	close(open)
	ask(t, http.MethodGet, "http://"+r.address(t, "data"))
	r.stop()
	if err := <-r.result; err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
}

func TestRun_StopsBeforeAnEndpointOpened(t *testing.T) {
	t.Parallel()
	r := run(t, service.Options{Endpoints: []service.Endpoint{
		{Name: "data", Address: "127.0.0.1:0", Server: ok(), Open: make(chan struct{})},
	}})
	r.stop()
	if err := <-r.result; err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
}

func TestRun_FailedPortLeavesNoneOpen(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	err = service.Run(t.Context(), service.Options{Endpoints: []service.Endpoint{
		{Name: "data", Address: address, Server: ok()},
		{Name: "admin", Address: taken.Addr().String(), Server: ok()},
	}})
	var listenErr *service.ListenError
	if !errors.As(err, &listenErr) || listenErr.Endpoint != "admin" || !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("Run = %v, want a ListenError of admin", err)
	}
	if conn, err := net.Dial("tcp", address); err == nil {
		_ = conn.Close()
		t.Error("the data port stayed open")
	}
}

func TestRun_TakenPortThatIsToOpenLaterStopsTheStart(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	err = service.Run(t.Context(), service.Options{Endpoints: []service.Endpoint{
		{Name: "data", Address: taken.Addr().String(), Server: ok(), Open: make(chan struct{})},
	}})
	var listenErr *service.ListenError
	if !errors.As(err, &listenErr) || listenErr.Endpoint != "data" || !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("Run = %v, want a ListenError of data", err)
	}
}

func TestRun_LateEndpointAnswersUntilTheOthersAreDone(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	data := service.HTTPServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-leave
	}))
	draining := new(service.Draining)
	r := run(t, service.Options{Draining: draining, Endpoints: []service.Endpoint{
		{Name: "data", Address: "127.0.0.1:0", Server: data},
		{Name: "admin", Address: "127.0.0.1:0", Server: service.HTTPServer(service.Ready(draining, nil)), Late: true},
	}})
	dataURL, adminURL := "http://"+r.address(t, "data"), "http://"+r.address(t, "admin")
	var asking sync.WaitGroup
	asking.Go(func() {
		if res, err := http.Get(dataURL); err != nil {
			t.Error(err)
		} else {
			_ = res.Body.Close()
		}
	})
	<-entered
	r.stop()
	for closed := false; !closed; { // until the data port accepts no more
		conn, err := net.Dial("tcp", dataURL[len("http://"):])
		if closed = err != nil; !closed {
			_ = conn.Close()
		}
	}
	if res := ask(t, http.MethodGet, adminURL); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("admin while draining = %s, want 503", res.Status)
	}
	close(leave)
	asking.Wait()
	if err := <-r.result; err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
}

func TestRun_BackgroundOutlivesTheRequests(t *testing.T) {
	t.Parallel()
	entered, leave, backgroundEnded := make(chan struct{}), make(chan struct{}), make(chan struct{})
	handled := make(chan bool, 1)
	data := service.HTTPServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-leave
		select {
		case <-backgroundEnded:
			handled <- false
		default:
			handled <- true
		}
	}))
	draining := new(service.Draining)
	r := run(t, service.Options{
		Draining:  draining,
		Endpoints: []service.Endpoint{{Name: "data", Address: "127.0.0.1:0", Server: data}},
		Background: []func(context.Context) error{
			func(ctx context.Context) error {
				defer close(backgroundEnded)
				<-ctx.Done()
				return ctx.Err()
			},
			func(context.Context) error { return nil }, // done early, which is no failure
		},
	})
	url := "http://" + r.address(t, "data")
	var asking sync.WaitGroup
	asking.Go(func() { ask(t, http.MethodGet, url) })
	<-entered
	r.stop()
	<-draining.Begun()
	close(leave)
	asking.Wait()
	if err := <-r.result; err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	if !<-handled {
		t.Error("the background function ended before the request")
	}
}

// cutWhile runs a server with a request in flight that the handler does not end,
// stops it, and checks that Run tells of the cut.
func cutWhile(t *testing.T, handle func(entered chan<- struct{}) http.HandlerFunc) net.Conn {
	t.Helper()
	entered := make(chan struct{})
	draining := new(service.Draining)
	server := service.HTTPServer(draining.Wrap(handle(entered)))
	r := run(t, service.Options{
		Draining: draining, Drain: service.DrainTimes{Limit: time.Millisecond},
		Endpoints: []service.Endpoint{{Name: "data", Address: "127.0.0.1:0", Server: server}},
	})
	conn, err := net.Dial("tcp", r.address(t, "data"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-entered
	r.stop()
	if err := <-r.result; !errors.Is(err, service.ErrCut) {
		t.Errorf("Run = %v, want ErrCut", err)
	}
	return conn
}

func TestRun_CutClosesConnectionsOfHandlersThatGoOn(t *testing.T) {
	t.Parallel()
	leave := make(chan struct{})
	defer close(leave)
	conn := cutWhile(t, func(entered chan<- struct{}) http.HandlerFunc {
		return func(http.ResponseWriter, *http.Request) {
			close(entered)
			<-leave
		}
	})
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading from the connection = %v, want it closed", err)
	}
}

func TestRun_CutEndsTheContextOfConnectionsTakenOver(t *testing.T) {
	t.Parallel()
	noticed := make(chan struct{})
	cutWhile(t, func(entered chan<- struct{}) http.HandlerFunc {
		return func(w http.ResponseWriter, req *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			close(entered)
			<-req.Context().Done()
			close(noticed)
		}
	})
	select {
	case <-noticed:
	case <-time.After(10 * time.Second):
		t.Error("the handler was not told")
	}
}

func TestRun_ServesHTTP2OverTLS(t *testing.T) {
	t.Parallel()
	source := httptest.NewTLSServer(nil) // for its certificate
	defer source.Close()
	r := run(t, service.Options{Endpoints: []service.Endpoint{{
		Name: "data", Address: "127.0.0.1:0", Server: ok(),
		TLS: &tls.Config{Certificates: source.TLS.Certificates, MinVersion: tls.VersionTLS12},
	}}})
	address := r.address(t, "data")
	client := source.Client()
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	defer client.CloseIdleConnections()
	res, err := client.Get("https://" + address)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.ProtoMajor != 2 {
		t.Errorf("protocol = %s, want HTTP/2.0", res.Proto)
	}
	if err := service.Healthcheck(t.Context(), address, true); err != nil {
		t.Errorf("Healthcheck = %v, want nil", err)
	}
}

func TestHealthcheck(t *testing.T) {
	t.Parallel()
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/healthz" {
			t.Errorf("asked for %s", req.URL.Path)
		}
		w.WriteHeader(status)
	}))
	address := server.Listener.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	for _, listen := range []string{address, ":" + port, "0.0.0.0:" + port, "[::]:" + port} {
		if err := service.Healthcheck(t.Context(), listen, false); err != nil {
			t.Errorf("Healthcheck(%s) = %v, want nil", listen, err)
		}
	}
	status = http.StatusServiceUnavailable
	if err := service.Healthcheck(t.Context(), address, false); err == nil {
		t.Error("Healthcheck of an unhealthy process = nil, want an error")
	}
	server.Close()
	if err := service.Healthcheck(t.Context(), address, false); err == nil {
		t.Error("Healthcheck of no process = nil, want an error")
	}
}

func TestReady_SaysWhyNot(t *testing.T) {
	t.Parallel()
	rec := httptest.NewRecorder()
	check := func(context.Context) error { return errors.New("the database does not answer") }
	service.Ready(new(service.Draining), check).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	if rec.Code != http.StatusServiceUnavailable || !containsAll(rec.Body.String(), `"not_ready"`, "the database does not answer") {
		t.Errorf("answer = %d %s, want 503 with the reason", rec.Code, rec.Body)
	}
}

func containsAll(s string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(s, part) {
			return false
		}
	}
	return true
}
