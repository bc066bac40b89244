package filter

import (
	"fmt"
	"net/http"
	"strconv"

	"specialroutes.example/gateway/internal/config"
)

// lineOverhead is what a field line has beside name and value: ": " and CRLF.
const lineOverhead = 4

// limits refuses heads that are too long and bodies that say they are. A body
// that does not say so is measured while it passes. The heads of HTTP/1 are measured as
// they came, before they are read; those of HTTP/2 are there as fields alone.
func limits(l config.Limits) func(*Exchange) error {
	return func(ex *Exchange) error {
		r := ex.Request
		if r.ProtoMajor > 1 {
			if err := headLimits(ex, l); err != nil {
				return err
			}
			if !oneLength(r.Header["Content-Length"]) {
				return &Refusal{Status: http.StatusBadRequest, Code: "bad_request", Detail: "Content-Length is not one number on one line"}
			}
		}
		if l.BodyBytes > 0 && r.ContentLength > int64(l.BodyBytes) {
			return BodyTooLarge(l)
		}
		return nil
	}
}

// headLimits measures a head by its fields.
func headLimits(ex *Exchange, l config.Limits) error {
	r := ex.Request
	fields, bytes := 1, len(r.Method)+len(r.RequestURI)+len(r.Host) // 1 is Host
	for name, lines := range r.Header {
		if name == CorrelationID && ex.Entry.CorrelationReplaced {
			continue // ours
		}
		for _, line := range lines {
			fields++
			bytes += len(name) + len(line) + lineOverhead
		}
	}
	switch {
	case bytes > int(l.HeaderBytes):
		return &Refusal{Status: http.StatusRequestHeaderFieldsTooLarge, Code: "header_too_large",
			Detail: fmt.Sprintf("the head of the request is longer than %d bytes", l.HeaderBytes)}
	case fields > l.HeaderFields:
		return &Refusal{Status: http.StatusRequestHeaderFieldsTooLarge, Code: "header_too_large",
			Detail: fmt.Sprintf("the request has more than %d header fields", l.HeaderFields)}
	}
	return nil
}

// oneLength reports whether the lines of Content-Length are one number, or none. Those of
// HTTP/1 are judged before they are read; of HTTP/2 net/http takes the first one.
func oneLength(lines []string) bool {
	switch len(lines) {
	case 0:
		return true
	case 1:
		_, err := strconv.ParseUint(lines[0], 10, 63) // a sign is an error to it
		return err == nil
	}
	return false
}

// BodyTooLarge is the refusal of a body over the limit.
func BodyTooLarge(l config.Limits) *Refusal {
	return &Refusal{Status: http.StatusRequestEntityTooLarge, Code: "body_too_large",
		Detail: fmt.Sprintf("the body of the request is longer than %d bytes", l.BodyBytes)}
}
