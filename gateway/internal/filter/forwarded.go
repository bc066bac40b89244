package filter

import (
	"net/http"
	"net/netip"
	"strings"
)

// forwarded tells the upstream about the request that the client made. What an
// untrusted peer claimed is gone by now; what a trusted proxy says is appended to
// or kept.
func forwarded(ex *Exchange) error {
	h := ex.Request.Header
	appendTo(ex, forwardedFor, ex.peer)
	appendTo(ex, forwardedField, forwardedElement(ex))
	setUnless(ex, forwardedProto, scheme(ex.Request), validProto)
	if host := ex.Request.Host; host != "" {
		setUnless(ex, forwardedHost, host, validHost)
		setUnless(ex, forwardedPort, portOf(host, scheme(ex.Request)), validPort)
	}
	setPrefix(ex)
	switch {
	case ex.Client == ex.Peer && ex.Peer.IsValid():
		h[realIP] = ex.line(ex.peer)
	case ex.Client.IsValid():
		h[realIP] = ex.line(ex.Client.String())
	default:
		delete(h, realIP)
	}
	return nil
}

// appendTo makes one line of what is there and value.
func appendTo(ex *Exchange, name, value string) {
	h := ex.Request.Header
	if lines := h[name]; len(lines) > 0 {
		value = strings.Join(lines, ", ") + ", " + value
	}
	h[name] = ex.line(value)
}

// setUnless keeps a single valid line, and sets value else.
func setUnless(ex *Exchange, name, value string, valid func(string) bool) {
	h := ex.Request.Header
	if lines := h[name]; len(lines) != 1 || !valid(lines[0]) {
		h[name] = ex.line(value)
	}
}

// setPrefix says which prefix was cut off, after what proxies before us have cut
// off.
func setPrefix(ex *Exchange) {
	h, before := ex.Request.Header, ""
	if lines := h[forwardedPrefix]; len(lines) == 1 && validPrefix(lines[0]) {
		before = strings.TrimSuffix(lines[0], "/")
	}
	if ex.Route.StripPrefix {
		before += ex.Route.Prefix
	}
	if before == "" {
		delete(h, forwardedPrefix)
		return
	}
	h[forwardedPrefix] = ex.line(before)
}

// hop writes an address as X-Forwarded-For has it. remote is the peer's address with
// its port, of which it may be a part.
func hop(a netip.Addr, remote string) string {
	if !a.IsValid() {
		return "unknown"
	}
	if i := strings.IndexByte(remote, ':'); a.Is4() && i == strings.LastIndexByte(remote, ':') {
		return remote[:i]
	}
	return a.String()
}

// forwardedElement is our part of Forwarded (RFC 7239, 4). The requests of a connection
// mostly name one host.
func forwardedElement(ex *Exchange) string {
	c := ex.Connection
	if c == nil {
		return newForwardedElement(ex)
	}
	if !c.named(ex.Request.Host) {
		c.host = strings.Clone(ex.Request.Host) // it may be a part of the whole head
		c.element = newForwardedElement(ex)
	}
	return c.element
}

func newForwardedElement(ex *Exchange) string {
	opening, closing := "for=", ""
	if ex.Peer.Is6() {
		opening, closing = `for="[`, `]"`
	}
	host := ex.Request.Host
	if host == "" {
		return opening + ex.peer + closing + ";proto=" + scheme(ex.Request)
	}
	quote := ""
	if strings.ContainsAny(host, ":[](),;=") { // it is no token
		quote = `"` // a valid host holds nothing that would have to be escaped
	}
	return opening + ex.peer + closing + ";host=" + quote + host + quote + ";proto=" + scheme(ex.Request)
}

func scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

// clientScheme is the scheme on the client's side: what a trusted proxy says, else
// what the connection is.
func clientScheme(ex *Exchange) string {
	if lines := ex.Request.Header[forwardedProto]; len(lines) == 1 && (lines[0] == "https" || lines[0] == "wss") {
		return "https"
	}
	return scheme(ex.Request)
}

// portOf returns the port that a client asked for, the scheme's own where it
// named none.
func portOf(host, scheme string) string {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') && i+1 < len(host) {
		return host[i+1:]
	}
	if scheme == "https" {
		return "443"
	}
	return "80"
}

func validProto(s string) bool {
	return s == "http" || s == "https" || s == "ws" || s == "wss"
}

func validPort(s string) bool {
	if s == "" || len(s) > 5 {
		return false
	}
	return strings.Trim(s, "0123456789") == ""
}

// validPrefix reports whether s can be put before a path. One that begins with
// two slashes would make a link of it that leads to another host.
func validPrefix(s string) bool {
	return strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "//") && !strings.ContainsAny(s, " ,\\?#")
}
