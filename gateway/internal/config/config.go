// Package config reads the gateway's settings: a YAML file, the environment over
// it, flags over both. Load is a pure function of the arguments, the environment
// and the file, validates once and names every mistake with its line and field.
// A change of settings is a restart, so a Config never changes after Load.
package config

import (
	"log/slog"
	"net/netip"
	"time"
)

// Bytes is a size in bytes. In the file it is an integer or a number with a unit:
// 65536, 64KiB, 1MiB, 2GiB.
type Bytes int64

// Config holds every setting of the gateway. Default gives the values of an
// absent setting; Load gives a Config that has been validated and is never
// modified afterwards, so it may be read by many goroutines.
type Config struct {
	// ID names this gateway to specialroutes and in its own log. Default: the host
	// name. Two gateways with one ID are counted as one by ?wait=applied.
	ID string `yaml:"id"`

	// Listen is the address of the data port, "host:port". Default ":5555".
	Listen string `yaml:"listen"`

	// TLS is the data port's certificate. Without one the port speaks plain HTTP.
	TLS TLS `yaml:"tls"`

	// MaxConnections is how many connections of clients there are at most. Over it an
	// idle one is closed for each new one; while none is idle, new ones wait in the
	// system's queue. Default 0: half of the descriptors that the process may have beside
	// 64 for itself; the other half is for upstreams.
	MaxConnections int `yaml:"maxConnections"`

	// Loop says whether one goroutine a connection serves plain HTTP/1.1, which costs a
	// third; all else is net/http's in any case. It is there to compare, and for doubt.
	// Default true; without effect anywhere but on Linux.
	Loop bool `yaml:"loop"`

	// Admin is the address of the admin port (health, metrics, what is in force),
	// "host:port". It has no authentication, so it stays on the loopback interface
	// by default: "127.0.0.1:5556".
	Admin string `yaml:"admin"`

	// Routes is the table: host and path prefix → service. At least one.
	Routes []Route `yaml:"routes"`

	// Timeouts are the time limits of every route that does not set its own.
	Timeouts Timeouts `yaml:"timeouts"`

	// Limits bound what a client may send.
	Limits Limits `yaml:"limits"`

	// SensitiveHeaders are removed from requests after routing has read them, and
	// from answers, on every route that does not set its own. Default: none.
	SensitiveHeaders []string `yaml:"sensitiveHeaders"`

	// ExposeRoute says whether answers carry X-Route-Variant, X-Route-Reason,
	// X-Route-Fallback and X-Route-Override-Invalid. Default true.
	ExposeRoute bool `yaml:"exposeRoute"`

	// ClientLabels says whose routing headers (those that label rules name) are
	// kept: "all", "none", or "trusted" (of peers in trustedProxies). Default "all".
	ClientLabels ClientLabels `yaml:"clientLabels"`

	// OverrideKeys is the file of keys by which the overrides of testers are
	// verified, an id and a secret a line; it is read anew when it changes. Default
	// "": no override is valid.
	OverrideKeys string `yaml:"overrideKeys"`

	// TrustedProxies are the peers, as CIDRs, whose X-Forwarded-* fields are
	// believed and appended to. Default: none.
	TrustedProxies []netip.Prefix `yaml:"trustedProxies"`

	// Records says where the route records come from.
	Records Records `yaml:"records"`

	// Registry says where the instances come from. Without one they are those of
	// Instances.
	Registry Registry `yaml:"registry"`

	// Instances is the static registry: service → its instances.
	Instances map[string][]Instance `yaml:"instances"`

	// Registration announces this gateway in Consul. Without an agent it does not.
	Registration Registration `yaml:"registration"`

	// ZoneLabel is the label that names an instance's availability zone: zones that
	// are down or busy are avoided. Default "": none is. A rule of a record may use the
	// same label as a lane, so this one is set by hand.
	ZoneLabel string `yaml:"zoneLabel"`

	// ActiveLimit is the number of requests in flight at which an instance or endpoint
	// is skipped. Default 0: no limit.
	ActiveLimit int `yaml:"activeLimit"`

	// Upstream tunes the connections to instances and endpoints.
	Upstream Upstream `yaml:"upstream"`

	// Drain says how the gateway leaves.
	Drain Drain `yaml:"drain"`

	// Log says what is logged.
	Log Log `yaml:"log"`
}

// TLS is a certificate and its key.
type TLS struct {
	// CertFile holds the certificate with its chain (PEM), KeyFile its key. Both are
	// read anew when they change; while they do not fit, the last pair stays in use.
	// Default "": none.
	CertFile string `yaml:"certFile"`

	// KeyFile holds the certificate's key (PEM). Default "": none.
	KeyFile string `yaml:"keyFile"`
}

// Enabled reports whether there is a certificate.
func (t TLS) Enabled() bool { return t.CertFile != "" }

