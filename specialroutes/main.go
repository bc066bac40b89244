// Command specialroutes is the control plane: a REST service that keeps one route
// record per service, and the feed by which gateways follow them.
//
//	specialroutes [serve]      serve
//	specialroutes migrate      bring the database's schema up to date
//	specialroutes healthcheck  ask the process that serves whether it lives
//	specialroutes routes       read and change records by way of a process that serves
//	specialroutes labels       read and change labels of instances, likewise
//	specialroutes gateways     show which gateways follow it
//	specialroutes override     sign a tester's wish for a variant
//
// docs/command-line.md tells of the last four.
package main

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"specialroutes.example/services/service"
	"specialroutes.example/specialroutes/internal/cli"
	"specialroutes.example/specialroutes/internal/config"
)

func main() { service.Main("specialroutes", run) }

// run is the whole program: its arguments and environment are handed in, and it
// returns when its work is done or ctx has ended.
func run(ctx context.Context, args, environ []string, stderr io.Writer, force <-chan os.Signal) error {
	p := &program{environ: environ, stdin: os.Stdin, stdout: os.Stdout, stderr: stderr, force: force}
	root := p.command()
	root.SetArgs(args)
	root.SetOut(p.stdout)
	root.SetErr(stderr)
	return root.ExecuteContext(ctx)
}

// program is what all commands share.
type program struct {
	environ []string
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	force   <-chan os.Signal

	// onListen is told the address that is served; nil is fine.
	onListen func(address string)
}

func (p *program) command() *cobra.Command {
	root := p.sub("specialroutes", "Keep route records and let gateways follow them", p.serve)
	root.SilenceUsage = true
	root.SilenceErrors = true // service.Main prints what run returns
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return cli.Usage(err) })
	root.AddCommand(
		p.sub("serve", "Serve; what happens without a command too", p.serve),
		p.sub("migrate", "Bring the database's schema up to date and end", p.migrate),
		p.sub("healthcheck", "Ask the process that serves on --listen whether it lives", p.healthcheck),
	)
	line := &cli.Program{Stdin: p.stdin, Stdout: p.stdout, Stderr: p.stderr, Environ: p.environ, Now: time.Now}
	root.AddCommand(line.Commands()...)
	return root
}

// sub makes a command of the process that serves: it takes no arguments and is given
// the settings, whose flags may stand before its name as well.
func (p *program) sub(name, short string, do func(context.Context, config.Config) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: name, Short: short,
		Args: func(cmd *cobra.Command, args []string) error { return cli.Usage(cobra.NoArgs(cmd, args)) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(cmd.Flags(), p.environ)
			if err != nil {
				return err
			}
			return do(cmd.Context(), c)
		},
	}
	config.Bind(cmd.Flags())
	return cmd
}

func (p *program) healthcheck(ctx context.Context, c config.Config) error {
	return service.Healthcheck(ctx, c.Listen, c.TLSCert != "")
}
