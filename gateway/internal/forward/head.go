package forward

import (
	"bytes"
	"net/http"
	"strings"

	"specialroutes.example/gateway/internal/filter"
)

// answerHeadMost is the longest head of an answer, 1xx answers before it not
// counted.
const answerHeadMost = 256 << 10

// headFacts are what http.ReadResponse hides of an answer's head.
type headFacts struct {
	connection []string // names in Connection fields
	pragma     bool     // Pragma without Cache-Control, which net/http then makes up
}

// factsOf returns the facts of a head. They outlive it.
func factsOf(h *answerHead) *headFacts {
	f := &headFacts{pragma: h.fields["Pragma"] != nil && h.fields["Cache-Control"] == nil}
	for _, line := range h.fields["Connection"] {
		f.connection = append(f.connection, tokens(line)...)
	}
	return f
}

// statusOf reads the status of "HTTP/1.1 200 OK", 0 when there is none.
func statusOf(line []byte) int {
	_, rest, _ := bytes.Cut(line, []byte(" "))
	if len(rest) < 3 {
		return 0
	}
	status := 0
	for _, c := range rest[:3] {
		if c < '0' || c > '9' {
			return 0
		}
		status = status*10 + int(c-'0')
	}
	return status
}

// tokens returns the names in a Connection field's value, in canonical form, but
// for the options that are no names.
func tokens(value string) []string {
	var names []string
	for part := range strings.SplitSeq(value, ",") {
		part = trimBlanks(part)
		if part == "" || filter.EqualFold(part, "close") || filter.EqualFold(part, "keep-alive") {
			continue
		}
		names = append(names, http.CanonicalHeaderKey(part))
	}
	return names
}
