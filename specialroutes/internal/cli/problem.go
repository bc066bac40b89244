package cli

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"specialroutes.example/services/problem"
	"specialroutes.example/services/service"
)

// answerError is an answer of 4xx or 5xx.
type answerError struct {
	method, path string
	status       int
	problem      problemDocument // empty when the answer is none
}

// notOurs is said of an answer that specialroutes would not give.
const notOurs = "this is no answer of specialroutes: is --server its port, 8910 by default, and not the gateway's or a proxy's?"

// problemDocument is what the command line shows of a problem (RFC 9457).
type problemDocument struct {
	Code          string               `json:"code"`
	Detail        string               `json:"detail"`
	CorrelationID string               `json:"correlationId"`
	Errors        []problem.FieldError `json:"errors"`
	Route         string               `json:"route"`
}

func newAnswerError(k call, res *http.Response, body []byte) error {
	e := &answerError{method: k.method, path: k.path, status: res.StatusCode}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind == problem.ContentType {
		if json.Unmarshal(body, &e.problem) != nil {
			e.problem = problemDocument{}
		}
	}
	return &service.ExitError{Code: e.exitCode(), Err: e}
}

// exitCode returns the exit code of a status.
func (e *answerError) exitCode() int {
	if e.isOfAnother() {
		return exitUnavailable
	}
	switch e.status {
	case http.StatusNotFound:
		if e.problem.Code == "not_found" { // of an older specialroutes, or another path before it
			return exitFailed
		}
		return exitNotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		return exitConflict
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusTooManyRequests:
		return exitUnavailable
	}
	if e.status < http.StatusInternalServerError {
		return exitRefused
	}
	return exitFailed
}

// isOfAnother says that something else than specialroutes answers: no problem that tells
// what is wrong by a code, or one of a gateway, which has no such path.
func (e *answerError) isOfAnother() bool {
	switch e.problem.Code {
	case "", "no_route":
		return true
	}
	return false
}

// Error says what was asked, what the answer was, and each mistake on a line of its
// own.
func (e *answerError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %d %s", e.method, e.path, e.status, http.StatusText(e.status))
	p := e.problem
	if p.Code != "" {
		fmt.Fprintf(&b, " (%s)", printable(p.Code))
	}
	if p.Detail != "" {
		b.WriteString("\n  " + printable(p.Detail))
	}
	for _, m := range p.Errors {
		pointer := m.Pointer
		if pointer == "" {
			pointer = "the document"
		}
		fmt.Fprintf(&b, "\n  %s: %s", printable(pointer), printable(m.Detail))
	}
	if e.isOfAnother() {
		b.WriteString("\n  " + notOurs)
	}
	if p.Route != "" {
		b.WriteString("\n  see " + printable(p.Route))
	}
	if e.status >= http.StatusInternalServerError && p.CorrelationID != "" {
		b.WriteString("\n  correlation ID " + printable(p.CorrelationID))
	}
	return b.String()
}
