// Package rawpath takes a request-target apart without ever decoding it. The
// bytes that are matched are the bytes that are forwarded, so the gateway and
// the upstream cannot read one path in two ways; what could be read in two ways
// is refused.
package rawpath

import (
	"errors"
	"strings"

	"specialroutes.example/services/routing"
)

// Target is a request-target in its parts, each as the client sent it.
type Target struct {
	Path      string // starts with "/"
	Query     string // without the question mark
	HasQuery  bool   // a question mark was there, be it that nothing followed
	Authority string // of a target in absolute-form, else ""
}

// Reasons for a refusal. The text is a plain sentence for the client.
var (
	ErrForm      = errors.New("the request-target is neither a path nor an absolute http URL")
	ErrAsterisk  = errors.New("the request-target * names no resource")
	ErrTriplet   = routing.ErrTriplet
	ErrByte      = routing.ErrByte
	ErrFragment  = routing.ErrFragment
	ErrBackslash = routing.ErrBackslash
	ErrNUL       = routing.ErrNUL
	ErrDots      = routing.ErrDots
)

// Parse takes the request-target uri apart, which is the second word of the
// request line (http.Request.RequestURI), and checks the path. The query passes
// whatever it holds. The error is one of the reasons above.
func Parse(uri string) (Target, error) {
	var t Target
	switch {
	case strings.HasPrefix(uri, "/"):
		t.Path = uri
	case uri == "*":
		return Target{}, ErrAsterisk
	default:
		authority, path, ok := absolute(uri)
		if !ok {
			return Target{}, ErrForm
		}
		t.Authority, t.Path = authority, path
	}
	if i := strings.IndexByte(t.Path, '?'); i >= 0 {
		t.Path, t.Query, t.HasQuery = t.Path[:i], t.Path[i+1:], true
	}
	if t.Path == "" { // http://host?query (RFC 9110, 4.2.3)
		t.Path = "/"
	}
	return t, Check(t.Path)
}

// absolute splits a target in absolute-form (RFC 9112, 3.2.2) into its authority
// and all that follows.
func absolute(uri string) (authority, rest string, ok bool) {
	i := strings.Index(uri, "://")
	if i < 0 {
		return "", "", false
	}
	scheme := uri[:i]
	if !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return "", "", false
	}
	authority = uri[i+len("://"):]
	if j := strings.IndexAny(authority, "/?#"); j >= 0 {
		authority, rest = authority[:j], authority[j:]
	}
	return authority, rest, authority != "" && !strings.Contains(authority, "@")
}