// Route leads the requests of a host and a path prefix to a service.
type Route struct {
	// Host is the host that the request asks for, without a port, compared without
	// regard to case. "" (the default) is any host.
	Host string `yaml:"host"`

	// Prefix is the raw path prefix; it matches on a segment border. Required,
	// starts with "/".
	Prefix string `yaml:"prefix"`

	// Service is the name whose record and instances answer. Required.
	Service string `yaml:"service"`

	// StripPrefix says whether the prefix is cut from the path that the upstream
	// sees. Default true (nil).
	StripPrefix *bool `yaml:"stripPrefix"`

	// PreserveHost sends the client's Host upstream instead of the target's
	// authority. Default false.
	PreserveHost bool `yaml:"preserveHost"`

	// SensitiveHeaders replaces the global list for this route; an empty list is
	// none. Absent: the global list, which Load puts here.
	SensitiveHeaders []string `yaml:"sensitiveHeaders"`

	// TimeoutsSet are the time limits that this route sets itself. Absent ones are
	// the global ones; Load puts the sum into Timeouts.
	TimeoutsSet RouteTimeouts `yaml:"timeouts"`

	// Timeouts are the limits in force: the global ones with TimeoutsSet over them.
	Timeouts Timeouts `yaml:"-"`
}

// Strips reports whether the prefix is cut from the path that the upstream sees.
func (r Route) Strips() bool { return r.StripPrefix == nil || *r.StripPrefix }

// Timeouts are time limits. Zero means no limit, except where a field says
// otherwise.
type Timeouts struct {
	// Connect bounds one connect to an instance, TLS included. Default 1s; zero is
	// refused.
	Connect time.Duration `yaml:"connect"`

	// Response runs from the last byte of the request to the head of the answer;
	// over it the answer is 504. Default 30s. Zero: no limit.
	Response time.Duration `yaml:"response"`

	// Idle is the longest time without a byte of a body, either way. Default 60s.
	// Zero: no limit.
	Idle time.Duration `yaml:"idle"`

	// Tunnel is Idle for upgraded connections and text/event-stream. Default 1h.
	// Zero: no limit.
	Tunnel time.Duration `yaml:"tunnel"`

	// Total bounds a whole request with its answer. Default zero: no limit.
	Total time.Duration `yaml:"total"`

	// Header bounds the reading of a request's head. Default 10s; zero is refused.
	// Global only.
	Header time.Duration `yaml:"header"`

	// KeepAlive is how long a client's idle connection stays open. Default 75s;
	// zero is refused. Global only.
	KeepAlive time.Duration `yaml:"keepAlive"`
}

// RouteTimeouts are the time limits that a route may set for itself; nil is the
// global one.
type RouteTimeouts struct {
	// Connect, Response, Idle, Tunnel and Total are as in Timeouts.
	Connect  *time.Duration `yaml:"connect"`
	Response *time.Duration `yaml:"response"`
	Idle     *time.Duration `yaml:"idle"`
	Tunnel   *time.Duration `yaml:"tunnel"`
	Total    *time.Duration `yaml:"total"`
}

// over returns the global limits with those that the route sets over them.
func (r RouteTimeouts) over(global Timeouts) Timeouts {
	t := global
	for _, f := range []struct {
		to   *time.Duration
		from *time.Duration
	}{
		{&t.Connect, r.Connect},
		{&t.Response, r.Response},
		{&t.Idle, r.Idle},
		{&t.Tunnel, r.Tunnel},
		{&t.Total, r.Total},
	} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	return t
}

// Limits bound what a client may send.
type Limits struct {
	// HeaderBytes is the longest head of a request; over it the answer is 431.
	// Default 64KiB; below 1KiB is refused.
	HeaderBytes Bytes `yaml:"headerBytes"`

	// HeaderFields is the largest number of header fields; over it the answer is
	// 431. Default 100; zero is refused.
	HeaderFields int `yaml:"headerFields"`

	// BodyBytes is the longest body; over it the answer is 413. Default zero: no
	// limit.
	BodyBytes Bytes `yaml:"bodyBytes"`
}

// ClientLabels says whose routing headers are kept.
type ClientLabels string

// The values of ClientLabels.
const (
	ClientLabelsAll     ClientLabels = "all"     // every client's
	ClientLabelsNone    ClientLabels = "none"    // nobody's: they are removed
	ClientLabelsTrusted ClientLabels = "trusted" // those of peers in TrustedProxies
)

// Records says where the route records come from.
type Records struct {
	// URLs are the base URLs of specialroutes, asked in turn. Default
	// "http://127.0.0.1:8910"; an empty list is refused.
	URLs []string `yaml:"url"`

	// TokenFile holds the token that is sent, alone in the file. Default "": none.
	TokenFile string `yaml:"tokenFile"`

	// CAFile holds the certificates (PEM) that specialroutes' certificate is
	// checked against. Default "": those of the system.
	CAFile string `yaml:"caFile"`

	// File keeps the last good records on disk, for a start without specialroutes.
	// Default "": none are kept.
	File string `yaml:"file"`
}

// Registry says where the instances come from.
type Registry struct {
	// Consul is a Consul cluster.
	Consul Consul `yaml:"consul"`
}

