package routing

import "net/netip"

// metadata are the addresses outside the link-local ranges at which clouds serve
// credentials and user data to their machines.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba Cloud
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure's platform address
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle Cloud, classic
	netip.MustParsePrefix("fd00:ec2::/32"),      // AWS, IPv6
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google Cloud, IPv6
	netip.MustParsePrefix("fd00:42::42/128"),    // Scaleway, IPv6
}

// embeddings are the IPv6 ranges whose addresses lead to the IPv4 address that
// begins at the given byte.
var embeddings = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("::/96"), 12},           // IPv4-compatible, RFC 4291 2.5.5.1
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, // IPv4-translated, RFC 2765
	{netip.MustParsePrefix("64:ff9b::/96"), 12},    // NAT64, RFC 6052
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},  // NAT64 of one's own, RFC 8215
	{netip.MustParsePrefix("2002::/16"), 2},        // 6to4, RFC 3056
}

// RefusedAddress says whether an address is link-local or one at which clouds
// serve their metadata, also where an IPv6 address leads to such an IPv4 one. The
// literal hosts of records are checked with it, and so must be every address that
// is dialled for an endpoint, because a name can lead there too.
func RefusedAddress(a netip.Addr) bool {
	a = a.WithZone("").Unmap()
	if refusedPlain(a) {
		return true
	}
	if !a.Is6() {
		return false
	}
	for _, e := range embeddings {
		if e.prefix.Contains(a) {
			b := a.As16()
			return refusedPlain(netip.AddrFrom4([4]byte(b[e.at : e.at+4])))
		}
	}
	return false
}

// refusedPlain is RefusedAddress without a look inside IPv6 addresses.
func refusedPlain(a netip.Addr) bool {
	if a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() || a.IsInterfaceLocalMulticast() {
		return true
	}
	for _, p := range metadata {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
