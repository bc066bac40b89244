package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"specialroutes.example/services/problem"
)

// answer is one answer, read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// client follows no redirect, asks for no compression and uses no proxy of the
// environment: a test sees what was sent.
var client = &http.Client{
	Timeout: 2 * time.Minute,
	Transport: &http.Transport{
		MaxIdleConnsPerHost: 64,
		DisableCompression:  true,
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// headers is a short way to write request headers; a name may be given twice.
type headers [][2]string

// do makes one call and reads the answer.
func do(method, url string, body io.Reader, h headers) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return answer{}, err
	}
	for _, field := range h {
		req.Header.Add(field[0], field[1])
	}
	return send(req)
}

func send(req *http.Request) (answer, error) {
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	read, err := io.ReadAll(resp.Body)
	return answer{status: resp.StatusCode, header: resp.Header, body: read}, err
}

// call is do for a test that cannot go on without an answer.
func call(t testing.TB, method, url string, body io.Reader, h headers) answer {
	t.Helper()
	got, err := do(method, url, body, h)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return got
}

// raw writes bytes to an address as they are and reads one answer: what net/http
// would refuse to send, or would tidy, must be sent by hand.
func raw(t testing.TB, addr, request string) answer {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		t.Fatalf("dial %s: %v", addr, err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatalf("write %q: %v", request, err)
	}
	method, _, _ := strings.Cut(request, " ")
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("no answer to %.200q: %v", request, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("the answer to %.200q breaks off: %v", request, err)
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: body}
}

// rawGet is raw for a GET of a target with header lines.
func rawGet(t testing.TB, addr, target string, lines ...string) answer {
	t.Helper()
	lines = append(lines, "Connection: close")
	return raw(t, addr, "GET "+target+" HTTP/1.1\r\nHost: "+addr+"\r\n"+strings.Join(lines, "\r\n")+"\r\n\r\n")
}

// problemDoc is an error answer as a client reads it.
type problemDoc struct {
	Type          string               `json:"type"`
	Title         string               `json:"title"`
	Status        int                  `json:"status"`
	Detail        string               `json:"detail"`
	Code          string               `json:"code"`
	CorrelationID string               `json:"correlationId"`
	Errors        []problem.FieldError `json:"errors"`
}

// wantProblem checks that an answer is a whole problem document of a status.
func wantProblem(t testing.TB, got answer, status int) problemDoc {
	t.Helper()
	if got.status != status {
		t.Errorf("status = %d, want %d; body: %.300s", got.status, status, got.body)
	}
	doc, err := parseProblem(got)
	if err != nil {
		t.Errorf("%v; status %d, body: %.300s", err, got.status, got.body)
	}
	return doc
}

func parseProblem(got answer) (problemDoc, error) {
	var doc problemDoc
	if ct := got.header.Get("Content-Type"); ct != problem.ContentType {
		return doc, fmt.Errorf("Content-Type = %q, want %q", ct, problem.ContentType)
	}
	if err := json.NewDecoder(bytes.NewReader(got.body)).Decode(&doc); err != nil {
		return doc, fmt.Errorf("the problem is not JSON: %w", err)
	}
	switch {
	case doc.Status != got.status:
		return doc, fmt.Errorf("problem's status = %d, the answer's is %d", doc.Status, got.status)
	case doc.Type == "" || doc.Title == "" || doc.Detail == "":
		return doc, fmt.Errorf("problem without type, title or detail: %+v", doc)
	case doc.Code == "":
		return doc, fmt.Errorf("problem without a code: %+v", doc)
	}
	return doc, nil
}

// names tells whether the problem says that a field is at fault: by a pointer, or
// in words where the mistake is not in the body.
func (d problemDoc) names(field string) bool {
	for _, e := range d.Errors {
		if strings.Contains(e.Pointer, field) || strings.Contains(e.Detail, field) {
			return true
		}
	}
	return strings.Contains(d.Detail, field)
}
