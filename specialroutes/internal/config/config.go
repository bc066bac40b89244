// Package config reads the settings of specialroutes. Load is a pure function of
// flags and environment: it opens no file and asks nobody, so a test states a
// case in one line. Flags win over the environment, the environment over the
// defaults; an empty variable is an absent one.
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"specialroutes.example/services/registration"
)

// Config is everything that can be set. There is no reloading: a change is a
// restart, except that the token file and the certificates are read anew when
// they change.
type Config struct {
	// Listen is the address of the REST port, host:port. Default 127.0.0.1:8910,
	// which nobody else reaches; port 0 takes a free one.
	Listen string

	// DatabaseURL is where the records are: postgres://… or sqlite:///path. Default
	// (zero) is the SQLite file specialroutes.db in the working directory. It may
	// hold a password and is never logged.
	DatabaseURL string

	// NoMigrate leaves the schema alone at the start; `specialroutes migrate` does it
	// then. Default false.
	NoMigrate bool

	// TokensFile names the file of tokens. Default (zero) is none: reads are open
	// and writes are refused.
	TokensFile string

	// InsecureAdmin lets everybody who reaches the port write. For a demo. It
	// excludes TokensFile. Default false.
	InsecureAdmin bool

	// AllowLinkLocal lets records have endpoints with link-local and metadata
	// addresses, which whoever may write records could read through a gateway. A
	// gateway has a setting of its own. Default false.
	AllowLinkLocal bool

	// Hosts are the names in a Host header that are answered, without port; "*" is
	// any. Default (nil): any when there are tokens, because a page in a browser has
	// none to send; otherwise addresses, and names without a dot, so that no page can
	// reach the port by pointing its own name here.
	Hosts []string

	// HistoryKeep is the age that an entry of history reaches before it is removed;
	// the newest ones stay whatever their age. Default (zero) is for ever.
	HistoryKeep time.Duration

	// TLSCert and TLSKey name PEM files. Both or neither. Default (zero) is plain
	// HTTP.
	TLSCert, TLSKey string

	// Registration is what Consul is told. Default: without the address of an agent
	// nothing is.
	Registration registration.Options

	// LogLevel is the least level that is logged. Default info.
	LogLevel slog.Level

	// DrainDelay is how long connections are still accepted after SIGTERM, with
	// /readyz at 503. Default 5 s; zero is none.
	DrainDelay time.Duration

	// DrainLimit is how long requests may take to finish after that. Default 30 s;
	// it is more than zero.
	DrainLimit time.Duration
}

// setting is one line of the table: a field, and its flag and variable.
type setting struct {
	flag, env, standard, usage string
	boolean                    bool
	set                        func(*Config, string) error
}

func settings() []setting {
	return []setting{
		{flag: "listen", env: "SPECIALROUTES_LISTEN", standard: "127.0.0.1:8910",
			usage: "`address` of the REST port", set: setListen},
		{flag: "database-url", env: "DATABASE_URL", standard: "",
			usage: "postgres://… or sqlite:///path (default the file specialroutes.db); a password belongs into the environment, where other users do not see it",
			set:   func(c *Config, s string) error { c.DatabaseURL = s; return checkDatabaseURL(s) }},
		{flag: "no-migrate", env: "SPECIALROUTES_NO_MIGRATE", standard: "false", boolean: true,
			usage: "leave the schema alone at the start", set: setBool(func(c *Config) *bool { return &c.NoMigrate })},
		{flag: "tokens-file", env: "SPECIALROUTES_TOKENS_FILE", standard: "",
			usage: "`file` of tokens; without one reads are open and writes refused",
			set:   func(c *Config, s string) error { c.TokensFile = s; return nil }},
		{flag: "insecure-admin", env: "SPECIALROUTES_INSECURE_ADMIN", standard: "false", boolean: true,
			usage: "let everybody who reaches the port write", set: setBool(func(c *Config) *bool { return &c.InsecureAdmin })},
		{flag: "allow-link-local", env: "SPECIALROUTES_ALLOW_LINK_LOCAL", standard: "false", boolean: true,
			usage: "let records have endpoints with link-local and metadata addresses", set: setBool(func(c *Config) *bool { return &c.AllowLinkLocal })},
		{flag: "hosts", env: "SPECIALROUTES_HOSTS", standard: "",
			usage: "`names` in a Host header that are answered, with commas; * is any (default: any with tokens, else addresses and names without a dot)",
			set:   setHosts},
		{flag: "history-keep", env: "SPECIALROUTES_HISTORY_KEEP", standard: "0",
			usage: "how `long` history is kept, as 8760h; 0 is for ever", set: setDuration(0, func(c *Config) *time.Duration { return &c.HistoryKeep })},
		{flag: "tls-cert", env: "SPECIALROUTES_TLS_CERT", standard: "",
			usage: "PEM `file` of the certificate chain", set: func(c *Config, s string) error { c.TLSCert = s; return nil }},
		{flag: "tls-key", env: "SPECIALROUTES_TLS_KEY", standard: "",
			usage: "PEM `file` of its key", set: func(c *Config, s string) error { c.TLSKey = s; return nil }},
		{flag: "consul", env: "CONSUL_HTTP_ADDR", standard: "",
			usage: "`address` of the Consul agent to register at; without one nobody is told",
			set:   func(c *Config, s string) error { c.Registration.Agent = s; return nil }},
		{flag: "service-name", env: "SERVICE_NAME", standard: "specialroutesservice",
			usage: "`name` in Consul", set: func(c *Config, s string) error { c.Registration.Service = s; return nil }},
		{flag: "service-id", env: "SERVICE_ID", standard: "",
			usage: "`ID` in Consul (default the name and that of the host)",
			set:   func(c *Config, s string) error { c.Registration.ID = s; return nil }},
		{flag: "service-address", env: "SERVICE_ADDRESS", standard: "",
			usage: "`host` that others reach this process at (default the one of --listen, or of the agent's node)",
			set:   func(c *Config, s string) error { c.Registration.Address = s; return nil }},
		{flag: "labels", env: "LABELS", standard: "",
			usage: "`labels` in Consul, as version=1.0.0,zone=a", set: setLabels},
		{flag: "log-level", env: "SPECIALROUTES_LOG_LEVEL", standard: "info",
			usage: "debug, info, warn or error", set: setLevel},
		{flag: "drain-delay", env: "SPECIALROUTES_DRAIN_DELAY", standard: "5s",
			usage: "how `long` to accept connections after SIGTERM", set: setDuration(0, func(c *Config) *time.Duration { return &c.DrainDelay })},
		{flag: "drain-limit", env: "SPECIALROUTES_DRAIN_LIMIT", standard: "30s",
			usage: "how `long` requests may take to finish after that", set: setDuration(1, func(c *Config) *time.Duration { return &c.DrainLimit })},
	}
}

