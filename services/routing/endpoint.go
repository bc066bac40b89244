package routing

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// maxEndpoint is the longest endpoint, in bytes.
const maxEndpoint = 2048

// schemePorts are the schemes of endpoints, with the port where none is named.
var schemePorts = map[string]string{"http": "80", "https": "443", "h2c": "80", "h2": "443"}

// BaseURL is an endpoint taken apart. No part was ever encoded or decoded.
type BaseURL struct {
	Scheme    string // http or https; HTTP/2 is spoken with h2c (without TLS) and h2 (with TLS)
	Authority string // host and optional port as written: the Host header
	Address   string // host and port in lower case, to dial; IPv6 in brackets
	Host      string // the host alone, in lower case and without brackets: the TLS name
	Path      string // goes before the rest of the path: "" or "/base", never a slash at the end
}

// parseEndpoint takes an endpoint apart, or says in the error what is wrong with
// it, as the end of a sentence. It does not use net/url, which decodes the host
// and accepts much that a base URL must not hold.
func parseEndpoint(s string, o options) (*BaseURL, error) {
	if s == "" || len(s) > maxEndpoint {
		return nil, errors.New("must have 1 to 2048 bytes")
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' || s[i] == '\\' {
			return nil, errors.New("must hold visible ASCII characters only, and no backslash")
		}
	}
	scheme, rest, found := strings.Cut(s, "://")
	scheme = strings.ToLower(scheme)
	if _, known := schemePorts[scheme]; !found || !known {
		return nil, errors.New("must begin with http://, https://, h2c:// or h2://")
	}
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		return nil, errors.New("must have neither query nor fragment")
	}
	authority, path := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	b := &BaseURL{Scheme: scheme, Authority: authority, Path: strings.TrimSuffix(path, "/")}
	if err := b.parseAuthority(o); err != nil {
		return nil, err
	}
	return b, checkBasePath(path)
}

// parseAuthority fills Host and Address from Authority.
func (b *BaseURL) parseAuthority(o options) error {
	if strings.Contains(b.Authority, "@") {
		return errors.New("must not hold a user or password")
	}
	host, port := strings.ToLower(b.Authority), ""
	end := strings.IndexByte(host, ']') + 1 // a colon before it belongs to an IPv6 address
	hasPort := false
	if i := strings.LastIndexByte(host, ':'); i >= end {
		host, port, hasPort = host[:i], host[i+1:], true
	}
	if !hasPort {
		port = schemePorts[b.Scheme]
	} else if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] == '0' {
		return errors.New("must have a port from 1 to 65535, or none")
	}
	b.Address = host + ":" + port
	b.Host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return checkHost(host, o)
}

// checkHost accepts a name, an IPv4 address of four decimal numbers, or an IPv6
// address in brackets. Resolvers also read 2130706433, 0x7f.1 or 0177.0.0.1 as
// IPv4 addresses; as no name ends in a number, those are refused altogether.
func checkHost(host string, o options) error {
	if host == "" {
		return errors.New("must name a host")
	}
	if host[0] == '[' {
		addr, err := netip.ParseAddr(strings.TrimSuffix(host[1:], "]"))
		if err != nil || !addr.Is6() || !strings.HasSuffix(host, "]") {
			return errors.New("must have an IPv6 address between the brackets")
		}
		if addr.Zone() != "" {
			return errors.New("must not have an address with a zone")
		}
		return checkAddr(addr, o)
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	if isNumber(labels[len(labels)-1]) {
		addr, err := netip.ParseAddr(host)
		if err != nil {
			return errors.New("must have a host that is a name, four decimal numbers, or IPv6 in brackets")
		}
		return checkAddr(addr, o)
	}
	if len(host) > 253 {
		return errors.New("must have a host of at most 253 bytes")
	}
	for _, l := range labels {
		if !isHostLabel(l) {
			return errors.New("must have a host of letters, digits, hyphens and dots")
		}
	}
	return nil
}

// checkAddr refuses literal addresses that a call must not be sent to.
func checkAddr(a netip.Addr, o options) error {
	switch {
	case a.Unmap().IsUnspecified() || a.Unmap().IsMulticast():
		return errors.New("must have an address that can be connected to")
	case RefusedAddress(a) && !o.allowLinkLocal:
		return errors.New("must not have a link-local address or that of a metadata service")
	}
	return nil
}

// isNumber says whether resolvers read the last label of a host as a number.
func isNumber(label string) bool {
	digits, isDigit := label, func(r rune) bool { return r >= '0' && r <= '9' }
	if hex, found := strings.CutPrefix(label, "0x"); found {
		digits = hex
		isDigit = func(r rune) bool { return r >= '0' && r <= '9' || r >= 'a' && r <= 'f' }
	}
	return label != "" && strings.TrimFunc(digits, isDigit) == ""
}

// isHostLabel checks one label of a lower-case host name. Underscores are not
// for host names, but container networks hand them out.
func isHostLabel(l string) bool {
	if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' {
		return false
	}
	for i := range len(l) {
		c := l[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}

// checkBasePath refuses in an endpoint's path what the gateway refuses in a
// request's: it is put before that byte for byte.
func checkBasePath(path string) error {
	for i := 0; i < len(path); i++ {
		if path[i] != '%' {
			continue
		}
		if i+2 >= len(path) || !isHex(path[i+1]) || !isHex(path[i+2]) {
			return errors.New("must have two hexadecimal digits after each % of its path")
		}
		if code := strings.ToLower(path[i+1 : i+3]); code == "5c" || code == "00" {
			return errors.New("must not have %" + code + " in its path")
		}
	}
	dots := strings.NewReplacer("%2f", "/", "%2F", "/", "%2e", ".", "%2E", ".")
	for segment := range strings.SplitSeq(dots.Replace(path), "/") {
		segment, _, _ = strings.Cut(segment, ";")
		if segment == "." || segment == ".." {
			return errors.New("must not have . or .. in its path")
		}
	}
	return nil
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
