package forward

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"

	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/filter"
)

// verdict is what becomes of a request, by its raw head.
type verdict uint8

const (
	verdictTake     verdict = iota // one goroutine can finish it alone
	verdictHandOver                // it is for net/http
	verdictRefuse                  // it is not HTTP, or could be read in two ways
)

// wholeBodyMost is the longest body that is read whole before an upstream is
// asked.
const wholeBodyMost = 64 << 10

// requestHead is what the raw head of a request says. net/http's parser hides much
// of it: it drops a Content-Length beside a Transfer-Encoding, ignores the latter in
// HTTP/1.0, takes any version, and makes up a Cache-Control. The slices lie in the
// head that was scanned.
type requestHead struct {
	verdict verdict
	refusal *filter.Refusal // of verdictRefuse

	method, target []byte
	host           []byte
	length         int64 // of the body; -1: it comes in chunks
	http10         bool
	close          bool // the client asks for the end of the connection
	pragma         bool // Pragma without Cache-Control, which net/http then makes up

	hosts, lengths, codings, expects int
	coding, expect                   []byte
	upgrade, cacheControl            bool
}

// scanRequest judges the raw head of a request, its blank line included. It accepts
// nothing that net/http would not accept with the same method, target, host and body.
func scanRequest(head []byte, l config.Limits) (h requestHead) {
	if len(head) > int(l.HeaderBytes) {
		h.refuse(headTooLong(l))
		return h
	}
	line, rest, ok := cutLine(head)
	if !ok {
		h.refuse(badHead("a line does not end with CR LF"))
		return h
	}
	if refusal := h.requestLine(line); refusal != nil {
		h.refuse(refusal)
		return h
	}
	for fields := 0; ; fields++ {
		if line, rest, ok = cutLine(rest); !ok {
			h.refuse(badHead("a line does not end with CR LF"))
			return h
		}
		if len(line) == 0 {
			break
		}
		if fields == l.HeaderFields {
			h.refuse(tooManyFields(l))
			return h
		}
		if refusal := h.field(line); refusal != nil {
			h.refuse(refusal)
			return h
		}
	}
	if refusal := h.judge(); refusal != nil {
		h.refuse(refusal)
	}
	return h
}

// headEnd returns the size of the head at the start of p, its blank line included,
// or -1 when that has not come yet. The first from bytes were looked at before. Lines
// count that end with LF alone, which is then refused: it must not be waited for what
// others take for a whole head.
func headEnd(p []byte, from int) int {
	for at := max(from-2, 0); ; {
		i := bytes.IndexByte(p[at:], '\n')
		if i < 0 {
			return -1
		}
		at += i + 1
		switch {
		case at < len(p) && p[at] == '\n':
			return at + 1
		case at+1 < len(p) && p[at] == '\r' && p[at+1] == '\n':
			return at + 2
		}
	}
}

func (h *requestHead) refuse(r *filter.Refusal) { h.verdict, h.refusal = verdictRefuse, r }

// cutLine cuts the first line off, without its end. A line that ends with LF alone is
// none: what others take for one line must not be two here.
func cutLine(p []byte) (line, rest []byte, ok bool) {
	i := bytes.IndexByte(p, '\n')
	if i < 1 || p[i-1] != '\r' {
		return nil, nil, false
	}
	return p[:i-1], p[i+1:], true
}

// requestLine takes method, target and version.
func (h *requestHead) requestLine(line []byte) *filter.Refusal {
	method, rest, _ := bytes.Cut(line, []byte(" "))
	target, version, _ := bytes.Cut(rest, []byte(" "))
	if !isToken(method) || len(target) == 0 || hasControl(target) {
		return badHead("the request line is not a method, a target and a version")
	}
	h.method, h.target = method, target
	switch {
	case string(version) == "HTTP/1.1":
	case string(version) == "HTTP/1.0":
		h.http10 = true
	case isVersion(version):
		return &filter.Refusal{Status: http.StatusHTTPVersionNotSupported, Code: "bad_request",
			Detail: "the request has a version that is not understood"}
	default:
		return badHead("the request line is not a method, a target and a version")
	}
	return nil
}

// isVersion reports whether v is a version of HTTP (RFC 9112, 2.3), known or not.
func isVersion(v []byte) bool {
	return len(v) == len("HTTP/1.1") && string(v[:5]) == "HTTP/" && isDigit(v[5]) && v[6] == '.' && isDigit(v[7])
}

// field takes one field line.
func (h *requestHead) field(line []byte) *filter.Refusal {
	i := bytes.IndexByte(line, ':')
	if i < 0 || !isToken(line[:i]) {
		return badHead("a line is not a field's name, a colon and its value")
	}
	value := trimBlanks(line[i+1:])
	for _, c := range value {
		if c < ' ' && c != '\t' || c == 0x7f {
			return badHead("a field's value holds a control character")
		}
	}
	return h.known(line[:i], value)
}

