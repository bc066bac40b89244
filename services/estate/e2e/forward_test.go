package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

const mib = 1 << 20

func TestTheAlternateSeesEveryVerb(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	l.toNew(t)
	for _, verb := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"} {
		for _, body := range []string{"", "a body of " + verb} {
			if body != "" && verb == "HEAD" {
				continue // net/http's server side gives a HEAD no body to read
			}
			t.Run(fmt.Sprintf("%s with %d bytes", verb, len(body)), func(t *testing.T) {
				l.new.reset()
				got := call(t, verb, l.base+"/v1/things/7", strings.NewReader(body), nil)
				if got.status != 200 {
					t.Errorf("status = %d: %s", got.status, got.body)
				}
				if verb != "HEAD" && string(got.body) != "new" {
					t.Errorf("body = %q, want that of the alternate", got.body)
				}
				saw := l.new.only(t)
				if saw.method != verb || saw.target != "/v1/things/7" {
					t.Errorf("the alternate saw %s %s", saw.method, saw.target)
				}
				if saw.sum != sum([]byte(body)) || saw.length != int64(len(body)) {
					t.Errorf("the alternate saw %d bytes (announced %d), want %d", saw.size, saw.length, len(body))
				}
			})
		}
	}
	l.old.wantNone(t)
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// passed are request targets below a prefix that must reach the upstream byte for
// byte: the path is never decoded nor encoded again, the query always passes.
var passed = []string{
	"/", "", "/a", "/a/", "//", "//a//b/", "/a//", "/%2F", "/a%2fb/%2Fc", "/%3B;%3f?", "/a%20b/%C3%A9", "/%c3%a9",
	"/%252e%252e/x", "/a;b=c;d/e,f", "/:@!$&'()*+,=-._~", "/a.b/..c/d../...", "/.hidden", "/%61%62", "/{}|^`\"<>[]",
	"/http://example.org/x", "/%23", "/%3F%2f",
	"/q?", "/q?a=1&a=2&b", "/q?a=1;b=2&c=3", "/q?a=%zz&c=3", "/q?%", "/q?a=b+c%20d&e==&&", "/q?x=/../y/./z", "/q?u=http://a/?b=c",
	"/q?%41=%2B&%E2%82%AC=%e2%82%ac", "/q?a=\"<>{}|\\^`'[]", "/q??a?b?", "?a=b", "?",
}

// arrived is what an upstream sees of a target: what is left after the prefix
// starts with a slash.
func arrived(target string) string {
	if !strings.HasPrefix(target, "/") {
		return "/" + target
	}
	return target
}

func TestTheAlternateSeesPathAndQueryByteForByte(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	l.toNew(t)
	for _, target := range passed {
		t.Run(target, func(t *testing.T) {
			l.new.reset()
			if got := rawGet(t, l.data, labPrefix+target); got.status != 200 {
				t.Fatalf("status = %d: %s", got.status, got.body)
			}
			if saw := l.new.only(t); saw.target != arrived(target) {
				t.Errorf("sent %q, the alternate saw %q", target, saw.target)
			}
		})
	}
	l.old.wantNone(t)
}

func TestTheDefaultSeesPathAndQueryByteForByte(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	for _, target := range passed {
		l.old.reset()
		if got := rawGet(t, l.data, labPrefix+target); got.status != 200 {
			t.Errorf("%q: status = %d: %s", target, got.status, got.body)
			continue
		}
		if saw := l.old.only(t); saw.target != arrived(target) {
			t.Errorf("sent %q, the default saw %q", target, saw.target)
		}
	}
}

func TestThePathOfAnEndpointIsPutBeforeTheRest(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	for _, test := range []struct{ endpoint, target, want string }{
		{"", "/v1/x?q", "/v1/x?q"},
		{"/base", "/v1/x", "/base/v1/x"},
		{"/ba%2Fse/b;c", "/a%20b?x=%zz", "/ba%2Fse/b;c/a%20b?x=%zz"},
	} {
		t.Run("endpoint path "+test.endpoint, func(t *testing.T) {
			l.new.reset()
			l.put(t, book{labService, "Y", l.new.URL + test.endpoint, 0})
			if got := rawGet(t, l.data, labPrefix+test.target); got.status != 200 {
				t.Fatalf("status = %d: %s", got.status, got.body)
			}
			if saw := l.new.only(t); saw.target != test.want {
				t.Errorf("the alternate saw %q, want %q", saw.target, test.want)
			}
		})
	}
}

