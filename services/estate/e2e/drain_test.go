package e2e_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"syscall"
	"testing"
	"time"
)

// held is an alternate whose answer waits until the test lets it go.
type held struct {
	*upstream
	arrived chan struct{}
	release chan struct{}
}

func newHeld(t testing.TB) *held {
	t.Helper()
	h := &held{arrived: make(chan struct{}, 16), release: make(chan struct{})}
	h.upstream = newUpstream(t, "held", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/held" {
			_, _ = io.WriteString(w, "quick")
			return
		}
		h.arrived <- struct{}{}
		select {
		case <-h.release:
			_, _ = io.WriteString(w, "finished")
		case <-r.Context().Done():
		}
	})
	return h
}

// callHeld starts a call that hangs in the upstream and returns when it hangs.
func callHeld(t testing.TB, l *lab, h *held) <-chan error {
	t.Helper()
	result := make(chan error, 1)
	go func() {
		got, err := do("GET", l.base+"/held", nil, nil)
		if err == nil && (got.status != 200 || string(got.body) != "finished") {
			err = fmt.Errorf("status %d, body %.200q", got.status, got.body)
		}
		result <- err
	}()
	select {
	case <-h.arrived:
	case <-time.After(10 * time.Second):
		t.Fatal("the call did not reach the upstream")
	}
	return result
}

func TestSIGTERMDrainsTheGateway(t *testing.T) {
	t.Parallel()
	h := newHeld(t)
	l := newLab(t, labOptions{old: h.upstream, config: map[string]string{"drain": "{delay: 1500ms, limit: 20s}"}})
	inFlight := callHeld(t, l, h)

	l.gateway.signal(t, syscall.SIGTERM)
	poll(t, 5*time.Second, "readyz says 503", func() error { return wantStatus(l.admin+"/readyz", 503) })
	if err := wantStatus(l.admin+"/healthz", 200); err != nil {
		t.Errorf("while it drains: %v", err)
	}
	// A balancer that has not noticed yet still sends calls: they are answered, and
	// told to come back on another connection.
	got := rawKeepAlive(t, l.data, labPrefix+"/quick")
	if got.status != 200 || string(got.body) != "quick" {
		t.Errorf("a new call within the delay: status %d, body %q", got.status, got.body)
	}
	if got.header.Get("Connection") != "close" {
		t.Errorf("Connection = %q on an answer while it drains, want close", got.header.Get("Connection"))
	}
	poll(t, 10*time.Second, "the data port is closed", func() error {
		conn, err := net.DialTimeout("tcp", l.data, time.Second)
		if err != nil {
			return nil
		}
		_ = conn.Close()
		return errors.New("it still accepts")
	})
	if l.gateway.exited() {
		t.Error("it ended while a call was in flight")
	}
	close(h.release)
	if err := <-inFlight; err != nil {
		t.Errorf("the call in flight: %v", err)
	}
	if code := l.gateway.wait(t, 10*time.Second); code != 0 {
		t.Errorf("exit code = %d, want 0", code)
	}
}

// rawKeepAlive asks without Connection: close, so that the answer's own is seen.
func rawKeepAlive(t testing.TB, addr, target string) answer {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET "+target+" HTTP/1.1\r\nHost: "+addr+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Close { // net/http takes the header out and sets this
		resp.Header.Set("Connection", "close")
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: body}
}

func TestACallThatDoesNotFinishWithinTheLimitIsCutAndTold(t *testing.T) {
	t.Parallel()
	h := newHeld(t)
	l := newLab(t, labOptions{old: h.upstream, config: map[string]string{"drain": "{delay: 20ms, limit: 500ms}"}})
	inFlight := callHeld(t, l, h)
	l.gateway.signal(t, syscall.SIGTERM)
	if code := l.gateway.wait(t, 10*time.Second); code != 1 {
		t.Errorf("exit code = %d, want 1: a call was cut", code)
	}
	if err := <-inFlight; err == nil {
		t.Error("the call got a whole answer")
	}
}

func TestASecondSIGTERMEndsTheGatewayAtOnce(t *testing.T) {
	t.Parallel()
	h := newHeld(t)
	l := newLab(t, labOptions{old: h.upstream, config: map[string]string{"drain": "{delay: 30s, limit: 30s}"}})
	inFlight := callHeld(t, l, h)
	l.gateway.signal(t, syscall.SIGTERM)
	poll(t, 5*time.Second, "readyz says 503", func() error { return wantStatus(l.admin+"/readyz", 503) })
	began := time.Now()
	l.gateway.signal(t, syscall.SIGTERM)
	code := l.gateway.wait(t, 5*time.Second)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it ended %v after the second signal, want at once", took)
	}
	if code == 0 {
		t.Error("exit code = 0, but a call was cut")
	}
	if err := <-inFlight; err == nil {
		t.Error("the call got a whole answer")
	}
}

func TestAnIdleGatewayEndsSoonAndClean(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	call(t, "GET", l.base+"/x", nil, nil) // leaves an idle connection on either side
	l.gateway.signal(t, syscall.SIGINT)
	began := time.Now()
	if code := l.gateway.wait(t, 10*time.Second); code != 0 {
		t.Errorf("exit code = %d, want 0", code)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("it took %v; the delay is 50 ms and nothing was in flight", took)
	}
}

func TestSIGTERMDrainsSpecialRoutesAndEndsTheQuestionsThatWait(t *testing.T) {
	t.Parallel()
	special, url := startSpecialRoutes(t, t.TempDir()+"/special.db", shared.ports.free(t))
	cursor := cursorOf(t, url)
	waiting, written := make(chan error, 1), make(chan struct{})
	traced := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { close(written) },
	})
	req, err := http.NewRequestWithContext(traced, "GET", url+"/v1/changes?wait=55s&after="+cursor, nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		got, err := send(req)
		if err == nil && got.status != 200 {
			err = fmt.Errorf("status %d: %s", got.status, got.body)
		}
		waiting <- err
	}()
	<-written
	for range 50 { // the question has been read when so many later ones were answered
		call(t, "GET", url+"/healthz", nil, nil)
	}
	began := time.Now()
	special.signal(t, syscall.SIGTERM)
	if code := special.wait(t, 20*time.Second); code != 0 {
		t.Errorf("exit code = %d, want 0", code)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v to end", took)
	}
	if err := <-waiting; err != nil {
		t.Errorf("the question that waited: %v", err)
	}
}
