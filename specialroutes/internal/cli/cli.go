// Package cli is the command line of specialroutes for people and scripts: commands
// that read and change route records and labels of instances through the REST
// interface of a process that serves, as openapi.yaml has it, and one that signs
// overrides. A command asks, says
// what the answer was, and ends with an exit code that tells how it went.
package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Program is what the commands work with.
type Program struct {
	Stdin   io.Reader // of commands that read a record
	Stdout  io.Writer // what was asked for
	Stderr  io.Writer // warnings
	Environ []string  // "NAME=value"
	Now     func() time.Time
}

// Commands returns the commands routes, labels, gateways and override. Their errors have an
// exit code (service.ExitError) where it is another one than 1.
func (p *Program) Commands() []*cobra.Command {
	return []*cobra.Command{p.routesCommand(), p.labelsCommand(), p.gatewaysCommand(), p.overrideCommand()}
}

// command makes a command that takes from least to most arguments.
func (p *Program) command(use, short string, least, most int, run func(*cobra.Command, []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, DisableFlagsInUseLine: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if slices.Contains(args, "") {
				return usage(errors.New("an argument is empty"))
			}
			if len(args) < least || len(args) > most {
				return usage(fmt.Errorf("want: %s", cmd.UseLine()))
			}
			return nil
		},
		RunE: run,
	}
}

// group makes a command that has commands below it and does nothing itself.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{
		Use: use, Short: short, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			var names []string
			for _, c := range commands {
				names = append(names, c.Name())
			}
			what := "a command is missing"
			if len(args) > 0 {
				what = fmt.Sprintf("there is no command %q", args[0])
			}
			return usage(fmt.Errorf("%s: %s; want one of %s", cmd.Name(), what, strings.Join(names, ", ")))
		},
	}
	g.AddCommand(commands...)
	return g
}

// connection is how the server is reached.
type connection struct {
	server, tokenFile, caFile string
	timeout                   time.Duration
}

const (
	stdServer  = "http://127.0.0.1:8910"
	stdTimeout = 30 * time.Second
)

// bind adds the connection's flags, whose defaults come from the environment.
func (c *connection) bind(flags *pflag.FlagSet, environ []string) {
	from := func(to *string, flag, variable, standard, usage string) {
		value := standard
		if v := lookup(environ, variable); v != "" {
			value = v
		}
		flags.StringVar(to, flag, value, usage+" ["+variable+"]")
		flags.Lookup(flag).DefValue = standard
	}
	from(&c.server, "server", "SPECIALROUTES_URL", stdServer, "`URL` of specialroutes")
	from(&c.tokenFile, "token-file", "SPECIALROUTES_TOKEN_FILE", "", "`file` that holds the secret of a token, alone")
	from(&c.caFile, "ca-file", "SPECIALROUTES_CA_FILE", "", "PEM `file` of the authorities to trust instead of the system's")
	flags.DurationVar(&c.timeout, "timeout", stdTimeout, "how `long` the server may take to answer")
}

// open returns a client, and warns of a token that others could read.
func (p *Program) open(c *connection) (*client, error) {
	if c.timeout <= 0 {
		return nil, usage(errors.New("--timeout: want more than 0s"))
	}
	cl, err := newClient(c)
	if err != nil {
		return nil, err
	}
	if cl.token != "" && strings.HasPrefix(cl.base, "http:") && !isLoopback(cl.base) {
		p.warn("the token is sent without TLS to " + cl.base)
	}
	return cl, nil
}

func (p *Program) warn(text string) { fmt.Fprintln(p.Stderr, "warning:", printable(text)) }

// lookup returns the last value of a variable, "" when there is none.
func lookup(environ []string, name string) string {
	value := ""
	for _, e := range environ {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}
