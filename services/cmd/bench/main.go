// Command bench measures what a request costs in the gateway beside nginx and
// HAProxy, and prints it as Markdown tables. `make bench` runs it.
//
//	bench                   the comparison
//	bench -profile FILE     the gateway alone under full load: where its time goes
//	bench -hold             start the gateway as it is measured, and stay
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"specialroutes.example/services/estate/bench"
	"specialroutes.example/services/service"
)

func main() { service.Main("bench", run) }

// settings are the command's flags.
type settings struct {
	bench.Options

	hold     bool
	backends string
	most     float64
}

func run(ctx context.Context, args, _ []string, stderr io.Writer, _ <-chan os.Signal) error {
	s := settings{Options: bench.Options{Progress: stderr}}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&s.Rounds, "rounds", 5, "`number` of turns that each has")
	flags.IntVar(&s.Seconds, "seconds", 4, "`seconds` that a turn lasts")
	flags.IntVar(&s.Connections, "connections", 64, "`number` of connections of the load")
	flags.StringVar(&s.Profile, "profile", "", "`file` for a profile of the gateway under full load, instead of the comparison")
	flags.BoolVar(&s.hold, "hold", false, "start the gateways as they are measured, tell where they are, and stay until stopped")
	flags.StringVar(&s.backends, "backends", "", "two `addresses`, OLD,NEW, that take the place of our own backends")
	flags.StringVar(&s.GatewayYAML, "gateway-yaml", "", "`settings` that are laid over the gateways' own")
	flags.Float64Var(&s.most, "max", 0, "fail above this `ratio` to the better peer; 0 never does")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return fmt.Errorf("arguments: %w", err)
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case s.Rounds < 1 || s.Seconds < 1 || s.Connections < 1:
		return errors.New("rounds, seconds and connections are at least 1")
	}
	if s.backends != "" {
		if s.Backends = strings.Split(s.backends, ","); len(s.Backends) != 2 {
			return fmt.Errorf("backends: want two addresses, not %q", s.backends)
		}
	}
	return s.do(ctx, os.Stdout)
}

// do does what the flags say.
func (s settings) do(ctx context.Context, out io.Writer) error {
	switch {
	case s.hold:
		return bench.Hold(ctx, s.Options, func(name, url string, pid int) {
			fmt.Fprintf(out, "%s: %s, process %d\n", name, url, pid)
		})
	case s.Profile != "":
		text, err := bench.Profile(ctx, s.Options)
		fmt.Fprint(out, text)
		return err
	}
	report, err := bench.Run(ctx, s.Options)
	if err != nil {
		return err
	}
	fmt.Fprint(out, report)
	if r := report.Ratio(); s.most > 0 && r > s.most {
		return fmt.Errorf("the ratio to the better peer is %.2f, above %.2f", r, s.most)
	}
	return nil
}
