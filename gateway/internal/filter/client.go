package filter

import (
	"net/netip"
	"strings"
)

// client finds out who asks: the peer, and behind trusted proxies the right-most
// address that is none of them.
func client(trusted []netip.Prefix) func(*Exchange) error {
	return func(ex *Exchange) error {
		findPeer(ex, trusted)
		ex.Client = ex.Peer
		if ex.Trusted {
			ex.Client = rightmostUntrusted(ex.Request.Header[forwardedFor], ex.Peer, trusted)
		}
		ex.Entry.Client = ex.Client
		return nil
	}
}

// findPeer finds out who the connection is with, unless that is known.
func findPeer(ex *Exchange, trusted []netip.Prefix) {
	c := ex.Connection
	if c != nil && c.remote == ex.Request.RemoteAddr {
		ex.Peer, ex.peer, ex.Trusted = c.address, c.peer, c.trusted
		return
	}
	if ap, err := netip.ParseAddrPort(ex.Request.RemoteAddr); err == nil {
		ex.Peer = ap.Addr().Unmap().WithZone("")
	}
	ex.peer = hop(ex.Peer, ex.Request.RemoteAddr)
	ex.Trusted = within(trusted, ex.Peer)
	if c != nil {
		*c = Connection{remote: ex.Request.RemoteAddr, address: ex.Peer, peer: ex.peer, trusted: ex.Trusted}
	}
}

func within(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// rightmostUntrusted walks the hops from the peer outwards. When all are trusted
// the outermost is the client. A hop that is not an address is nobody we trust,
// and nobody we know: the zero address.
func rightmostUntrusted(lines []string, peer netip.Addr, trusted []netip.Prefix) netip.Addr {
	last := peer
	for i := len(lines) - 1; i >= 0; i-- {
		line := lines[i]
		for line != "" {
			cut := strings.LastIndexByte(line, ',')
			hop, ok := parseHop(line[cut+1:])
			if !ok {
				return netip.Addr{}
			}
			if !within(trusted, hop) {
				return hop
			}
			last, line = hop, line[:max(cut, 0)]
		}
	}
	return last
}

// parseHop reads one hop of X-Forwarded-For: an address, in brackets or not, with
// a port or not. An IPv4 address in IPv6 form is taken for what it is, and a zone
// is dropped, for both would hide the address from the trusted networks.
func parseHop(s string) (netip.Addr, bool) {
	s = trimSpace(s)
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone(""), true
	}
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		s = s[1 : len(s)-1]
	}
	a, err := netip.ParseAddr(s)
	return a.Unmap().WithZone(""), err == nil
}