func TestTheAlternateSeesTheHeadersUnchanged(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	l.toNew(t)
	sent := headers{
		{"Accept", "text/html;q=0.9, */*;q=0.1"},
		{"Accept-Language", "de"},
		{"Authorization", "Bearer of.a.token"},
		{"Cookie", "a=b; c=\"d e\""},
		{"X-Two", "first"},
		{"X-Two", "second, third"},
		{"X-Empty", ""},
		{"X-Latin", "gr\xfc\xdfe"},
		{"X-Long", strings.Repeat("0123456789", 800)},
		{"If-None-Match", `W/"x"`},
		{"Range", "bytes=1-3"},
		{"User-Agent", "e2e/1"},
		{"traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		{"tracestate", "a=1,b=2"},
		{"baggage", "k=v;p, l=w"},
	}
	if got := call(t, "GET", l.base+"/x", nil, sent); got.status != 200 {
		t.Fatalf("status = %d: %s", got.status, got.body)
	}
	saw := l.new.only(t)
	want := http.Header{}
	for _, field := range sent {
		want.Add(field[0], field[1])
	}
	for name, values := range want {
		if got := saw.header.Values(name); !equal(got, values) {
			t.Errorf("%s = %q, want %q", name, got, values)
		}
	}
	// All else that arrives must be the gateway's own.
	own := map[string]bool{
		"X-Forwarded-For": true, "X-Forwarded-Host": true, "X-Forwarded-Port": true, "X-Forwarded-Proto": true,
		"X-Forwarded-Prefix": true, "Forwarded": true, "X-Real-Ip": true, "X-Route-Variant": true,
		"X-Route-Reason": true, "Tmx-Correlation-Id": true,
	}
	for name := range saw.header {
		if want.Values(name) == nil && !own[name] {
			t.Errorf("%s: %q was added", name, saw.header.Values(name))
		}
	}
	if saw.host != l.new.addr() {
		t.Errorf("Host = %q, want the target's authority %q", saw.host, l.new.addr())
	}
	l.old.wantNone(t)
}

func equal(a, b []string) bool {
	return strings.Join(a, "\x00") == strings.Join(b, "\x00") && len(a) == len(b)
}

func TestTheAnswerPassesUnchanged(t *testing.T) {
	t.Parallel()
	zipped := []byte{0x1f, 0x8b, 0, 1, 2, 3}
	alternate := newUpstream(t, "new", func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Encoding", "gzip")
		h.Set("ETag", `"strong"`)
		h.Set("Set-Cookie", "a=b; Path=/")
		h.Add("X-Two", "first")
		h.Add("X-Two", "second")
		h.Set("Location", "http://10.0.0.5:8080/x")
		h.Set("Connection", "X-Hop")
		h.Set("X-Hop", "only for this hop")
		w.WriteHeader(302)
		_, _ = w.Write(zipped)
	})
	l := newLab(t, labOptions{new: alternate})
	l.toNew(t)
	got := call(t, "GET", l.base+"/x", nil, nil)
	if got.status != 302 || !bytes.Equal(got.body, zipped) {
		t.Errorf("status %d, body %x; want 302 and %x", got.status, got.body, zipped)
	}
	for name, want := range map[string][]string{
		"Content-Encoding": {"gzip"}, "Etag": {`"strong"`}, "Set-Cookie": {"a=b; Path=/"},
		"X-Two": {"first", "second"}, "Location": {"http://10.0.0.5:8080/x"}, "X-Hop": nil,
	} {
		if values := got.header.Values(name); !equal(values, want) {
			t.Errorf("%s = %q, want %q", name, values, want)
		}
	}
}

func TestAnAnswerOfTheUpstreamPassesAsItIs(t *testing.T) {
	t.Parallel()
	alternate := newUpstream(t, "new", func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "the upstream's own %d", status)
	})
	l := newLab(t, labOptions{new: alternate})
	l.toNew(t)
	for _, status := range []int{201, 400, 404, 409, 429, 500, 502, 503, 504} {
		got := call(t, "POST", fmt.Sprintf("%s/%d", l.base, status), strings.NewReader("x"), nil)
		if want := fmt.Sprintf("the upstream's own %d", status); got.status != status || string(got.body) != want {
			t.Errorf("status %d, body %q; want %d and %q", got.status, got.body, status, want)
		}
		if v := got.header.Values("X-Route-Fallback"); len(v) != 0 {
			t.Errorf("%d: X-Route-Fallback = %q; an answer never makes a variant unavailable", status, v)
		}
	}
	if n := l.new.count(); n != 9 {
		t.Errorf("the alternate saw %d calls, want 9: none is sent twice", n)
	}
	l.old.wantNone(t)
}

// noise gives n bytes that are the same each time and cannot be compressed.
func noise(n int64) io.Reader {
	var seed [32]byte
	copy(seed[:], "a fixed seed")
	return io.LimitReader(rand.NewChaCha8(seed), n)
}

