package config

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"specialroutes.example/services/registration"
	"specialroutes.example/services/routing"
)

var (
	// serviceName is the pattern of names in record.md.
	serviceName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	// gatewayID is the pattern that specialroutes accepts; a host name fits.
	gatewayID = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$`)
	// headerName is a field name of RFC 9110 (token).
	headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
)

// framing are the header fields that a message cannot do without.
var framing = []string{"Connection", "Content-Length", "Host", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// validate notes every mistake of meaning.
func (d *draft) validate() {
	c := &d.config
	if !gatewayID.MatchString(c.ID) {
		d.mistake("id", "%q must be 1 to 64 of A-Z a-z 0-9 . _ -, with a letter or digit at both ends", c.ID)
	}
	d.address("listen", c.Listen)
	d.address("admin", c.Admin)
	if c.Listen == c.Admin && !strings.HasSuffix(c.Admin, ":0") {
		d.mistake("admin", "must differ from listen, which is %s too", c.Listen)
	}
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		d.mistake("tls", "certFile and keyFile go together")
	}
	if !slices.Contains([]ClientLabels{ClientLabelsAll, ClientLabelsNone, ClientLabelsTrusted}, c.ClientLabels) {
		d.mistake("clientLabels", "%q is none of all, none, trusted", string(c.ClientLabels))
	}
	d.headers("sensitiveHeaders", c.SensitiveHeaders)
	d.prefixes(c.TrustedProxies)
	d.routes(c.Routes)
	d.timeouts("timeouts", c.Timeouts)
	d.limits(c)
	d.records(c.Records)
	d.instances(c.Instances)
	d.consul(c)
	d.registration(c.Registration)
	if len(c.ZoneLabel) > 63 || strings.ContainsFunc(c.ZoneLabel, notInLabel) {
		d.mistake("zoneLabel", "%q must be a label's name: up to 63 bytes of visible ASCII without =", c.ZoneLabel)
	}
}

func notInLabel(r rune) bool { return r <= ' ' || r > '~' || r == '=' }

// address checks a listening address: the host may be left out.
func (d *draft) address(path, address string) {
	_, port, err := net.SplitHostPort(address)
	if err != nil || !isPort(port, 0) {
		d.mistake(path, "%q is not host:port with a port of 0 to 65535", address)
	}
}

func isPort(text string, least int) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= least && n <= 65535 && text[0] != '+'
}

func (d *draft) headers(path string, names []string) {
	for i, name := range names {
		at := fmt.Sprintf("%s[%d]", path, i)
		if !headerName.MatchString(name) {
			d.mistake(at, "%q is not the name of a header", name)
		}
		if slices.ContainsFunc(framing, func(f string) bool { return strings.EqualFold(f, name) }) {
			d.mistake(at, "%q cannot be removed: messages are delimited or routed by it", name)
		}
	}
}

// prefixes refuses CIDRs with bits below the mask: what was meant is not clear.
func (d *draft) prefixes(prefixes []netip.Prefix) {
	for i, p := range prefixes {
		if p.IsValid() && p.Addr().Is4In6() {
			// Such a prefix would match nothing: peers' addresses are compared as IPv4.
			d.mistake(fmt.Sprintf("trustedProxies[%d]", i), "%s is an IPv4 network written as IPv6; write the IPv4 one", p)
		} else if p.IsValid() && p != p.Masked() {
			d.mistake(fmt.Sprintf("trustedProxies[%d]", i), "%s has bits below its mask; the network is %s", p, p.Masked())
		}
	}
}

func (d *draft) routes(routes []Route) {
	if len(routes) == 0 {
		d.mistake("routes", "at least one route is required")
	}
	seen := make(map[[2]string]int)
	for i, r := range routes {
		at := fmt.Sprintf("routes[%d]", i)
		d.host(at+".host", r.Host)
		if why := badPrefix(r.Prefix); why != "" {
			d.mistake(at+".prefix", "%q %s", r.Prefix, why)
		}
		d.service(at+".service", r.Service)
		if d.sets(at + ".sensitiveHeaders") {
			d.headers(at+".sensitiveHeaders", r.SensitiveHeaders)
		}
		d.timeouts(at+".timeouts", r.Timeouts)
		key := [2]string{strings.ToLower(r.Host), strings.TrimRight(r.Prefix, "/")}
		if first, twice := seen[key]; twice {
			d.mistake(at, "the same host and prefix as routes[%d]", first)
		}
		seen[key] = i
	}
}

func (d *draft) service(path, name string) {
	if !serviceName.MatchString(name) {
		d.mistake(path, "%q must be 1 to 63 of a-z 0-9 -, without - at either end", name)
	}
}

// host checks the host that a route matches: a name or an address, no port.
func (d *draft) host(path, host string) {
	if host == "" {
		return
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil && strings.ContainsFunc(host, notInName) {
		d.mistake(path, "%q must be a host name or an address, without a port", host)
	}
}

func notInName(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._", r))
}

// badPrefix says what is wrong with a path prefix, "" for nothing. It is matched
// on raw bytes, so it may hold only what a request that passes may hold.
func badPrefix(prefix string) string {
	if !strings.HasPrefix(prefix, "/") {
		return "must start with /"
	}
	for i := range len(prefix) {
		if b := prefix[i]; b < 0x21 || b > 0x7e || strings.IndexByte(`?#\`, b) >= 0 {
			return `must be a path of visible ASCII without ? # \`
		}
	}
	for segment := range strings.SplitSeq(prefix, "/") {
		if segment == "." || segment == ".." {
			return "must not have a segment . or .."
		}
	}
	return ""
}

// timeouts checks the limits in force at path. Those of a route that come from
// the global ones are reported once, there.
func (d *draft) timeouts(path string, t Timeouts) {
	for _, f := range []struct {
		name   string
		value  time.Duration
		zeroOK bool
	}{
		{"connect", t.Connect, false},
		{"response", t.Response, true},
		{"idle", t.Idle, true},
		{"tunnel", t.Tunnel, true},
		{"total", t.Total, true},
		{"header", t.Header, false},
		{"keepAlive", t.KeepAlive, false},
	} {
		at := join(path, f.name)
		if path == "timeouts" || d.sets(at) {
			d.duration(at, f.value, f.zeroOK)
		}
	}
}

func (d *draft) duration(path string, value time.Duration, zeroOK bool) {
	if value < 0 {
		d.mistake(path, "must not be negative")
	}
	if value == 0 && !zeroOK {
		d.mistake(path, "must be above zero")
	}
}

func (d *draft) limits(c *Config) {
	for _, f := range []struct {
		path  string
		value int64
		least int64
	}{
		{"limits.headerBytes", int64(c.Limits.HeaderBytes), 1024},
		{"limits.headerFields", int64(c.Limits.HeaderFields), 1},
		{"limits.bodyBytes", int64(c.Limits.BodyBytes), 0},
		{"activeLimit", int64(c.ActiveLimit), 0},
		{"maxConnections", int64(c.MaxConnections), 0},
		{"upstream.maxIdlePerTarget", int64(c.Upstream.MaxIdlePerTarget), 1},
	} {
		if f.value < f.least {
			d.mistake(f.path, "must be at least %d", f.least)
		}
	}
	d.duration("upstream.idleTimeout", c.Upstream.IdleTimeout, false)
	d.duration("drain.delay", c.Drain.Delay, true)
	d.duration("drain.limit", c.Drain.Limit, true)
}

func (d *draft) records(r Records) {
	if len(r.URLs) == 0 {
		d.mistake("records.url", "at least one URL is required")
	}
	for i, text := range r.URLs {
		if why := badBaseURL(text); why != "" {
			d.mistake(fmt.Sprintf("records.url[%d]", i), "%q %s", text, why)
		}
	}
}

// badBaseURL says what is wrong with a base URL, "" for nothing.
func badBaseURL(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "is not a URL"
	case u.Scheme != "http" && u.Scheme != "https":
		return "must start with http:// or https://"
	case u.Hostname() == "":
		return "has no host"
	case u.Port() != "" && !isPort(u.Port(), 1):
		return "must have a port of 1 to 65535"
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "must not have a user, query or fragment"
	}
	return ""
}

// consul refuses what would be without effect beside a mistake of the address.
func (d *draft) consul(c *Config) {
	const at = "registry.consul"
	k := c.Registry.Consul
	d.duration(at+".maxStale", k.MaxStale, false)
	if k.Address == "" {
		if k.TokenFile != "" || k.CAFile != "" || k.Datacenter != "" || k.Stale || k.RequireServiceCheck {
			d.mistake(at+".address", "is required with other settings of registry.consul")
		}
		return
	}
	d.agent(at+".address", k.Address)
	if len(c.Instances) > 0 {
		d.mistake("instances", "must be empty when registry.consul.address is set: the instances come from Consul")
	}
}

// agent checks the address of a Consul agent.
func (d *draft) agent(path, address string) {
	text := address
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	why := badBaseURL(text)
	if u, err := url.Parse(text); why == "" && err == nil && strings.Trim(u.Path, "/") != "" {
		why = "must not have a path"
	}
	if why != "" {
		d.mistake(path, "%q %s", address, why)
	}
}

// registration refuses what would be without effect, as consul does.
func (d *draft) registration(r Registration) {
	const at = "registration"
	if r.Service == "" {
		d.mistake(at+".service", "must not be empty")
	}
	if _, err := registration.ParseLabels(strings.Join(r.Labels, ",")); err != nil {
		d.mistake(at+".labels", "%s", err)
	}
	if r.Agent == "" {
		if r.ID != "" || r.Address != "" || len(r.Labels) > 0 {
			d.mistake(at+".agent", "is required with other settings of registration")
		}
		return
	}
	d.agent(at+".agent", r.Agent)
}

// labels checks the labels of an instance, as those are checked that operators set.
func (d *draft) labels(at string, labels map[string]string) {
	if len(labels) == 0 {
		return
	}
	changes := make(routing.LabelChanges, len(labels))
	for name, value := range labels {
		changes[name] = &value
	}
	var faults []string
	for _, fault := range changes.Validate() {
		detail := fault.Detail
		if name, one := strings.CutPrefix(fault.Pointer, "/labels/"); one {
			detail = fmt.Sprintf("%q %s", name, detail)
		}
		faults = append(faults, detail)
	}
	if len(faults) > 0 {
		d.mistake(at, "%s", strings.Join(faults, "; "))
	}
}

func (d *draft) instances(services map[string][]Instance) {
	for _, name := range slices.Sorted(maps.Keys(services)) {
		instances := services[name]
		at := join("instances", name)
		d.service(at, name)
		seen := make(map[string]int)
		for i, instance := range instances {
			here := fmt.Sprintf("%s[%d]", at, i)
			host, port, err := net.SplitHostPort(instance.Address)
			if err != nil || host == "" || !isPort(port, 1) {
				d.mistake(here+".address", "%q is not host:port with a port of 1 to 65535", instance.Address)
			}
			if first, twice := seen[instance.ID]; twice {
				d.mistake(here+".id", "%q is the ID of %s[%d] too", instance.ID, at, first)
			}
			seen[instance.ID] = i
			d.labels(here+".labels", instance.Labels)
		}
	}
}
