// Package demo is what the demo services share: their settings, their process,
// and resources of JSON documents kept in memory. What a service is about is in
// its own package.
package demo

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"specialroutes.example/services/registration"
	"specialroutes.example/services/service"
)

// Settings are the settings of every demo service. Each comes from one variable of
// the environment.
type Settings struct {
	// Name is the service's name in the registry. No variable.
	Name string

	// Listen (LISTEN) is the address to serve on, host:port. It is the whole of
	// the surface: the services have no authentication of their own, so by default
	// they listen on the loopback.
	Listen string

	// Instance (INSTANCE) names this copy, on each answer as X-Served-By.
	Instance string

	// LaneHeaders (LANE_HEADERS, comma-separated, default "version,app,zone") are
	// passed on to called services beside the estate's own headers: those that the
	// label rules of records name.
	LaneHeaders []string

	// Registration (CONSUL_HTTP_ADDR, SERVICE_NAME, SERVICE_ID, SERVICE_ADDRESS,
	// LABELS) is what Consul is told. Without an agent's address nothing is.
	Registration registration.Options

	// Drain (DRAIN_DELAY, DRAIN_LIMIT) are the waits of a stop.
	Drain service.DrainTimes

	// LogLevel (LOG_LEVEL) is debug, info, warn or error. A request is one line at
	// info. Default info.
	LogLevel slog.Level
}

// laneHeaders are the routing headers that the systems of labels are used with.
const laneHeaders = "version,app,zone"

// Load returns the defaults with what the environment sets over them. The error
// names the variable.
func Load(env Environment, defaults Settings) (Settings, error) {
	s := defaults
	s.Listen = env.Text("LISTEN", s.Listen)
	s.Instance = env.Text("INSTANCE", s.Instance)
	s.LaneHeaders = nil
	for name := range strings.SplitSeq(env.Text("LANE_HEADERS", laneHeaders), ",") {
		if name = strings.TrimSpace(name); name != "" {
			s.LaneHeaders = append(s.LaneHeaders, name)
		}
	}
	if _, _, err := net.SplitHostPort(s.Listen); err != nil {
		return Settings{}, fmt.Errorf("LISTEN: %q is not host:port", s.Listen)
	}
	var err error
	if s.Registration, err = loadRegistration(env, s); err != nil {
		return Settings{}, err
	}
	if s.Drain.Delay, err = env.Duration("DRAIN_DELAY", s.Drain.Delay); err != nil {
		return Settings{}, err
	}
	if s.Drain.Limit, err = env.Duration("DRAIN_LIMIT", s.Drain.Limit); err != nil {
		return Settings{}, err
	}
	if level := env.Text("LOG_LEVEL", ""); level != "" {
		if err := s.LogLevel.UnmarshalText([]byte(level)); err != nil {
			return Settings{}, fmt.Errorf("LOG_LEVEL: %q is not debug, info, warn or error", level)
		}
	}
	return s, nil
}

// loadRegistration reads what Consul is told. An instance is ready as soon as it
// listens.
func loadRegistration(env Environment, s Settings) (registration.Options, error) {
	o := registration.Options{
		Agent:   env.Text("CONSUL_HTTP_ADDR", ""),
		Service: env.Text("SERVICE_NAME", s.Name),
		ID:      env.Text("SERVICE_ID", s.Instance),
		Address: env.Text("SERVICE_ADDRESS", ""),
		Passing: true,
	}
	var err error
	if o.Labels, err = registration.ParseLabels(env.Text("LABELS", "")); err != nil {
		return o, fmt.Errorf("LABELS: %w", err)
	}
	return o, nil
}

// Environment is a process's environment, "NAME=value" each, as os.Environ gives
// it. A variable that is set to nothing counts as not set.
type Environment []string

// Text returns the value of a variable, or the default.
func (e Environment) Text(name, byDefault string) string {
	value := byDefault
	for _, line := range e {
		if v, found := strings.CutPrefix(line, name+"="); found && v != "" {
			value = v // the last one holds, as in exec.Cmd
		}
	}
	return value
}

// Duration returns the value of a variable that is a length of time, as "2s" or
// "500ms", or the default.
func (e Environment) Duration(name string, byDefault time.Duration) (time.Duration, error) {
	text := e.Text(name, "")
	if text == "" {
		return byDefault, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s: %q is not a length of time, as 2s or 500ms", name, text)
	}
	return d, nil
}
