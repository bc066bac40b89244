//go:build linux

package forward_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// inShortage has this test's own process run out of descriptors.
const inShortage = "FORWARD_TEST_SHORTAGE"

// A connect for which there is no descriptor is the gateway's want: it says so, and
// holds nothing against the instance.
func TestWithoutDescriptors(t *testing.T) {
	if os.Getenv(inShortage) != "" {
		for name, scheme := range map[string]string{"HTTP/1.1 upstream": "", "h2c upstream": "h2c"} {
			for path, framing := range map[string]string{
				"the loop":   "Content-Length: 2\r\n\r\nhi",
				"net/http's": "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
			} {
				t.Run(name+", "+path, func(t *testing.T) { withoutDescriptors(t, scheme == "h2c", framing) })
			}
		}
		return
	}
	t.Parallel()
	child := exec.Command(os.Args[0], "-test.run=^TestWithoutDescriptors$", "-test.v")
	child.Env = append(os.Environ(), inShortage+"=1")
	out, err := child.CombinedOutput()
	if err != nil || strings.Count(string(out), "    --- PASS") != 4 {
		t.Errorf("%v:\n%s", err, out)
	}
}

func withoutDescriptors(t *testing.T, h2 bool, framing string) {
	good := plainUpstream(t, func(http.ResponseWriter, *http.Request) {})
	serving := func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }
	var endpoint string
	if h2 {
		endpoint, _ = serveH2(t, false, serving)
	} else {
		endpoint = plainUpstream(t, serving)
	}
	m := serveMany(t, nil, nil, good, endpoint)
	ask := func(c *rawClient) (*http.Response, string) {
		c.send("POST /api/x HTTP/1.1\r\nHost: a\r\n" + framing)
		return c.read("POST")
	}
	clients := make([]*rawClient, 20) // more than open a circuit
	for i := range clients {
		clients[i] = dialRaw(t, m.plain)
		clients[i].send("GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n") // it is accepted
		if res, _ := clients[i].read("GET"); res.StatusCode != 404 {
			t.Fatalf("%d before", res.StatusCode)
		}
	}
	free := takeDescriptors(t)
	for i, c := range clients {
		if res, body := ask(c); res.StatusCode != 503 || !strings.Contains(body, `"overloaded"`) {
			t.Errorf("request %d: %d %s", i, res.StatusCode, body)
		}
	}
	free()
	res, body := ask(dialRaw(t, m.plain))
	if fallback := res.Header.Get("X-Route-Fallback"); res.StatusCode != 200 || body != "hi" || fallback != "" {
		t.Errorf("afterwards %d %q, fallback %q", res.StatusCode, body, fallback)
	}
}

// takeDescriptors leaves the process those that it has, and no other. The returned
// function takes that back.
func takeDescriptors(t *testing.T) (free func()) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	set := func(limit syscall.Rlimit) {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
	}
	set(syscall.Rlimit{Cur: 3, Max: before.Max})
	return func() { set(before) }
}
