// Command gateway is the data plane: every call goes through it. It finds the
// service, looks up the record, decides which variant gets the call and which
// instance of it, and forwards.
//
//	gateway [serve]      serve
//	gateway check        say whether the settings can be used, and end
//	gateway healthcheck  ask the process that serves whether it lives
//	gateway version      say what this binary is
//
// docs/configuration.md lists the settings.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/services/service"
)

func main() {
	// Whoever reads the access log may go away. That must cost lines, not the
	// process: written to, a broken pipe on standard output would end it.
	signal.Ignore(syscall.SIGPIPE)
	service.Main("gateway", func(ctx context.Context, args, environ []string, stderr io.Writer, force <-chan os.Signal) error {
		p := program{environ: environ, stdout: os.Stdout, stderr: stderr, force: force}
		return p.run(ctx, args)
	})
}

// program is what is handed to the whole of it.
type program struct {
	environ        []string
	stdout, stderr io.Writer
	force          <-chan os.Signal

	// onListen is told the address of each port; nil is fine.
	onListen func(name string, addr net.Addr)
}

// run does what the arguments say, and returns when that is done or ctx has ended.
func (p program) run(ctx context.Context, args []string) error {
	command := "serve"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		command, args = args[0], args[1:]
	}
	switch command {
	case "serve", "check":
		c, err := config.Load(args, p.environ)
		if errors.Is(err, config.ErrHelp) {
			config.Usage(p.stdout)
			return nil
		}
		if err != nil {
			return err
		}
		if command == "check" {
			return p.check(c)
		}
		return p.serve(ctx, c)
	case "healthcheck":
		return service.Healthcheck(ctx, config.AdminAddress(args, p.environ), false)
	case "version":
		version, revision := build()
		fmt.Fprintln(p.stdout, "gateway", version, revision, runtime.Version())
		return nil
	}
	return fmt.Errorf("there is no command %q; there are serve, check, healthcheck and version", command)
}

// check says what valid settings amount to. Load has refused all others.
func (p program) check(c *config.Config) error {
	e, err := newEngine(c, p.stdout, nil)
	if err != nil {
		return err
	}
	defer e.gateway.Close()
	if _, err := dataTLS(c, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	instances := fmt.Sprintf("instances of %d services", len(c.Instances))
	if address := c.Registry.Consul.Address; address != "" {
		instances = "instances from Consul at " + address
	}
	_, err = fmt.Fprintf(p.stdout, "the settings can be used: %d routes, %s, records from %s\n",
		len(c.Routes), instances, strings.Join(c.Records.URLs, ", "))
	return err
}

// build returns what the toolchain wrote into the binary: the module's version and
// the revision it was built from.
func build() (version, revision string) {
	version, revision = "unknown", "unknown"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, revision
	}
	if info.Main.Version != "" {
		version = strings.Trim(info.Main.Version, "()") // of "(devel)"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			revision = s.Value
		}
	}
	return version, revision
}
