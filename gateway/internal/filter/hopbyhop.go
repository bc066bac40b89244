package filter

import (
	"net/http"
	"strings"
)

// connectionFields are the fields of one connection, which are not forwarded
// (RFC 9110, 7.6.1).
var connectionFields = names(
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
)

// framing are the fields that a Connection field cannot take away: without them
// the message is another one.
var framing = names("Host", "Content-Length", "Transfer-Encoding")

// hopByHop removes what belongs to the client's connection, before any field of
// ours is there, so that no Connection field can take ours away. Two things stay:
// the wish for trailers, and a WebSocket's upgrade, which is the only one that is
// carried.
func hopByHop(ex *Exchange) error {
	h := ex.Request.Header
	websocket := WebSocket(ex.Request)
	trailers := hasToken(h["Te"], "trailers")
	RemoveHopByHop(h)
	if trailers {
		h["Te"] = []string{"trailers"}
	}
	if websocket {
		h["Connection"], h["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
	}
	return nil
}

// RemoveHopByHop removes the fields that a Connection field names, and the known
// ones.
func RemoveHopByHop(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			name = trimSpace(name)
			if name == "keep-alive" {
				continue // what most clients say; the field of that name goes below
			}
			if name = http.CanonicalHeaderKey(name); !framing.has(name) {
				delete(h, name)
			}
		}
	}
	for name := range h {
		if connectionFields.has(name) {
			delete(h, name)
		}
	}
}

// WebSocket reports whether a request asks for a WebSocket: GET without a body,
// HTTP/1.1, with the upgrade named in both fields (RFC 6455, 4.2.1). An upgrade to
// anything else, or of a request with a body, is not carried.
func WebSocket(r *http.Request) bool {
	return len(r.Header["Upgrade"]) > 0 &&
		r.Method == http.MethodGet && r.ProtoMajor == 1 && r.ProtoMinor >= 1 && r.ContentLength == 0 &&
		hasToken(r.Header["Connection"], "upgrade") && hasToken(r.Header["Upgrade"], "websocket")
}

// hasToken reports whether a list of tokens over several lines holds token, which
// is in lower case. Letters outside ASCII equal nothing.
func hasToken(lines []string, token string) bool {
	for _, line := range lines {
		for part := range strings.SplitSeq(line, ",") {
			part, _, _ = strings.Cut(part, ";") // "trailers;q=1"
			if EqualFold(trimSpace(part), token) {
				return true
			}
		}
	}
	return false
}

// EqualFold compares s with lower, which is in lower case, in ASCII. That of strings and
// bytes would take the Kelvin sign for a k and the long s for an s.
func EqualFold[T ~string | ~[]byte](s T, lower string) bool {
	if len(s) != len(lower) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// trimSpace cuts the white space of a field value: spaces and tabs.
func trimSpace(s string) string { return strings.Trim(s, " \t") }
