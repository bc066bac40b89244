package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"specialroutes.example/services/problem"
	"specialroutes.example/services/routing"
	"specialroutes.example/services/strictjson"
	"specialroutes.example/specialroutes/internal/feed"
	"specialroutes.example/specialroutes/internal/store"
)

// failure is an error that knows its answer. Whatever it says is for the client's
// eyes; the cause is for the log.
type failure struct {
	problem problem.Problem
	header  http.Header
	cause   error
}

func (f *failure) Error() string {
	if f.cause != nil {
		return f.problem.Code + ": " + f.cause.Error()
	}
	return f.problem.Code + ": " + f.problem.Detail
}

func (f *failure) Unwrap() error { return f.cause }

// refuse makes a failure; fields are the mistakes.
func refuse(status int, code, detail string, fields ...problem.FieldError) *failure {
	return &failure{problem: problem.Problem{Status: status, Code: code, Detail: detail, Errors: fields}}
}

// badParameter is a mistake in a header, a parameter or a part of the path.
func badParameter(name, detail string) *failure {
	return refuse(http.StatusBadRequest, "bad_request", "The request has a mistake.", problem.FieldError{Pointer: name, Detail: detail})
}

// with adds a header to the answer.
func (f *failure) with(name, value string) *failure {
	if f.header == nil {
		f.header = http.Header{}
	}
	f.header.Set(name, value)
	return f
}

// retryAfter is what a client is asked to wait after a 503, in seconds.
const retryAfter = "1"

// statusClientGone is what the log says of a client that did not wait. Nobody
// receives it.
const statusClientGone = 499

var (
	errNoPath = refuse(http.StatusNotFound, "not_found", "There is no such path; /openapi.yaml has those there are.")
	errMethod = refuse(http.StatusMethodNotAllowed, "method_not_allowed", "The path does not know this method; Allow has those it knows.")
)

// meanings is what the errors of other packages are in HTTP; the first that
// matches counts.
var meanings = []struct {
	err    error
	status int
	code   string
	detail string
}{
	{store.ErrNotFound, http.StatusNotFound, "no_record", "There is no record of this service."},
	{store.ErrNoLabels, http.StatusNotFound, "no_labels", "No labels of this instance are changed here."},
	{store.ErrUncertain, http.StatusServiceUnavailable, "write_uncertain", "The database was lost while it stored the change; read the record to see whether it did."},
	{store.ErrReadOnly, http.StatusServiceUnavailable, "database_read_only", "The database takes no writes at the moment. Nothing was stored."},
	{store.ErrUnavailable, http.StatusServiceUnavailable, "database_unavailable", "The database is away. Nothing was stored."},
	{feed.ErrStopped, http.StatusServiceUnavailable, "stopping", "This process is stopping; ask another one."},
	{store.ErrInvalid, http.StatusUnprocessableEntity, "invalid_record", "The record cannot be stored."},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "database_unavailable", "The database did not answer in time."},
}

// failureOf says what any error is in HTTP. What is known to nobody is a fault of
// ours: the client learns only that, and the log the rest.
func failureOf(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		return refuse(http.StatusBadRequest, "bad_json", "The body cannot be read.", problem.FieldError{Pointer: e.Pointer, Detail: e.Detail})
	}
	if e, ok := errors.AsType[routing.ValidationError](err); ok {
		return invalid(e)
	}
	for _, m := range meanings {
		if errors.Is(err, m.err) {
			f := refuse(m.status, m.code, m.detail)
			f.cause = err
			if m.status == http.StatusServiceUnavailable {
				f = f.with("Retry-After", retryAfter)
			}
			return f
		}
	}
	f := refuse(http.StatusInternalServerError, "internal", "Something went wrong here; the log has it under the correlation ID.")
	f.cause = err
	return f
}

// invalid lists all mistakes of meaning.
func invalid(mistakes routing.ValidationError) *failure {
	f := refuse(http.StatusUnprocessableEntity, "invalid_record", "The document must not be stored as it is.")
	for _, m := range mistakes {
		f.problem.Errors = append(f.problem.Errors, problem.FieldError{Pointer: m.Pointer, Detail: m.Detail})
	}
	return f
}

// answer writes a failure. The header of edge is there already.
func (f *failure) answer(c *gin.Context, correlationID string) {
	for name, values := range f.header {
		c.Writer.Header()[name] = values
	}
	p := f.problem
	p.CorrelationID = correlationID
	problem.Write(c.Writer, p)
}
