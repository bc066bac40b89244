package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"specialroutes.example/specialroutes/internal/store"
)

// failing is a store whose every method fails, or panics.
type failingStore struct {
	store.Store
	err   error
	panic any
}

func (f failingStore) fail() error {
	if f.panic != nil {
		panic(f.panic)
	}
	return f.err
}
func (f failingStore) Get(context.Context, string) (store.Stored, error) {
	return store.Stored{}, f.fail()
}
func (f failingStore) List(context.Context, string, int) ([]store.Stored, error) {
	return nil, f.fail()
}
func (f failingStore) Write(context.Context, string, store.Author, store.ChangeFunc) (store.Stored, error) {
	return store.Stored{}, f.fail()
}
func (f failingStore) Changes(context.Context, store.Cursor) (store.Changes, error) {
	return store.Changes{}, f.fail()
}

// startFailing serves a store that fails, behind a feed on one that does not.
func startFailing(t *testing.T, f failingStore) *server {
	t.Helper()
	f.Store = openSQLite(t)
	return start(t, f)
}

const hidden = "dial tcp 10.0.0.7:5432: password=hunter2"

func TestErrorsOfTheStoreHaveTheirMeaning(t *testing.T) {
	t.Parallel()
	tests := []struct {
		err    error
		status int
		code   string
	}{
		{store.ErrUnavailable, http.StatusServiceUnavailable, "database_unavailable"},
		{store.ErrReadOnly, http.StatusServiceUnavailable, "database_read_only"},
		{store.ErrUncertain, http.StatusServiceUnavailable, "write_uncertain"},
		{context.DeadlineExceeded, http.StatusServiceUnavailable, "database_unavailable"},
		{errors.New("a bug"), http.StatusInternalServerError, "internal"},
	}
	for _, test := range tests {
		t.Run(test.err.Error(), func(t *testing.T) {
			t.Parallel()
			srv := startFailing(t, failingStore{err: fmt.Errorf("%w: %s", test.err, hidden)})
			requests := map[string]string{"PUT " + bookPath: half, "GET " + bookPath: "", "DELETE " + bookPath: "", "GET /v1/route/abtesting": "", "GET /v1/changes": ""}
			for request, body := range requests {
				method, path, _ := strings.Cut(request, " ")
				a := srv.expect(test.status, method, path, body, "tmx-correlation-id", "abc")
				if p := a.problem(t); p.Code != test.code || p.CorrelationID != "abc" {
					t.Errorf("%s = %+v, want code %s", request, p, test.code)
				}
				if strings.Contains(a.body, "hunter2") || strings.Contains(a.body, "10.0.0.7") {
					t.Errorf("%s tells what is inside: %s", request, a.body)
				}
				if again := a.header.Get("Retry-After"); (again != "") != (test.status == http.StatusServiceUnavailable) {
					t.Errorf("%s = %d with Retry-After %q", request, a.status, again)
				}
			}
			if !strings.Contains(srv.logs.String(), "hunter2") { // a store hides secrets; we pass on its text
				t.Error("the log does not have the cause")
			}
		})
	}
}

func TestAPanicIsOneAnswerAndOneLine(t *testing.T) {
	t.Parallel()
	srv := startFailing(t, failingStore{panic: "a bug"})
	if p := srv.expect(http.StatusInternalServerError, "GET", bookPath, "").problem(t); p.Code != "internal" {
		t.Errorf("code %s", p.Code)
	}
	if n := strings.Count(srv.logs.String(), "panic: a bug"); n != 1 {
		t.Errorf("the log has it %d times", n)
	}
	srv.expect(http.StatusOK, "GET", "/healthz", "")
}

func TestAnAbortedHandlerCutsTheConnection(t *testing.T) {
	t.Parallel()
	srv := startFailing(t, failingStore{panic: http.ErrAbortHandler})
	if res, err := srv.client.Get(srv.url + bookPath); err == nil {
		_ = res.Body.Close()
		t.Errorf("answered with %s", res.Status)
	}
}

func TestOneLineARequestEscapedAndCapped(t *testing.T) {
	t.Parallel()
	srv := start(t, openSQLite(t))
	raw(t, srv, "GET /%0d%0aFAKE%20LINE HTTP/1.1\r\nHost: x\r\nUser-Agent: \"}\r\nConnection: close\r\n\r\n")
	srv.expect(http.StatusNotFound, "GET", "/"+strings.Repeat("a", 60_000), "")
	srv.expect(http.StatusCreated, "PUT", bookPath+"?why=secret", half, "tmx-correlation-id", "id-1")
	var lines []map[string]any
	for line := range strings.Lines(srv.logs.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if len(line) > 2*maxLogged {
			t.Errorf("a line of %d bytes", len(line))
		}
		if fields["msg"] == "request" {
			lines = append(lines, fields)
		}
	}
	if len(lines) != 3 {
		t.Fatalf("%d lines for 3 requests", len(lines))
	}
	last := lines[2]
	for field, want := range map[string]any{
		"method": "PUT", "path": bookPath, "status": 201.0, "correlationId": "id-1", "token": "anonymous", "client": "127.0.0.1",
	} {
		if last[field] != want {
			t.Errorf("%s = %v, want %v", field, last[field], want)
		}
	}
	if strings.Contains(srv.logs.String(), "secret") {
		t.Error("the query string stands in the log")
	}
}

