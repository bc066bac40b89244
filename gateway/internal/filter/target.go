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
	if err == nil && r.ProtoMajor > 1 && t.Authority != "" {
		err = rawpath.ErrForm // :path is a path (RFC 9113, 8.3.1)
	}
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
	if !ex.Connection.named(r.Host) && !validHost(r.Host) {
		return &Refusal{Status: http.StatusBadRequest, Code: "bad_host", Detail: "the host is not a name or an address with an optional port"}
	}
	// Only HTTP/2 leaves it here, beside :authority (RFC 9113, 8.3.1).
	if lines, ok := r.Header["Host"]; ok {
		if len(lines) != 1 || lines[0] != r.Host {
			return &Refusal{Status: http.StatusBadRequest, Code: "bad_host", Detail: "the field host and :authority are not the same"}
		}
		delete(r.Header, "Host")
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
	return validName(name)
}

// validName reports whether name is made of labels as host names have them, with
// underscores let pass, and with a dot at the end or without. Other bytes, though
// the syntax has some of them, are refused: no name that resolves holds one.
func validName(name string) bool {
	name = strings.TrimSuffix(name, ".")
	if len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' || strings.IndexFunc(label, notInLabel) >= 0 {
			return false
		}
	}
	return true
}

func notInLabel(r rune) bool { return oddSeparator(r) && r != '_' }
