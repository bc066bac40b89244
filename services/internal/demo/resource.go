package demo

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"specialroutes.example/services/lane"
	"specialroutes.example/services/problem"
)

// Failure is an error that the client is told of. Cause is only for the log.
type Failure struct {
	problem.Problem
	Cause error
}

func (f *Failure) Error() string { return f.Code + ": " + f.Detail }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// Fail makes a Failure.
func Fail(status int, code, detail string) *Failure {
	return &Failure{Problem: problem.Problem{Status: status, Code: code, Detail: detail}}
}

// Invalid is the Failure of a document with one or more mistakes.
func Invalid(mistakes ...problem.FieldError) *Failure {
	f := Fail(http.StatusUnprocessableEntity, "invalid_document", "the document cannot be taken as it is")
	f.Errors = mistakes
	return f
}

// Handler answers a request or returns an error, a *Failure where the client
// shall know it. After an error it has written nothing.
type Handler func(w http.ResponseWriter, req *http.Request) error

// Methods are the handlers of one resource by method. GET answers HEAD too. Any
// other method is answered 405 with Allow, and OPTIONS with Allow alone.
type Methods map[string]Handler

func (m Methods) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	method := req.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	handle, known := m[method]
	switch {
	case known:
		if err := handle(w, req); err != nil {
			answerError(w, req, err)
		}
	case method == http.MethodOptions:
		w.Header().Set("Allow", m.allow())
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", m.allow())
		answerError(w, req, Fail(http.StatusMethodNotAllowed, "method_not_allowed", "there is no "+req.Method+" here"))
	}
}

func (m Methods) allow() string {
	allowed := append(slices.Collect(maps.Keys(m)), http.MethodOptions)
	if _, ok := m[http.MethodGet]; ok {
		allowed = append(allowed, http.MethodHead)
	}
	slices.Sort(allowed)
	return strings.Join(allowed, ", ")
}

// NoSuchPath answers all paths that lead nowhere.
func NoSuchPath(w http.ResponseWriter, req *http.Request) {
	answerError(w, req, Fail(http.StatusNotFound, "no_such_path", "there is nothing at this path"))
}

// answerError is the one place where errors become answers.
func answerError(w http.ResponseWriter, req *http.Request, err error) {
	var f *Failure
	if !errors.As(err, &f) {
		f = Fail(http.StatusInternalServerError, "internal", "the service failed")
		f.Cause = err
	}
	if a, ok := w.(*answer); ok {
		a.cause = f.Cause
	}
	p := f.Problem
	p.CorrelationID = req.Header.Get(lane.CorrelationID)
	problem.Write(w, p)
}
