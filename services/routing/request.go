package routing

import (
	"net/http"
	"net/netip"
)

// Request is what a decision may read of a request. Decide changes none of it.
type Request struct {
	Method   string
	Path     string      // raw, below the route's prefix
	RawQuery string      // raw, without the question mark
	Header   http.Header // keys in canonical form
	Client   netip.Addr  // the zero Addr when it is not known
	Override string      // the variant that a verified override wants of this service; "" when none does
	FreshKey string      // the key that the gateway has just issued (Decision.NeedsKey); "" when none
}
