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
	appendTo(h, forwardedFor, hop(ex.Peer))
	appendTo(h, forwardedField, forwardedElement(ex))
	setUnless(h, forwardedProto, scheme(ex.Request), validProto)
	if host := ex.Request.Host; host != "" {
		setUnless(h, forwardedHost, host, validHost)
		setUnless(h, forwardedPort, portOf(host, scheme(ex.Request)), validPort)
	}
	setPrefix(h, ex)
	if ex.Client.IsValid() {
		h[realIP] = []string{ex.Client.String()}
	} else {
		delete(h, realIP)
	}
	return nil
}

// appendTo makes one line of what is there and value.
func appendTo(h http.Header, name, value string) {
	if lines := h[name]; len(lines) > 0 {
		value = strings.Join(lines, ", ") + ", " + value
	}
	h[name] = []string{value}
}

// setUnless keeps a single valid line, and sets value else.
func setUnless(h http.Header, name, value string, valid func(string) bool) {
	if lines := h[name]; len(lines) != 1 || !valid(lines[0]) {
		h[name] = []string{value}
	}
}

// setPrefix says which prefix was cut off, after what proxies before us have cut
// off.
func setPrefix(h http.Header, ex *Exchange) {
	before := ""
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
	h[forwardedPrefix] = []string{before}
}

// hop writes an address as X-Forwarded-For has it.
func hop(a netip.Addr) string {
	if !a.IsValid() {
		return "unknown"
	}
	return a.String()
}

// forwardedElement is our part of Forwarded (RFC 7239, 4).
func forwardedElement(ex *Exchange) string {
	peer := hop(ex.Peer)
	if ex.Peer.Is6() {
		peer = `"[` + peer + `]"`
	}
	element := "for=" + peer
	if host := ex.Request.Host; host != "" {
		element += ";host=" + quoted(host)
	}
	return element + ";proto=" + scheme(ex.Request)
}

// quoted quotes a host where it is no token. A valid host holds nothing that
// would have to be escaped.
func quoted(host string) string {
	if strings.ContainsAny(host, ":[](),;=") {
		return `"` + host + `"`
	}
	return host
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
