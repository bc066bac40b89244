package filter

import "net/http"

// expect refuses what a client expects of a server and nobody here can promise
// (RFC 9110, 10.1.1). Over HTTP/1 such a request does not come this far.
func expect(ex *Exchange) error {
	for _, line := range ex.Request.Header["Expect"] {
		if !EqualFold(line, "100-continue") {
			return &Refusal{Status: http.StatusExpectationFailed, Code: "expectation_failed",
				Detail: "the request expects something else than 100-continue"}
		}
	}
	return nil
}
