package filter

import "net/http"

// expose tells the client the variant, the reason and what gave way, unless the
// setting hides them. An upstream has no say in it.
func expose(on bool) func(*Exchange) {
	return func(ex *Exchange) {
		setOrDelete(ex, RouteVariant, ex.Entry.Variant, on)
		setOrDelete(ex, RouteReason, ex.Entry.Reason, on)
		setOrDelete(ex, RouteFallback, ex.Entry.Fallback, on)
		setOrDelete(ex, OverrideInvalid, ex.Entry.OverrideInvalid, on)
	}
}

func setOrDelete(ex *Exchange, name, value string, on bool) {
	if on && value != "" {
		ex.Answer[name] = ex.line(value)
		return
	}
	delete(ex.Answer, name)
}

// CleanInformational removes from the head of a 1xx answer what does not belong
// to the client: hop-by-hop fields, fields that only we may set, sensitive ones.
func CleanInformational(ex *Exchange, h http.Header) {
	RemoveHopByHop(h)
	for _, name := range []string{RouteVariant, RouteReason, RouteFallback, OverrideInvalid, CorrelationID} {
		delete(h, name)
	}
	removeSensitive(ex, h)
}
