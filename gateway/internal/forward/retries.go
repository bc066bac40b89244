package forward

import (
	"errors"
	"fmt"
	"net/http"

	"specialroutes.example/gateway/internal/filter"
	"specialroutes.example/services/routing"
)

// staleMost is how many connections may turn out closed before anything is
// written to them, until that counts as a failed connect.
const staleMost = 3

// retries says whether and where a request goes after an attempt that failed. It
// belongs to one request, and takes the next target into ex.Pick.
type retries struct {
	ex     *filter.Exchange
	budget *budget
	resent bool // a second send was allowed
	stale  int  // connections to the target that were closed before anything was written
}

// stillborn follows a connection that was closed before anything was written: the
// same target once more, on another one.
func (r *retries) stillborn(err error) error {
	if r.stale++; r.stale > staleMost {
		return r.nextTarget(err)
	}
	return nil
}

// nextTarget goes on to another target after a connect that failed. It returns why
// the request ends where there is none.
func (r *retries) nextTarget(err error) error {
	r.ex.Pick.ConnectFailed()
	r.ex.Pick.Release()
	p := r.ex.Selection.Next()
	switch {
	case p == nil && r.ex.Decision.Kind == routing.KindOverride:
		return filter.OverrideUnavailable(r.ex)
	case p == nil:
		return fmt.Errorf("%w: %w", errConnect, err)
	}
	r.ex.Pick, r.stale = p, 0
	return nil
}

// resend sends a request again that was sent and not answered, if that is safe and
// the budget lets it.
func (r *retries) resend(hasBody bool) bool {
	switch r.ex.Request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		return false
	}
	if hasBody || r.resent || !r.budget.take() {
		return false
	}
	r.resent = true
	r.ex.Pick.Release()
	r.ex.Pick = r.ex.Selection.Again()
	return true
}

// overLimit tells the target's health of a request that ended at a limit.
func (r *retries) overLimit(cause error) {
	if errors.Is(cause, errResponseTimeout) || errors.Is(cause, errUpstreamIdle) {
		r.ex.Pick.TimedOut()
	}
}

// end releases what the request holds.
func (r *retries) end() {
	r.ex.Pick.Release()
	if r.resent {
		r.budget.giveBack()
	}
}
