// Package contracttest holds a server to its OpenAPI document: a Transport checks
// every exchange that a test has with the server against it, whatever the test is
// about.
package contracttest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"
	"github.com/pb33f/libopenapi-validator/errors"
)

// Document is an OpenAPI document that requests and responses are checked against.
// It is safe for concurrent use.
type Document struct {
	mu         sync.Mutex // the validator renders schemas as it goes, with data races
	validator  validator.Validator
	operations map[string]bool // "GET /v1/things/{name}"
}

// Load reads a document, which must be a valid one. What is not in it is refused in
// exchanges too, except at the paths to ignore, as "$.body.anything.**".
func Load(t testing.TB, source []byte, ignore ...string) *Document {
	t.Helper()
	parsed, err := libopenapi.NewDocument(source)
	if err != nil {
		t.Fatalf("the document cannot be read: %v", err)
	}
	model, err := parsed.BuildV3Model()
	if err != nil {
		t.Fatalf("the document is no OpenAPI 3: %v", err)
	}
	v, errs := validator.NewValidator(parsed, config.WithStrictMode(), config.WithFormatAssertions(),
		config.WithStrictIgnoredHeadersExtra("X-Content-Type-Options", "tmx-correlation-id"), // on everything
		config.WithStrictIgnorePaths(ignore...))
	if errs != nil {
		t.Fatalf("the document cannot be used: %v", errs)
	}
	if ok, errs := v.ValidateDocument(); !ok {
		t.Fatalf("the document is not valid:%s", text(errs))
	}
	d := &Document{validator: v, operations: map[string]bool{}}
	for path, item := range model.Model.Paths.PathItems.FromOldest() {
		for method := range item.GetOperations().FromOldest() {
			d.operations[strings.ToUpper(method)+" "+path] = true
		}
	}
	return d
}

// Operations returns the document's operations, as "GET /v1/things/{name}".
func (d *Document) Operations() map[string]bool { return d.operations }

// Transport sends requests by Base, and fails the test when
//   - an answer is not one that the document describes,
//   - a request succeeded that the document does not allow, or
//   - a request for what is not in the document was answered with anything but
//     400, 404 or 405.
type Transport struct {
	T        testing.TB
	Document *Document
	Base     http.RoundTripper
}

// RoundTrip is http.RoundTripper's.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	sent, err := readAll(req.Body)
	if err != nil {
		return nil, err
	}
	outgoing := req.Clone(req.Context())
	outgoing.Body = replay(sent)
	res, err := t.Base.RoundTrip(outgoing)
	if err != nil {
		return nil, err
	}
	received, err := readAll(res.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	res.Body = replay(received)
	t.check(req, sent, res)
	res.Body = replay(received)
	return res, nil
}

func (t *Transport) check(req *http.Request, sent []byte, res *http.Response) {
	t.T.Helper()
	what := fmt.Sprintf("%s %s → %d", req.Method, req.URL.RequestURI(), res.StatusCode)
	again := func() *http.Request {
		r := req.Clone(req.Context())
		r.Body = replay(sent)
		return r
	}
	t.Document.mu.Lock()
	defer t.Document.mu.Unlock()
	valid, errs := t.Document.validator.ValidateHttpRequestSync(again())
	if notThere(errs) {
		switch res.StatusCode {
		case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		default:
			t.T.Errorf("%s, though it is not in the document", what)
		}
		return
	}
	if !valid && res.StatusCode < http.StatusBadRequest {
		t.T.Errorf("%s, though the document does not allow the request:%s", what, text(errs))
	}
	if ok, errs := t.Document.validator.ValidateHttpResponse(again(), res); !ok {
		t.T.Errorf("%s is not an answer of the document:%s", what, text(errs))
	}
}

// notThere says whether the document has no such path or method.
func notThere(errs []*errors.ValidationError) bool {
	for _, e := range errs {
		if e.ValidationType == "path" {
			return true
		}
	}
	return false
}

func readAll(body io.ReadCloser) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	defer body.Close()
	return io.ReadAll(body)
}

func replay(body []byte) io.ReadCloser {
	if body == nil {
		return http.NoBody
	}
	return io.NopCloser(bytes.NewReader(body))
}

// text lists what a validator found.
func text(errs []*errors.ValidationError) string {
	var b strings.Builder
	for _, e := range errs {
		fmt.Fprintf(&b, "\n\t%s: %s", e.Message, e.Reason)
		for _, s := range e.SchemaValidationErrors {
			fmt.Fprintf(&b, "\n\t\t%s: %s", s.KeywordLocation, s.Reason)
		}
	}
	return b.String()
}