func TestCorrelationIDsAreKeptOrMade(t *testing.T) {
	t.Parallel()
	srv := start(t, openSQLite(t))
	for id, kept := range map[string]bool{
		"a": true, "A.z_0:9/+=@-": true, strings.Repeat("x", 128): true,
		"": false, "a b": false, "a,b": false, "ä": false, strings.Repeat("x", 129): false,
	} {
		got := srv.expect(http.StatusOK, "GET", "/healthz", "", "tmx-correlation-id", id).header.Get("tmx-correlation-id")
		if (got == id) != kept || got == "" {
			t.Errorf("tmx-correlation-id %q is answered with %q", id, got)
		}
	}
}

func TestMetricsCountByWhatIsOurs(t *testing.T) {
	t.Parallel()
	srv := start(t, openSQLite(t))
	srv.expect(http.StatusCreated, "PUT", bookPath, half)
	srv.expect(http.StatusNotFound, "GET", "/made-up", "")
	srv.expect(http.StatusMethodNotAllowed, "MADEUP", bookPath, "")
	body := srv.expect(http.StatusOK, "GET", "/metrics", "").body
	for _, want := range []string{
		`specialroutes_http_requests_total{method="PUT",path="/v1/route/abtesting/:serviceName",status="201"} 1`,
		`specialroutes_http_requests_total{method="other",path="other",status="404"} 1`,
		`specialroutes_http_requests_total{method="other",path="other",status="405"} 1`,
		`specialroutes_followers 0`, `specialroutes_database_up 1`, `specialroutes_revision 1`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	if strings.Contains(strings.ToLower(body), "made") {
		t.Error("what a client made up became a label")
	}
}

func TestTheDocumentIsServed(t *testing.T) {
	t.Parallel()
	a := start(t, openSQLite(t)).expect(http.StatusOK, "GET", "/openapi.yaml", "")
	if a.body != string(openapiDocument) || a.header.Get("Content-Type") != "application/yaml" {
		t.Errorf("%d bytes of %s, want %d of application/yaml", len(a.body), a.header.Get("Content-Type"), len(openapiDocument))
	}
}

func TestRequestsThatNoClientSends(t *testing.T) {
	t.Parallel()
	srv := start(t, openSQLite(t))
	for request, status := range map[string]string{
		"OPTIONS * HTTP/1.1":                   " 404 ",
		"GET http://x/healthz HTTP/1.1":        " 200 ",
		"CONNECT x:1 HTTP/1.1":                 " 404 ",
		"GET /v1/../healthz HTTP/1.1":          " 404 ",
		"GET /healthz/ HTTP/1.1":               " 404 ",
		"GET /healthz%00 HTTP/1.1":             " 404 ",
		"TRACE /healthz HTTP/1.1":              " 405 ",
		"GET /v1/route/abtesting/%zz HTTP/1.1": " 400 ",
	} {
		if got := raw(t, srv, request+"\r\nHost: x\r\nX-Forwarded-Prefix: //evil\r\nConnection: close\r\n\r\n"); !strings.Contains(got, status) || strings.Contains(got, "Location") {
			t.Errorf("%s = %q, want%s", request, got, status)
		}
	}
}

// raw sends bytes and returns the first line of the answer.
func raw(t *testing.T, srv *server, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(srv.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(data), "\r\n\r\n")
	return head
}

func FuzzPutNeverFailsHere(f *testing.F) {
	for _, bad := range badBodies() {
		f.Add([]byte(bad.body))
	}
	f.Add([]byte(half))
	srv := start(f, openSQLite(f))
	f.Fuzz(func(t *testing.T, body []byte) {
		a := srv.of(t).do("PUT", bookPath, string(body), "Content-Type", "application/json")
		switch {
		case a.status >= http.StatusInternalServerError:
			t.Fatalf("PUT %q = %d %s", body, a.status, a.body)
		case a.status >= http.StatusBadRequest:
			a.problem(t)
		default:
			if get := srv.expect(http.StatusOK, "GET", bookPath, ""); get.body != a.body {
				t.Errorf("PUT %q = %s, GET = %s", body, a.body, get.body)
			}
		}
	})
}
