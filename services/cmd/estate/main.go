// Command estate builds and starts the whole estate on this machine, writes the
// book's record if there is none, and counts the calls that OLD and NEW answer
// until it is stopped: the demo. It needs Go and nothing else.
//
//	estate       the demo
//	estate seed  write the record alone, in an estate that others run
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"specialroutes.example/services/estate"
	"specialroutes.example/services/service"
)

// stopLimit is for the processes to finish what is in flight; a second Ctrl-C
// does not wait for it.
const stopLimit = 35 * time.Second

func main() { service.Main("estate", run) }

// settings are the command's flags.
type settings struct {
	dir       string
	freePorts bool
}

func run(ctx context.Context, args, _ []string, stderr io.Writer, force <-chan os.Signal) error {
	if len(args) > 0 && args[0] == "seed" {
		return seed(ctx, args[1:], os.Stdout, stderr)
	}
	var s settings
	flags := flag.NewFlagSet("estate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.dir, "dir", ".demo", "`directory` of the programs, logs and records")
	flags.BoolVar(&s.freePorts, "free-ports", false, "take ports that are free instead of the documented ones")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return fmt.Errorf("arguments: %w", err)
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return demo(ctx, s, os.Stdout, force)
}

// demo is the whole of it, from the look at the ports to the stop.
func demo(ctx context.Context, s settings, out io.Writer, force <-chan os.Signal) error {
	if err := estate.CheckDir(s.dir); err != nil {
		return notStarted(err, "stop the other one, or take another directory: bin/estate -free-ports -dir .demo2")
	}
	if !s.freePorts {
		if err := estate.CheckPorts(); err != nil {
			return notStarted(err, "stop what uses it, or take other ports: bin/estate -free-ports")
		}
	}
	fmt.Fprintln(out, "Building the programs …")
	bin, err := estate.Build(ctx, filepath.Join(s.dir, "bin"))
	if err != nil {
		return stopped(ctx, err)
	}
	e, err := estate.Start(ctx, estate.Options{
		Dir: s.dir, Bin: bin, Instances: tours(), FixedPorts: !s.freePorts, Output: out,
	})
	if err != nil {
		return stopped(ctx, err)
	}
	err = watch(ctx, e, out)
	fmt.Fprintln(out, "\nStopping …")
	return errors.Join(stopped(ctx, err), stop(ctx, e, force))
}

// notStarted adds what to do. The commands in it work as they stand after `make demo`, to
// which no flag can be given.
func notStarted(err error, advice string) error {
	return fmt.Errorf("%w\nnothing was started; %s", err, advice)
}

// stopped drops the errors that only say that the user has stopped us.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// watch writes the record, tells what to try, and counts until ctx ends or the
// gateway does: without it there is nothing to see. Of any other process that is gone
// count tells, and the others go on.
func watch(ctx context.Context, e *estate.Estate, out io.Writer) error {
	if err := ensureRecord(ctx, e.SpecialRoutesURL(), local(e.NewURL()), out); err != nil {
		return err
	}
	tell(out, e)
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	gone := make(chan *estate.Process, len(e.Processes()))
	for _, p := range e.Processes() {
		watching.Go(func() {
			select {
			case <-p.Exited():
				if p.Name() == estate.Gateway {
					cancel(fmt.Errorf("%s is gone, and the demo ends with it; see %s", p.Name(), p.LogPath()))
					return
				}
				gone <- p
			case <-ctx.Done():
			}
		})
	}
	err := count(ctx, e, gone, out)
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.Canceled) {
		return context.Cause(ctx)
	}
	return err
}

// stop stops the estate, at once when a second signal comes.
func stop(ctx context.Context, e *estate.Estate, force <-chan os.Signal) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	go func() { // ends with ctx
		select {
		case <-force:
			cancel()
		case <-ctx.Done():
		}
	}()
	return e.Stop(ctx)
}
