package filter

import (
	"net/http"
	"strings"
)

// ownedNames are the fields that nobody but the gateway may set, beside the
// family X-Forwarded-, and fields that some servers take for the true address of
// a request.
var ownedNames = names(
	RouteVariant, RouteReason, RouteFallback, OverrideInvalid,
	forwardedField, realIP,
	"Proxy", // CGI makes it HTTP_PROXY
	"X-Original-Url", "X-Rewrite-Url",
)

// fromProxies are the owned fields that a trusted proxy may have set. The filter
// forwarded reads and rebuilds them.
var fromProxies = names(forwardedField, realIP)

// noAlias are further fields that must not come under another spelling, for a
// reader that takes it for the field would be misled.
var noAlias = names(
	CorrelationID, RouteOverride, "Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer",
	"Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Proxy-Authenticate", "Expect",
)

// owned removes what only the gateway may set, also where it is spelt with other
// separators.
func owned(ex *Exchange) error {
	for name := range ex.Request.Header {
		if removed(name, ex.Trusted) {
			delete(ex.Request.Header, name)
		}
	}
	return nil
}

func removed(name string, trusted bool) bool {
	plain := plainName(name)
	if plain != name {
		return isOwned(plain) || noAlias.has(plain)
	}
	if !isOwned(name) {
		return false
	}
	return !trusted || !(fromProxies.has(name) || strings.HasPrefix(name, forwardedFamily))
}

func isOwned(name string) bool {
	return ownedNames.has(name) || strings.HasPrefix(name, forwardedFamily)
}

// notInTrailers are fields that mean something before the body only: framing,
// routing, authentication, conditions and the description of the content
// (RFC 9110, 6.5.1).
var notInTrailers = names(
	CorrelationID, RouteOverride, "Host", "Content-Length", "Transfer-Encoding", "Trailer", "Te", "Connection", "Upgrade",
	"Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Proxy-Authenticate", "Expect", "Max-Forwards",
	"Authorization", "Www-Authenticate", "Cookie", "Set-Cookie", "Tmx-Auth-Token",
	"Cache-Control", "Pragma", "Range", "Content-Range", "Content-Encoding", "Content-Type", "Location", "Vary",
	"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "Age", "Date",
)

// RequestTrailer reports whether a trailer field of a request may go upstream.
func (ex *Exchange) RequestTrailer(name string) bool {
	if ex.isLabel(http.CanonicalHeaderKey(name)) {
		return false
	}
	if ex.Record != nil {
		for _, read := range ex.Record.Headers() {
			if name == read {
				return false
			}
		}
	}
	return ex.AnswerTrailer(name)
}

// AnswerTrailer reports whether a trailer field of an answer may go to the client.
func (ex *Exchange) AnswerTrailer(name string) bool {
	plain := plainName(http.CanonicalHeaderKey(name))
	if isOwned(plain) || notInTrailers.has(plain) {
		return false
	}
	for _, s := range ex.Route.SensitiveHeaders {
		if s == plain {
			return false
		}
	}
	return true
}