// Bind adds the flags of all settings to flags, which Load reads them from.
func Bind(flags *pflag.FlagSet) {
	for _, s := range settings() {
		f := flags.VarPF(new(text), s.flag, "", s.usage+" ["+s.env+"]")
		f.DefValue = s.standard
		if s.boolean {
			f.NoOptDefVal = "true"
		}
	}
}

// text is a flag's value as it was written; Load reads meaning into it.
type text string

func (t *text) Set(s string) error { *t = text(s); return nil }
func (t *text) String() string     { return string(*t) }
func (t *text) Type() string       { return "" }

// Load returns the settings that flags, parsed, and environ ("NAME=value") give.
// All mistakes are reported at once, each by the name of its flag and variable,
// and without its value where that may hold a secret.
func Load(flags *pflag.FlagSet, environ []string) (Config, error) {
	var (
		c    Config
		errs []error
	)
	for _, s := range settings() {
		value, source := s.standard, "the default of --"+s.flag
		if v := lookup(environ, s.env); v != "" {
			value, source = v, s.env
		}
		if f := flags.Lookup(s.flag); f != nil && f.Changed {
			value, source = f.Value.String(), "--"+s.flag
		}
		if err := s.set(&c, value); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", source, err))
		}
	}
	errs = append(errs, c.clashes()...)
	if err := errors.Join(errs...); err != nil {
		return Config{}, err
	}
	return c, nil
}

// clashes names the settings that do not go together, and what to do.
func (c *Config) clashes() []error {
	var errs []error
	if (c.TLSCert == "") != (c.TLSKey == "") {
		errs = append(errs, errors.New("--tls-cert and --tls-key need each other: give both, or neither"))
	}
	if c.InsecureAdmin && c.TokensFile != "" {
		errs = append(errs, errors.New("--insecure-admin lets everybody write, --tokens-file only some: give one of them"))
	}
	return errs
}

// lookup returns the last value of name, as a process sees it.
func lookup(environ []string, name string) string {
	for _, e := range slices.Backward(environ) {
		if k, v, _ := strings.Cut(e, "="); k == name {
			return v
		}
	}
	return ""
}

func setListen(c *Config, s string) error {
	c.Listen = s
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return fmt.Errorf("%q is not host:port", s)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q has no port between 0 and 65535", s)
	}
	return nil
}

// checkDatabaseURL looks at the scheme alone; the store reads the rest. The value
// is not quoted, because it may hold a password.
func checkDatabaseURL(s string) error {
	for _, scheme := range []string{"postgres://", "postgresql://", "sqlite://"} {
		if strings.HasPrefix(s, scheme) {
			return nil
		}
	}
	if s == "" {
		return nil
	}
	return errors.New("want postgres://… or sqlite:///path")
}

func setHosts(c *Config, s string) error {
	for name := range strings.SplitSeq(s, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if name == "" {
			continue
		}
		if strings.ContainsAny(name, "/:@ ") && net.ParseIP(name) == nil {
			return fmt.Errorf("%q is not a name without port", name)
		}
		c.Hosts = append(c.Hosts, name)
	}
	return nil
}

func setLabels(c *Config, s string) (err error) {
	c.Registration.Labels, err = registration.ParseLabels(s)
	return err
}

func setLevel(c *Config, s string) error {
	if err := c.LogLevel.UnmarshalText([]byte(s)); err != nil {
		return fmt.Errorf("%q is not debug, info, warn or error", s)
	}
	return nil
}

func setBool(field func(*Config) *bool) func(*Config, string) error {
	return func(c *Config, s string) error {
		switch s {
		case "true":
			*field(c) = true
		case "false":
			*field(c) = false
		default:
			return fmt.Errorf("%q is neither true nor false", s)
		}
		return nil
	}
}

func setDuration(least time.Duration, field func(*Config) *time.Duration) func(*Config, string) error {
	return func(c *Config, s string) error {
		d, err := time.ParseDuration(s)
		if err != nil || d < least {
			return fmt.Errorf("%q is not a time such as 5s, of at least %v", s, least)
		}
		*field(c) = d
		return nil
	}
}