func noiseSum(t *testing.T, n int64) string {
	t.Helper()
	h := sha256.New()
	if _, err := io.Copy(h, noise(n)); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Not parallel: it reads the memory of one process while nothing else uses it.
func TestABodyOf100MiBPassesUnchangedInFlatMemory(t *testing.T) {
	const size = 100 * mib
	alternate := newUpstream(t, "new", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "GET" {
			if r.URL.RawQuery != "chunked" {
				w.Header().Set("Content-Length", strconv.Itoa(size))
			}
			_, _ = io.Copy(w, noise(size))
		}
	})
	l := newLab(t, labOptions{new: alternate})
	l.toNew(t)
	call(t, "POST", l.base+"/warm", io.LimitReader(noise(mib), mib), nil)
	call(t, "POST", l.base+"/warm", bytes.NewReader(make([]byte, mib)), nil)
	before := peakMemory(t, l.gateway.pid())
	want := noiseSum(t, size)

	for _, upload := range []struct {
		name   string
		length int64 // -1 sends it chunked
	}{{"with its length", size}, {"chunked", -1}} {
		t.Run("request "+upload.name, func(t *testing.T) {
			l.new.reset()
			req, err := http.NewRequest("PUT", l.base+"/upload", noise(size))
			if err != nil {
				t.Fatal(err)
			}
			req.ContentLength = upload.length
			if got, err := send(req); err != nil || got.status != 200 {
				t.Fatalf("status %d, %v: %s", got.status, err, got.body)
			}
			saw := l.new.only(t)
			if saw.size != size || saw.sum != want || !saw.complete {
				t.Errorf("the alternate saw %d bytes, complete %v, the same %v", saw.size, saw.complete, saw.sum == want)
			}
			if saw.length != upload.length {
				t.Errorf("announced length = %d, want %d", saw.length, upload.length)
			}
		})
	}
	for _, query := range []string{"", "chunked"} {
		t.Run("answer "+query, func(t *testing.T) {
			n, got := download(t, l.base+"/download?"+query)
			if n != size || got != want {
				t.Errorf("the client saw %d bytes, the same %v", n, got == want)
			}
		})
	}
	grown := peakMemory(t, l.gateway.pid()) - before
	t.Logf("the gateway's peak memory grew by %d KiB over four bodies of 100 MiB", grown/1024)
	// A body that is kept anywhere costs 100 MiB; buffers cost far less.
	if grown > 48*mib {
		t.Errorf("the gateway's peak memory grew by %d MiB", grown/mib)
	}
	l.old.wantNone(t)
}

func download(t *testing.T, url string) (int64, string) {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	h := sha256.New()
	n, err := io.Copy(h, resp.Body)
	if err != nil {
		t.Fatalf("GET %s breaks off after %d bytes: %v", url, n, err)
	}
	return n, hex.EncodeToString(h.Sum(nil))
}

// peakMemory is the largest resident size that a process ever had, in bytes, 0
// where the system does not tell.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Logf("memory is not measured on %s", runtime.GOOS)
		return 0
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatalf("VmHWM: %v", err)
			}
			return kib * 1024
		}
	}
	t.Fatal("no VmHWM in the process's status")
	return 0
}

func TestABodyIsStreamedWhileItIsSent(t *testing.T) {
	t.Parallel()
	arrivedPart := make(chan string, 4)
	echo := newUpstream(t, "echo", nil)
	echo.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		_ = rc.EnableFullDuplex()
		buffer := make([]byte, 64)
		for {
			n, err := r.Body.Read(buffer)
			if n > 0 {
				arrivedPart <- string(buffer[:n])
				_, _ = w.Write(buffer[:n])
				_ = rc.Flush()
			}
			if err != nil {
				return
			}
		}
	})
	l := newLab(t, labOptions{new: echo})
	l.toNew(t)
	body, feed := io.Pipe()
	defer func() { _ = feed.Close() }()
	req, err := http.NewRequest("POST", l.base+"/stream", body)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan *http.Response, 1)
	go func() {
		resp, err := client.Do(req)
		if err != nil {
			t.Errorf("POST: %v", err)
		}
		answered <- resp
	}()
	if _, err := io.WriteString(feed, "first"); err != nil {
		t.Fatal(err)
	}
	if got := <-arrivedPart; got != "first" {
		t.Fatalf("the upstream got %q before the body was whole, want the first part", got)
	}
	resp := <-answered
	if resp == nil {
		t.FailNow()
	}
	defer resp.Body.Close()
	part := make([]byte, 5)
	if _, err := io.ReadFull(resp.Body, part); err != nil || string(part) != "first" {
		t.Fatalf("the client got %q, %v while the request was still open", part, err)
	}
	if _, err := io.WriteString(feed, "second"); err != nil {
		t.Fatal(err)
	}
	if err := feed.Close(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(resp.Body)
	if err != nil || string(rest) != "second" {
		t.Errorf("the rest = %q, %v", rest, err)
	}
}
