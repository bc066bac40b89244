package forward

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"specialroutes.example/gateway/internal/filter"
)

// What is wrong with the head of an upstream's answer, for logs.
var (
	errStatusLine   = errors.New("the status line is not one of HTTP/1")
	errFieldLine    = errors.New("a field line of the head is malformed")
	errFieldsMost   = errors.New("the head has more fields than are taken")
	errHeadTooLong  = errors.New("the head is longer than is taken")
	errLength       = errors.New("the Content-Length is no length, or there are two that differ")
	errCoding       = errors.New("the Transfer-Encoding is another one than chunked, or stands in HTTP/1.0")
	errTrailerField = errors.New("a trailer field is announced that frames the message")
)

// answerFieldsMost is how many fields the head of an answer may have.
const answerFieldsMost = 2000

// answerHead is the head of an upstream's answer, read strictly: what it accepts
// http.ReadResponse accepts too, with the same meaning, but nothing is taken away
// or made up. It is used again and again; its fields are valid until the next
// parse.
type answerHead struct {
	status int
	old    bool // HTTP/1.0
	fields http.Header

	length    int64 // of Content-Length, -1 without one
	chunked   bool
	ambiguous bool // both Content-Length and Transfer-Encoding
	closes    bool // the upstream says that it closes the connection
	keeps     bool // it says that it keeps it

	lines []string // the values of fields, one line after the other
}

func (h *answerHead) informational() bool {
	return h.status < http.StatusOK && h.status != http.StatusSwitchingProtocols
}

// bodiless reports whether the status lets no body follow.
func (h *answerHead) bodiless() bool {
	return h.status < http.StatusOK || h.status == http.StatusNoContent || h.status == http.StatusNotModified
}

// reusable reports whether the head leaves no doubt where the answer ends.
func (h *answerHead) reusable() bool {
	// A body may follow a 204 that says so, or may not.
	return !h.ambiguous && !(h.status == http.StatusNoContent && (h.chunked || h.length > 0))
}

// parse reads a whole head, blank line included.
func (h *answerHead) parse(raw []byte) error {
	if h.fields == nil {
		h.fields = make(http.Header, 16)
	}
	clear(h.fields)
	*h = answerHead{fields: h.fields, lines: h.lines[:0], length: -1}
	text := string(raw) // all values are parts of it
	line, rest := answerLine(text)
	if err := h.statusLine(line); err != nil {
		return err
	}
	if err := h.fieldLines(rest); err != nil {
		return err
	}
	return h.framing()
}

// answerLine cuts the first line off, which ends with LF or with CRLF.
func answerLine(s string) (line, rest string) {
	i := strings.IndexByte(s, '\n')
	if i < 0 {
		return s, ""
	}
	line, rest = s[:i], s[i+1:]
	if i > 0 && line[i-1] == '\r' {
		line = line[:i-1]
	}
	return line, rest
}

// statusLine reads "HTTP/1.1 200 OK", where the reason may be missing.
func (h *answerHead) statusLine(line string) error {
	const version = "HTTP/1."
	if len(line) < len("HTTP/1.1 200") || !strings.HasPrefix(line, version) || line[len(version)+1] != ' ' {
		return errStatusLine
	}
	switch line[len(version)] {
	case '0':
		h.old = true
	case '1':
	default:
		return errStatusLine
	}
	code, reason := line[len("HTTP/1.1 "):], ""
	code, reason = code[:3], code[3:]
	for i := range len(code) {
		if code[i] < '0' || code[i] > '9' {
			return errStatusLine
		}
		h.status = h.status*10 + int(code[i]-'0')
	}
	if h.status < 100 || reason != "" && reason[0] != ' ' {
		return errStatusLine
	}
	return nil
}

// fieldLines reads the field lines up to the blank one.
func (h *answerHead) fieldLines(rest string) error {
	for {
		var line string
		line, rest = answerLine(rest)
		if line == "" {
			return nil
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return errFieldLine
		}
		for rest != "" && (rest[0] == ' ' || rest[0] == '\t') { // folded
			var more string
			more, rest = answerLine(rest)
			if value = trimBlanks(value); value != "" {
				value += " "
			}
			value += trimBlanks(more)
		}
		if err := h.add(name, trimBlanks(value)); err != nil {
			return err
		}
	}
}

// add takes one field in.
func (h *answerHead) add(name, value string) error {
	key, ok := fieldKey(name)
	if !ok || !validValue(value) {
		return errFieldLine
	}
	if len(h.lines) == answerFieldsMost {
		return errFieldsMost
	}
	h.lines = append(h.lines, value)
	if there := h.fields[key]; there != nil {
		h.fields[key] = append(there, value)
		return nil
	}
	n := len(h.lines)
	h.fields[key] = h.lines[n-1 : n : n] // another value of the field goes elsewhere
	return nil
}

// framing reads the fields that say where the answer ends.
func (h *answerHead) framing() error {
	for _, line := range h.fields["Content-Length"] {
		n, err := strconv.ParseUint(line, 10, 63)
		if err != nil || h.length >= 0 && h.length != int64(n) {
			return errLength
		}
		h.length = int64(n)
	}
	if codings := h.fields["Transfer-Encoding"]; codings != nil {
		if h.old || len(codings) != 1 || !filter.EqualFold(codings[0], "chunked") {
			return errCoding
		}
		h.chunked, h.ambiguous = true, h.length >= 0
		h.length = -1
	}
	for _, line := range h.fields["Connection"] {
		for option := range strings.SplitSeq(line, ",") {
			option = trimBlanks(option)
			h.closes = h.closes || filter.EqualFold(option, "close")
			h.keeps = h.keeps || filter.EqualFold(option, "keep-alive")
		}
	}
	return nil
}

// announced returns the trailer fields that the head names, in canonical form.
func (h *answerHead) announced() ([]string, error) {
	var all []string
	for _, line := range h.fields["Trailer"] {
		for name := range strings.SplitSeq(line, ",") {
			switch name = http.CanonicalHeaderKey(trimBlanks(name)); name {
			case "":
			case "Transfer-Encoding", "Trailer", "Content-Length":
				return nil, errTrailerField
			default:
				all = append(all, name)
			}
		}
	}
	return all, nil
}

// fieldKey returns the canonical form of a field name; false: it is no token.
func fieldKey(name string) (string, bool) {
	if name == "" {
		return "", false
	}
	canonical, start := true, true
	for i := range len(name) {
		kind := nameBytes[name[i]]
		if kind == notInToken {
			return "", false
		}
		canonical = canonical && !(start && kind == lowerCase || !start && kind == upperCase)
		start = name[i] == '-'
	}
	if !canonical {
		name = http.CanonicalHeaderKey(name)
	}
	return name, true
}

// The kinds of bytes in a field name.
const (
	notInToken = iota
	lowerCase
	upperCase
	otherInToken
)

// nameBytes are the bytes of a token by kind (RFC 9110, 5.6.2).
var nameBytes = func() (kinds [256]uint8) {
	for _, c := range []byte("0123456789!#$%&'*+-.^_`|~") {
		kinds[c] = otherInToken
	}
	for c := 'a'; c <= 'z'; c++ {
		kinds[c], kinds[c-'a'+'A'] = lowerCase, upperCase
	}
	return kinds
}()

// validValue reports whether s holds visible characters, spaces and tabs alone,
// those outside ASCII included (RFC 9110, 5.5).
func validValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
