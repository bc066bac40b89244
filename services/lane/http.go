package lane

import "net/http"

// Options says what is carried beside the estate's headers.
type Options struct {
	// Headers are further names, as the routing headers "version", "app" or "zone".
	Headers []string
}

// Middleware returns a wrapper of handlers that puts the headers to carry into
// each request's context. The request itself is not changed.
func Middleware(o Options) func(http.Handler) http.Handler {
	names := canonical(o.Headers)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			ctx := NewContext(req.Context(), from(req.Header, names))
			next.ServeHTTP(w, req.WithContext(ctx))
		})
	}
}

// Transport puts what a request's context carries on the request, without
// replacing a header that the caller has set. It is safe for concurrent use.
//
// The headers hold credentials, so use it only for calls that stay in the estate.
// When a client follows a redirect to another host, nothing is put on the request
// that goes there.
type Transport struct {
	// Base sends the requests. Nil is http.DefaultTransport.
	Base http.RoundTripper
}

var _ http.RoundTripper = (*Transport)(nil)

// RoundTrip sends a copy of req, as an http.RoundTripper must not change it.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	v := FromContext(req.Context())
	if len(v.fields) == 0 || leftHost(req) {
		return t.base().RoundTrip(req)
	}
	out := req.Clone(req.Context())
	if out.Header == nil { // allowed in a request that a client did not make
		out.Header = make(http.Header)
	}
	v.addTo(out.Header)
	return t.base().RoundTrip(out)
}

func (t *Transport) base() http.RoundTripper {
	if t.Base == nil {
		return http.DefaultTransport
	}
	return t.Base
}

// CloseIdleConnections passes http.Client.CloseIdleConnections on to Base.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// leftHost reports whether redirects have led req away from the host that was
// first asked, now or on the way.
func leftHost(req *http.Request) bool {
	for r := req; r.Response != nil && r.Response.Request != nil; r = r.Response.Request {
		if r.Response.Request.URL.Host != r.URL.Host {
			return true
		}
	}
	return false
}
