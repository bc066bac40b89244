package routing

import (
	"net/netip"
	"net/url"
	"strings"
)

// KeyCookie is the gateway's own cookie: it holds a key, never a variant.
const KeyCookie = "sr-key"

// keyLength is the length of the gateway's key, in base64url characters.
const keyLength = 22

// reads are the names of what a record reads from a request; a matcher knows its
// own by its place in the list.
type reads struct {
	headers []string // canonical
	cookies []string
	queries []string
}

// field is a value that a request has once or not at all.
type field struct {
	text  string
	there bool
}

// headerLines are the lines of one header, once they were looked up.
type headerLines struct {
	lines []string
	known bool
}

// fewReads is how many names of each sort need no memory of their own.
const fewReads = 24

// scratch is the memory of a reading, on the stack of the decision.
type scratch struct {
	headers [fewReads]headerLines
	cookies [fewReads]field
	queries [fewReads]field
}

// reading is what was read of one request so far. Each raw line is scanned at
// most once, and only when something asks for it.
type reading struct {
	req         *Request
	names       *reads
	headers     []headerLines
	cookies     []field
	queries     []field
	cookiesRead bool
	queriesRead bool
}

// header returns the lines of the header in that slot.
func (r *reading) header(slot int) []string {
	h := &r.headers[slot]
	if !h.known {
		h.lines, h.known = r.req.Header[r.names.headers[slot]], true
	}
	return h.lines
}

// cookie returns the first cookie of the name in that slot.
func (r *reading) cookie(slot int) field {
	if !r.cookiesRead {
		r.cookiesRead = true
		for _, line := range r.req.Header["Cookie"] {
			r.scanCookies(line)
		}
	}
	return r.cookies[slot]
}

// query returns the first parameter of the name in that slot, decoded.
func (r *reading) query(slot int) field {
	if !r.queriesRead {
		r.queriesRead = true
		r.scanQuery(r.req.RawQuery)
	}
	return r.queries[slot]
}

// client returns the client's address, IPv4 wherever it is one.
func (r *reading) client() netip.Addr {
	return r.req.Client.Unmap().WithZone("")
}

// gatewayKey returns the key of the gateway's cookie, or the one it has just
// issued. A cookie of any other form counts as absent.
func (r *reading) gatewayKey(slot int) string {
	if f := r.cookie(slot); f.there && isGatewayKey(f.text) {
		return f.text
	}
	return r.req.FreshKey
}

func isGatewayKey(s string) bool {
	if len(s) != keyLength {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}

// scanCookies parses a Cookie line as net/http does: pairs between semicolons,
// quotes taken off, and a pair with a byte that no cookie may hold left out.
func (r *reading) scanCookies(line string) {
	for len(line) > 0 {
		var pair string
		pair, line, _ = strings.Cut(line, ";")
		name, text, _ := strings.Cut(trimBlank(pair), "=")
		name = trimBlank(name)
		for slot, want := range r.names.cookies {
			if name != want || r.cookies[slot].there {
				continue
			}
			if text, ok := cookieValue(text); ok {
				r.cookies[slot] = field{text: text, there: true}
			}
			break
		}
	}
}

// cookieValue takes the quotes off and checks what is left (RFC 6265, 4.1.1; like
// net/http, it lets spaces and commas pass).
func cookieValue(s string) (string, bool) {
	if len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"' {
		s = s[1 : len(s)-1]
	}
	return s, isCookieText(s)
}

// isCookieText says whether s has only bytes that a cookie's value may have.
func isCookieText(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || s[i] == '"' || s[i] == ';' || s[i] == '\\' {
			return false
		}
	}
	return true
}

// trimBlank is strings.TrimSpace for what a header line can hold.
func trimBlank(s string) string {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for len(s) > 0 && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

// scanQuery parses a query: pairs between ampersands alone. A pair that cannot be
// decoded is left out.
func (r *reading) scanQuery(query string) {
	for len(query) > 0 {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		name, text, _ := strings.Cut(pair, "=")
		name, ok := decoded(name)
		if !ok {
			continue
		}
		for slot, want := range r.names.queries {
			if name != want || r.queries[slot].there {
				continue
			}
			if text, ok := decoded(text); ok {
				r.queries[slot] = field{text: text, there: true}
			}
			break
		}
	}
}

// decoded decodes a name or value of a query. Only what holds an escape needs
// memory.
func decoded(s string) (string, bool) {
	if strings.IndexByte(s, '%') < 0 && strings.IndexByte(s, '+') < 0 {
		return s, true
	}
	s, err := url.QueryUnescape(s)
	return s, err == nil
}
