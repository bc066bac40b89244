package routing

import (
	"net/netip"
	"net/url"
)

// RefusedAddress says whether an address is link-local or one at which clouds
// serve their metadata, in any form that leads there. The record's literal hosts
// are checked with it, and so must be every address that is dialled for an
// endpoint, because a name can lead there too.
func RefusedAddress(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast()
}

func parseBaseURL(s string) (*BaseURL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, err
	}
	return &BaseURL{Scheme: u.Scheme, Authority: u.Host, Address: u.Host, Host: u.Hostname(), Path: u.EscapedPath()}, nil
}
