package filter

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"specialroutes.example/gateway/internal/rawpath"
)

// target takes the request-target apart and judges its path and the host.
func target(ex *Exchange) error {
	r := ex.Request
	t, err := rawpath.Parse(r.RequestURI)
	if err != nil {
		ex.Entry.Path, _, _ = strings.Cut(r.RequestURI, "?")
		return &Refusal{Status: http.StatusBadRequest, Code: "bad_path", Detail: err.Error()}
	}
	ex.Target, ex.Entry.Path = t, t.Path
	if r.Method == http.MethodConnect {
		return &Refusal{Status: http.StatusBadRequest, Code: "bad_request", Detail: "CONNECT asks for a tunnel, and none is made"}
	}
	if r.Host == "" && !r.ProtoAtLeast(1, 1) {
		return nil
	}
	if !validHost(r.Host) {
		return &Refusal{Status: http.StatusBadRequest, Code: "bad_host", Detail: "the host is not a name or an address with an optional port"}
	}
	return nil
}

// validHost reports whether host is a name, an IPv4 address or an IPv6 address in
// brackets, with an optional port (RFC 3986, 3.2.2). A zone is refused: it means
// something on this machine only.
func validHost(host string) bool {
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		name, port = host[:i], host[i+1:]
	}
	if port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return false
		}
	}
	if strings.HasPrefix(name, "[") {
		a, err := netip.ParseAddr(strings.TrimSuffix(name[1:], "]"))
		return err == nil && strings.HasSuffix(name, "]") && a.Is6() && a.Zone() == ""
	}
	return name != "" && strings.IndexFunc(name, notInName) < 0
}

// notInName reports whether r has no place in a registered name. Percent signs,
// though the syntax has them, are refused with the rest: no name that resolves
// holds one.
func notInName(r rune) bool {
	return oddSeparator(r) && !strings.ContainsRune("._~!$&'()*+,;=", r)
}