// known takes the fields that matter here.
func (h *requestHead) known(name, value []byte) *filter.Refusal {
	switch len(name) {
	case len("Host"):
		if filter.EqualFold(name, "host") {
			h.host = value
			h.hosts++
		}
	case len("Pragma"): // and Expect
		switch {
		case filter.EqualFold(name, "pragma"):
			h.pragma = true
		case filter.EqualFold(name, "expect"):
			h.expect = value
			h.expects++
		}
	case len("Upgrade"):
		h.upgrade = h.upgrade || filter.EqualFold(name, "upgrade")
	case len("Connection"):
		if filter.EqualFold(name, "connection") {
			h.close = h.close || hasOption(value, "close")
		}
	case len("Cache-Control"):
		h.cacheControl = h.cacheControl || filter.EqualFold(name, "cache-control")
	case len("Content-Length"):
		if filter.EqualFold(name, "content-length") {
			return h.contentLength(value)
		}
	case len("Transfer-Encoding"):
		if filter.EqualFold(name, "transfer-encoding") {
			h.coding = value
			h.codings++
		}
	}
	return nil
}

// contentLength takes a length, which is digits and comes once.
func (h *requestHead) contentLength(value []byte) *filter.Refusal {
	n, err := strconv.ParseUint(string(value), 10, 63)
	if h.lengths++; h.lengths > 1 || err != nil || !isDigit(value[0]) {
		return badHead("the Content-Length is not one number")
	}
	h.length = int64(n)
	return nil
}

// judge looks at what the fields say together.
func (h *requestHead) judge() *filter.Refusal {
	h.pragma = h.pragma && !h.cacheControl
	if refusal := h.judgeHost(); refusal != nil {
		return refusal
	}
	switch {
	case h.codings > 0 && h.lengths > 0:
		return badHead("the request has a Transfer-Encoding and a Content-Length")
	case h.codings > 0 && h.http10:
		return badHead("a request of HTTP/1.0 has no Transfer-Encoding")
	case h.codings > 1 || h.codings == 1 && !filter.EqualFold(h.coding, "chunked"):
		return &filter.Refusal{Status: http.StatusNotImplemented, Code: "bad_request",
			Detail: "the request has a transfer coding that is not understood"}
	case h.codings == 1:
		h.length = -1
	}
	if h.expects > 1 || h.expects == 1 && !filter.EqualFold(h.expect, "100-continue") {
		return &filter.Refusal{Status: http.StatusExpectationFailed, Code: "expectation_failed",
			Detail: "the request expects something else than 100-continue"}
	}
	if h.http10 || h.codings > 0 || h.expects > 0 || h.upgrade || h.length > wholeBodyMost || h.target[0] != '/' {
		h.verdict = verdictHandOver
	}
	return nil
}

// judgeHost wants one Host, and a target that does not name another one.
func (h *requestHead) judgeHost() *filter.Refusal {
	switch {
	case h.hosts == 0 && !h.http10:
		return badHost("the request has no Host")
	case h.hosts > 1:
		return badHost("the request has more than one Host")
	}
	for _, c := range h.host {
		if !hostBytes[c] {
			return badHost("the host is not a name or an address with an optional port")
		}
	}
	if authority, ok := authorityOf(h.target); ok && h.hosts > 0 && !equalHosts(authority, h.host) {
		return badHost("the request's target and its Host name two hosts")
	}
	return nil
}

// equalHosts compares two hosts, of which b is made of hostBytes.
func equalHosts(a, b []byte) bool {
	return len(a) == len(b) && filter.EqualFold(a, strings.ToLower(string(b)))
}

// authorityOf returns the authority of a target in absolute-form.
func authorityOf(target []byte) ([]byte, bool) {
	if target[0] == '/' {
		return nil, false
	}
	_, rest, ok := bytes.Cut(target, []byte("://"))
	if !ok {
		return nil, false
	}
	if i := bytes.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	return rest, true
}

func badHead(detail string) *filter.Refusal {
	return &filter.Refusal{Status: http.StatusBadRequest, Code: "bad_request", Detail: detail}
}

func badHost(detail string) *filter.Refusal {
	return &filter.Refusal{Status: http.StatusBadRequest, Code: "bad_host", Detail: detail}
}

func headTooLong(l config.Limits) *filter.Refusal {
	return &filter.Refusal{Status: http.StatusRequestHeaderFieldsTooLarge, Code: "header_too_large",
		Detail: "the head of the request is longer than " + strconv.FormatInt(int64(l.HeaderBytes), 10) + " bytes"}
}

func tooManyFields(l config.Limits) *filter.Refusal {
	return &filter.Refusal{Status: http.StatusRequestHeaderFieldsTooLarge, Code: "header_too_large",
		Detail: "the request has more than " + strconv.Itoa(l.HeaderFields) + " header fields"}
}
