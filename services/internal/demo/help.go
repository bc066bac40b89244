package demo

import (
	"fmt"
	"slices"
	"text/tabwriter"
)

// Variable is a variable of the environment, as --help tells of it.
type Variable struct{ Name, Default, Means string }

// variables are those of every demo service.
func (s Settings) variables() []Variable {
	return []Variable{
		{"LISTEN", s.Listen, "address to serve on, host:port"},
		{"INSTANCE", s.Instance, "the name of this copy, on each answer as X-Served-By"},
		{"LANE_HEADERS", laneHeaders, "headers that are passed on to called services beside the estate's own"},
		{"DRAIN_DELAY", s.Drain.Delay.String(), "how long connections are accepted after SIGTERM"},
		{"DRAIN_LIMIT", s.Drain.Limit.String(), "how long requests may take to finish after that"},
		{"LOG_LEVEL", "info", "debug, info, warn or error"},
		{"CONSUL_HTTP_ADDR", "", "the Consul agent to register at; without it nobody is told"},
		{"SERVICE_NAME", s.Registration.Service, "the name in Consul"},
		{"SERVICE_ID", s.Registration.ID, "the ID in Consul"},
		{"SERVICE_ADDRESS", "", "the host that others reach this copy at, where it is not the one of LISTEN"},
		{"LABELS", "", "what instances are chosen by, as version=1.0.0,zone=a"},
	}
}

// help lists the variables, each with the value that it has.
func (p Process) help() {
	fmt.Fprintf(p.Stdout, "Usage: %s [healthcheck]\n\nIt serves until it is stopped; healthcheck asks the process that serves.\n"+
		"It is set by variables of the environment (their value now):\n\n", p.Settings.Name)
	w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	for _, v := range slices.Concat(p.Variables, p.Settings.variables()) {
		fmt.Fprintf(w, "  %s\t%s\t(%s)\n", v.Name, v.Means, v.Default)
	}
	_ = w.Flush() // whoever has asked has gone
}
