package filter

import "net/http"

// sensitive removes the route's sensitive headers from the request, now that
// routing has read them.
func sensitive(ex *Exchange) error {
	removeSensitive(ex, ex.Request.Header)
	return nil
}

// sensitiveAnswer removes them from the answer, before any cookie of ours is set.
func sensitiveAnswer(ex *Exchange) { removeSensitive(ex, ex.Answer) }

func removeSensitive(ex *Exchange, h http.Header) {
	if ex.Route == nil {
		return
	}
	for _, name := range ex.Route.SensitiveHeaders {
		delete(h, name)
	}
}
