package e2e_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// problemOf returns a problem of the gateway and checks what all of them have: the
// correlation ID of the call.
func problemOf(t *testing.T, got answer, status int, correlation string) problemDoc {
	t.Helper()
	doc := wantProblem(t, got, status)
	if doc.CorrelationID != correlation {
		t.Errorf("correlationId = %q, want %q", doc.CorrelationID, correlation)
	}
	if id := wantOneCorrelation(t, got); id != correlation {
		t.Errorf("%s = %q, want %q", correlationHeader, id, correlation)
	}
	return doc
}

func readFile(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// repositoryRoot is the directory that holds go.work.
func repositoryRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.work above the tests")
		}
		dir = parent
	}
}

func TestTheGatewaysOwnErrorsAreProblemsWithACode(t *testing.T) {
	t.Parallel()
	closed := shared.ports.free(t)
	garbage := serveBytes(t, "this is no HTTP\r\n\r\n")
	l := newLab(t, labOptions{config: map[string]string{
		"routes": fmt.Sprintf("[{prefix: %s, service: %s}, {prefix: /api/none, service: none-service}, {prefix: /api/shut, service: shut-service},"+
			" {prefix: /api/garbage, service: garbage-service}]", labPrefix, labService),
		"instances": fmt.Sprintf("{shut-service: [{id: a, address: %q}], garbage-service: [{id: a, address: %q}]}", closed, garbage),
	}})
	codes := map[string]string{}
	for _, test := range []struct {
		name, target string
		status       int
		says         string // what the problem must name
	}{
		{"a path that is refused", labPrefix + "/a/../b", 400, ""},
		{"no route", "/nothing/here", 404, ""},
		{"a service without instances", "/api/none/x", 503, "none-service"},
		{"connect failed", "/api/shut/x", 502, ""},
		{"a bad answer", "/api/garbage/x", 502, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := strings.ReplaceAll(test.name, " ", "-")
			got := rawGet(t, l.data, test.target, correlationHeader+": "+id)
			doc := problemOf(t, got, test.status, id)
			if !strings.Contains(doc.Detail, test.says) {
				t.Errorf("detail = %q, want it to name %s", doc.Detail, test.says)
			}
			if strings.Contains(string(got.body), closed) || strings.Contains(string(got.body), garbage) {
				t.Errorf("the problem tells the client an inner address: %s", got.body)
			}
			codes[test.name] = doc.Code
		})
	}
	if codes["a path that is refused"] == codes["no route"] || codes["no route"] == codes["a service without instances"] {
		t.Errorf("different errors have one code: %v", codes)
	}
}

// serveBytes listens and answers every connection with the same bytes.
func serveBytes(t testing.TB, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			buffer := make([]byte, 4096)
			_, _ = conn.Read(buffer)
			_, _ = conn.Write([]byte(answer))
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

func TestABodyOverTheLimitIsRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{config: map[string]string{"limits": "{bodyBytes: 1000}"}})
	for _, test := range []struct {
		size   int
		length int64
		status int
	}{{1000, 1000, 200}, {1000, -1, 200}, {1001, 1001, 413}, {1001, -1, 413}, {1 << 20, 1 << 20, 413}} {
		l.old.reset()
		req, err := http.NewRequest("POST", l.base+"/x", strings.NewReader(strings.Repeat("x", test.size)))
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = test.length
		req.Header.Set(correlationHeader, "limit-1")
		got, err := send(req)
		if err != nil {
			t.Fatalf("%+v: %v", test, err)
		}
		if test.status == 200 {
			if got.status != 200 {
				t.Errorf("%+v: status = %d: %s", test, got.status, got.body)
			}
			continue
		}
		problemOf(t, got, test.status, "limit-1")
		for _, saw := range l.old.all() {
			if saw.complete {
				t.Errorf("%+v: the upstream got %d bytes that look complete", test, saw.size)
			}
		}
	}
}

func TestAHeadOverTheLimitIsRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	if got := rawGet(t, l.data, labPrefix+"/x", "X-Long: "+strings.Repeat("x", 60_000)); got.status != 200 {
		t.Errorf("60,000 bytes of head: status = %d, want 200", got.status)
	}
	wantProblem(t, rawGet(t, l.data, labPrefix+"/x", "X-Long: "+strings.Repeat("x", 80_000)), 431)
	var many []string
	for i := range 120 {
		many = append(many, fmt.Sprintf("X-%d: x", i))
	}
	wantProblem(t, rawGet(t, l.data, labPrefix+"/x", many...), 431)
}

func TestAnAnswerThatTakesTooLongIsA504(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	alternate := newUpstream(t, "new", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	l := newLab(t, labOptions{new: alternate, config: map[string]string{"timeouts": "{response: 300ms}"}})
	l.toNew(t)
	for _, method := range []string{"GET", "POST"} {
		l.new.reset()
		began := time.Now()
		got := call(t, method, l.base+"/x", nil, headers{{correlationHeader, "slow-" + method}})
		took := time.Since(began)
		problemOf(t, got, 504, "slow-"+method)
		if took < 300*time.Millisecond || took > 3*time.Second {
			t.Errorf("%s: the 504 came after %v, want about 300 ms", method, took)
		}
		l.new.only(t) // timeouts are never retried
	}
	l.old.wantNone(t)
}

func TestTheDemoWaits2500MillisecondsForAnAnswer(t *testing.T) {
	est, r := demo(t)
	release := make(chan struct{})
	alternate := newUpstream(t, "new", func(_ http.ResponseWriter, req *http.Request) {
		select {
		case <-release:
		case <-req.Context().Done():
		}
	})
	defer close(release)
	r.put(t, book{organization, "Y", alternate.URL, 0})
	began := time.Now()
	got := call(t, "GET", est.GatewayURL(0)+organizationPath, nil, nil)
	took := time.Since(began)
	wantProblem(t, got, 504)
	if took < 2500*time.Millisecond || took > 5*time.Second {
		t.Errorf("the 504 came after %v, want about 2.5 s", took)
	}
}

func TestAnUpstreamThatReadsAllAndClosesIsAskedOnceForAPost(t *testing.T) {
	t.Parallel()
	alternate := newUpstream(t, "new", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	l := newLab(t, labOptions{new: alternate})
	l.toNew(t)
	got := call(t, "POST", l.base+"/x", strings.NewReader("pay once"), headers{{correlationHeader, "once"}})
	problemOf(t, got, 502, "once")
	l.new.only(t)
	l.old.wantNone(t) // bytes were sent, so the call is nobody else's
}

func TestAnAnswerThatIsCutIsCutForTheClientToo(t *testing.T) {
	t.Parallel()
	for name, wire := range map[string]string{
		"with a length": "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
		"chunked":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, labOptions{})
			l.put(t, book{labService, "Y", "http://" + serveBytes(t, wire), 0})
			got, err := do("GET", l.base+"/x", nil, nil)
			if err == nil && got.status == 200 {
				t.Errorf("the client got a whole answer %q of a cut one", got.body)
			}
			if strings.Contains(string(got.body), "problem") {
				t.Errorf("an error was appended to the answer: %q", got.body)
			}
			l.old.wantNone(t)
		})
	}
}
