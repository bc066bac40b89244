// Package problem writes error answers as application/problem+json (RFC 9457).
// The gateway and specialroutes both answer with it, so that a client needs one
// reader for the errors of either.
package problem

import (
	"encoding/json"
	"net/http"
	"strconv"
	"unicode/utf8"
)

// ContentType is the media type of a problem document (RFC 9457, section 3).
const ContentType = "application/problem+json"

// typeBase precedes the code in the type member. The URI identifies the kind of
// problem; nothing needs to be served there (RFC 9457, section 3.1.1).
const typeBase = "https://specialroutes.example/problems/"

// FieldError is one mistake in a request's document. Pointer is the JSON pointer
// (RFC 6901) of the member at fault, "" for the document as a whole, or the name
// of the header or parameter where the mistake is not in the body. Of a Pointer 256 bytes
// are written, of a Detail 1,024; what was cut ends with …
type FieldError struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

// Problem is one problem document. Code is stable and documented; clients may
// branch on it. Members are further members of the document, written beside the
// standard ones; they cannot replace those.
type Problem struct {
	Status        int
	Code          string
	Title         string // "" means the text of Status
	Detail        string
	CorrelationID string
	Errors        []FieldError
	Members       map[string]any
}

// MarshalJSON writes the members of RFC 9457 and the project's own beside them.
func (p Problem) MarshalJSON() ([]byte, error) {
	m := make(map[string]any, 7+len(p.Members))
	for k, v := range p.Members {
		m[k] = v
	}
	m["type"] = typeBase + p.Code
	m["title"] = p.Title
	if p.Title == "" {
		m["title"] = http.StatusText(p.Status)
	}
	m["status"] = p.Status
	m["code"] = p.Code
	if p.Detail != "" {
		m["detail"] = p.Detail
	}
	if p.CorrelationID != "" {
		m["correlationId"] = p.CorrelationID
	}
	if len(p.Errors) > 0 {
		m["errors"] = cut(p.Errors)
	}
	return json.Marshal(m)
}

// The most of a mistake that is written, in bytes. Both may hold names of the request's
// document, which need not come back whole.
const (
	maxPointer = 256
	maxDetail  = 1024
)

// cut shortens what is longer than anybody reads. The list it is given stays as it is.
func cut(mistakes []FieldError) []FieldError {
	short := make([]FieldError, len(mistakes))
	for i, m := range mistakes {
		short[i] = FieldError{Pointer: shorten(m.Pointer, maxPointer), Detail: shorten(m.Detail, maxDetail)}
	}
	return short
}

// shorten returns at most so many bytes of s, whole characters, and a mark where it was
// longer.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const mark = "…"
	end := most - len(mark)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}

// Write answers with p. Headers that the caller has set on w stay; the content
// type, length and a no-store directive are set here. A client that has gone is
// not an error worth reporting, so there is none to return.
func Write(w http.ResponseWriter, p Problem) {
	body, err := json.Marshal(p)
	if err != nil { // only a Members value that JSON cannot express
		body = []byte(`{"type":"about:blank","status":` + strconv.Itoa(p.Status) + `}`)
	}
	h := w.Header()
	h.Set("Content-Type", ContentType)
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n'))
}