// Consul says which cluster is asked for instances, and how.
type Consul struct {
	// Address is that of a Consul agent: "host:port", "http://host:port" or
	// "https://host:port". Default "": the instances are those of instances, which
	// must be empty otherwise.
	Address string `yaml:"address"`

	// TokenFile holds the ACL token that is sent, alone in the file; it is read for
	// each question. Default "": none.
	TokenFile string `yaml:"tokenFile"`

	// CAFile holds the certificates (PEM) that the agent's certificate is checked
	// against. Default "": those of the system.
	CAFile string `yaml:"caFile"`

	// Datacenter is the one whose instances are listed. Default "": the agent's own.
	Datacenter string `yaml:"datacenter"`

	// Stale lets any server of the cluster answer, not only its leader. Default
	// false.
	Stale bool `yaml:"stale"`

	// MaxStale is how long ago a server may have heard from the leader; a staler
	// answer is asked of the leader again. Default 10s; zero is refused.
	MaxStale time.Duration `yaml:"maxStale"`

	// RequireServiceCheck leaves out instances that have no check of their own, as
	// between the registration of a service and that of its check. Default false: the
	// node's checks are enough.
	RequireServiceCheck bool `yaml:"requireServiceCheck"`
}

// Registration says how this gateway is announced in Consul, for those who look for
// it there.
type Registration struct {
	// Agent is the Consul agent to register at: "host:port", "http://host:port" or
	// "https://host:port"; CONSUL_HTTP_TOKEN, CONSUL_CACERT and the like say what it
	// leaves open. Default "": this gateway does not register.
	Agent string `yaml:"agent"`

	// Service is the name in Consul. Default "gatewayservice".
	Service string `yaml:"service"`

	// ID is unique on the agent. Default: service and id, joined by "-".
	ID string `yaml:"id"`

	// Address is the host that others, the agent among them, reach this gateway at.
	// Default "": the one of listen, or of the agent's node. The agent asks the admin
	// port for /readyz.
	Address string `yaml:"address"`

	// Labels are told with it, as version=1.0.0. Default: none.
	Labels []string `yaml:"labels"`
}

// Instance is one running copy of a service in the static registry.
type Instance struct {
	// ID names the instance, unique in its service. Default: the address.
	ID string `yaml:"id"`

	// Address is "host:port". Required.
	Address string `yaml:"address"`

	// Labels are the labels that the instance carries. Default: none.
	Labels map[string]string `yaml:"labels"`
}

// Upstream tunes the connections to instances and endpoints.
type Upstream struct {
	// IdleTimeout is how long an idle upstream connection is kept. It belongs below
	// the upstreams' own keep-alive time. Default 30s; zero is refused.
	IdleTimeout time.Duration `yaml:"idleTimeout"`

	// MaxIdlePerTarget is the number of idle connections kept for one target.
	// Default 256; zero is refused.
	MaxIdlePerTarget int `yaml:"maxIdlePerTarget"`

	// CAFile holds certificates (PEM) that upstreams' certificates may be signed by,
	// beside those that the system trusts. It is read anew when it changes, for new
	// connections; while it cannot be used, what it said stays in force. Default "": those
	// of the system alone.
	CAFile string `yaml:"caFile"`

	// AllowLinkLocal permits endpoints with link-local and metadata addresses.
	// Default false.
	AllowLinkLocal bool `yaml:"allowLinkLocal"`
}

// Drain says how the gateway leaves after SIGTERM.
type Drain struct {
	// Delay is how long connections are still accepted while /readyz says 503, so
	// that a balancer in front sees it. Default 5s. Zero: none.
	Delay time.Duration `yaml:"delay"`

	// Limit is how long requests in flight may take after that; over it they are
	// cut and the exit code is 1. Default 30s. Zero: all are cut at once.
	Limit time.Duration `yaml:"limit"`
}

// Log says what is logged: events to standard error, one line per request to
// standard output.
type Log struct {
	// Level is the least level of the events that are logged: "debug", "info",
	// "warn" or "error". Default "info".
	Level slog.Level `yaml:"level"`

	// Access says whether requests are logged. Default true.
	Access bool `yaml:"access"`
}

// Default returns the settings of a gateway whose file says nothing; ID is left
// empty, for Load fills in the host name. It lacks routes, so it is not valid
// yet.
func Default() Config {
	return Config{
		Listen: ":5555",
		Admin:  "127.0.0.1:5556",
		Loop:   true,
		Timeouts: Timeouts{
			Connect:   time.Second,
			Response:  30 * time.Second,
			Idle:      60 * time.Second,
			Tunnel:    time.Hour,
			Header:    10 * time.Second,
			KeepAlive: 75 * time.Second,
		},
		Limits:       Limits{HeaderBytes: 64 << 10, HeaderFields: 100},
		ExposeRoute:  true,
		ClientLabels: ClientLabelsAll,
		Records:      Records{URLs: []string{"http://127.0.0.1:8910"}},
		Registry:     Registry{Consul: Consul{MaxStale: 10 * time.Second}},
		Registration: Registration{Service: "gatewayservice"},
		Upstream:     Upstream{IdleTimeout: 30 * time.Second, MaxIdlePerTarget: 256},
		Drain:        Drain{Delay: 5 * time.Second, Limit: 30 * time.Second},
		Log:          Log{Level: slog.LevelInfo, Access: true},
	}
}
