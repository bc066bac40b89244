package forward

import (
	"bytes"
	"net/http"

	"specialroutes.example/gateway/internal/filter"
)

// plainError is how net/http's own refusals go on behind their first line.
var plainError = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

// Write writes p. Where net/http refuses a request by itself, with a line of text, it
// says the same as a problem document, or what the gate refused the request for.
func (g *gate) Write(p []byte) (int, error) {
	if g.handled.Load() || g.frames.Load() || !bytes.Contains(p, plainError) {
		return g.Conn.Write(p)
	}
	refusal := g.refusal
	if refusal == nil {
		refusal = unreadable(statusOf(p))
	}
	g.lingers.Store(true)
	if _, err := g.Conn.Write(g.server.refuseHead(refusal, g.refused, g.RemoteAddr())); err != nil {
		return 0, err
	}
	return len(p), nil
}

// unreadable is net/http's own refusal of a head that had passed the gate.
func unreadable(status int) *filter.Refusal {
	r := badHead("the head of the request is not as HTTP asks for")
	switch r.Status = status; status {
	case http.StatusRequestHeaderFieldsTooLarge:
		r.Code, r.Detail = "header_too_large", "the head of the request is too long"
	case http.StatusNotImplemented:
		r.Detail = "the request has a transfer coding that is not understood"
	case http.StatusHTTPVersionNotSupported:
		r.Detail = "the request has a version that is not understood"
	}
	return r
}
