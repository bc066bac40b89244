package forward

import (
	"errors"
	"net/http"
	"syscall"

	"specialroutes.example/gateway/internal/filter"
)

// statusClientGone is the status of a request whose client left before the answer
// was complete. It is logged and never sent.
const statusClientGone = 499

// What can go wrong while a request is carried, by meaning.
var (
	errUnsendable      = errors.New("the request cannot be written")
	errClientGone      = errors.New("the client left")
	errBadBody         = errors.New("the request's body cannot be read")
	errBodyTooLarge    = errors.New("the request's body is over the limit")
	errBodyIdle        = errors.New("no byte of the request's body came in time")
	errUpstreamIdle    = errors.New("the upstream took or gave no byte in time")
	errClientIdle      = errors.New("the client took no byte of the answer in time")
	errResponseTimeout = errors.New("no answer came in time")
	errTotalTimeout    = errors.New("the request took longer than it may")
	errConnect         = errors.New("no connection to an upstream")
	errScarce          = errors.New("the process is out of descriptors")
	errBadAnswer       = errors.New("the upstream gave no usable answer")
	errInternal        = errors.New("unforeseen")
)

// refusals is the one table from errors to answers. The details are for clients
// and name nothing of the inside.
var refusals = []struct {
	err     error
	refusal filter.Refusal
}{
	{errUnsendable, filter.Refusal{Status: http.StatusBadRequest, Code: "bad_request",
		Detail: "the request holds something that cannot be passed on"}},
	{errBadBody, filter.Refusal{Status: http.StatusBadRequest, Code: "bad_body",
		Detail: "the body of the request breaks off or is not framed as HTTP asks for"}},
	{errBodyTooLarge, filter.Refusal{Status: http.StatusRequestEntityTooLarge, Code: "body_too_large",
		Detail: "the body of the request is longer than the limit"}},
	{errBodyIdle, filter.Refusal{Status: http.StatusRequestTimeout, Code: "request_timeout",
		Detail: "no byte of the request's body came within the time limit"}},
	{errResponseTimeout, filter.Refusal{Status: http.StatusGatewayTimeout, Code: "response_timeout",
		Detail: "the upstream did not answer within the time limit"}},
	{errUpstreamIdle, filter.Refusal{Status: http.StatusGatewayTimeout, Code: "idle_timeout",
		Detail: "the upstream took no byte of the request within the time limit"}},
	{errClientIdle, filter.Refusal{Status: http.StatusRequestTimeout, Code: "client_idle",
		Detail: "the client took no byte of the answer within the time limit"}},
	{errTotalTimeout, filter.Refusal{Status: http.StatusGatewayTimeout, Code: "total_timeout",
		Detail: "the request took longer than the time limit"}},
	{errConnect, filter.Refusal{Status: http.StatusBadGateway, Code: "connect_failed",
		Detail: "no upstream could be connected to"}},
	{errScarce, filter.Refusal{Status: http.StatusServiceUnavailable, Code: "overloaded",
		Detail: "the gateway has no room for a connection to an upstream"}},
	{errBadAnswer, filter.Refusal{Status: http.StatusBadGateway, Code: "bad_answer",
		Detail: "the upstream gave no usable answer"}},
}

// refusalFor returns the answer to an error.
func refusalFor(err error) *filter.Refusal {
	if refusal, ok := errors.AsType[*filter.Refusal](err); ok {
		return refusal
	}
	for i := range refusals {
		if errors.Is(err, refusals[i].err) {
			return &refusals[i].refusal
		}
	}
	return &filter.Refusal{Status: http.StatusInternalServerError, Code: "internal",
		Detail: "the gateway failed; its log says more under the correlation ID"}
}

// isLimit reports whether an error is that of a time limit which may pass in
// mid-answer.
func isLimit(err error) bool {
	for _, limit := range []error{errResponseTimeout, errUpstreamIdle, errClientIdle, errTotalTimeout} {
		if errors.Is(err, limit) {
			return true
		}
	}
	return false
}

// cutCode is what is logged of an answer that was begun and not completed.
func cutCode(err error) string {
	if isLimit(err) {
		return refusalFor(err).Code
	}
	return "answer_cut"
}

// connectError is a connection that could not be made, so that nothing was sent.
type connectError struct{ err error }

func (e *connectError) Error() string { return "connect: " + e.err.Error() }
func (e *connectError) Unwrap() error { return e.err }

// Is tells a connect that failed from one that was not tried: without a descriptor
// there is nothing to say of the upstream.
func (e *connectError) Is(target error) bool {
	if errors.Is(e.err, syscall.EMFILE) || errors.Is(e.err, syscall.ENFILE) {
		return target == errScarce
	}
	return target == errConnect
}
