package api

import (
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"specialroutes.example/specialroutes/internal/tokens"
)

// guard refuses what a browser was led to send by somebody else's page: a name
// that was pointed here (DNS rebinding), and a write from another site.
func (a *api) guard(c *gin.Context) error {
	if !a.hosts.answers(c.Request.Host) {
		return refuse(http.StatusForbidden, "host_not_allowed", "This process does not answer to that Host; SPECIALROUTES_HOSTS has those it answers to.")
	}
	if err := a.origins.Check(c.Request); err != nil {
		return refuse(http.StatusForbidden, "cross_origin", "A page of another site sent this.")
	}
	return nil
}

// hostPolicy is the names in a Host header that are answered.
type hostPolicy struct {
	any   bool
	names []string // nil: addresses, and names without a dot
}

// newHostPolicy makes the policy of a setting, whose default depends on whether
// there are tokens: see config.Config.Hosts.
func newHostPolicy(hosts []string, tokens bool) hostPolicy {
	return hostPolicy{any: hosts == nil && tokens || slices.Contains(hosts, "*"), names: hosts}
}

// answers says whether a Host header, with or without port, is answered.
func (p hostPolicy) answers(host string) bool {
	if p.any {
		return true
	}
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if p.names != nil {
		return slices.Contains(p.names, name)
	}
	// A name without a dot is looked up in the local network only, so nobody outside
	// can point one here; and a page that uses an address is not one of a name.
	return net.ParseIP(name) != nil || !strings.Contains(name, ".")
}

// authenticate says who sends a request. Only a bearer token counts: a cookie, which
// a browser adds by itself, never does, and neither does an address.
func (a *api) authenticate(r *http.Request) (tokens.Token, error) {
	if a.Tokens == nil {
		if a.InsecureAdmin {
			return tokens.Everybody(tokens.Write), nil
		}
		return tokens.Everybody(tokens.Read), nil
	}
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") && len(r.Header["Authorization"]) == 1 {
		if token, ok := a.Tokens().Find(secret); ok {
			return token, nil
		}
	}
	// One answer for no token and a wrong one: it helps nobody to tell them apart.
	return tokens.Token{}, refuse(http.StatusUnauthorized, "unauthorized", "A valid token is needed: Authorization: Bearer SECRET.").
		with("WWW-Authenticate", `Bearer realm="specialroutes"`)
}

// notAllowed says why a token's scope does not do.
func (a *api) notAllowed(t tokens.Token) error {
	if a.Tokens == nil {
		return refuse(http.StatusForbidden, "writes_closed", "Nobody may write here: no tokens are configured (SPECIALROUTES_TOKENS_FILE).")
	}
	return refuse(http.StatusForbidden, "forbidden", "The token "+t.Name+" may not write.")
}

// tokenOf returns who sends an admitted request.
func tokenOf(c *gin.Context) tokens.Token {
	t, _ := c.Get(tokenKey)
	token, _ := t.(tokens.Token)
	return token
}

// checkCovers refuses a token that is not for the service.
func checkCovers(c *gin.Context, service string) error {
	if t := tokenOf(c); !t.Covers(service) {
		return refuse(http.StatusForbidden, "forbidden", "The token "+t.Name+" is not for this service.")
	}
	return nil
}

// errTokenForAll is for what shows all services.
func errTokenForAll(name string) error {
	return refuse(http.StatusForbidden, "forbidden", "The token "+name+" is not for all services.")
}
