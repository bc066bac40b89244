package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"time"
)

// seedInterval is how often specialroutes is asked whether it is ready.
const seedInterval = 200 * time.Millisecond

// seed writes the book's record into an estate that others run, such as
// containers, and ends. It waits until specialroutes is ready, and leaves a record
// that is there as it is.
func seed(ctx context.Context, args []string, out, stderr io.Writer) error {
	flags := flag.NewFlagSet("estate seed", flag.ContinueOnError)
	flags.SetOutput(stderr)
	specialRoutes := flags.String("specialroutes", "http://localhost:8910", "base `URL` of specialroutes")
	endpoint := flags.String("endpoint", "http://localhost:8087", "`URL` of the new organization service, as the gateway reaches it")
	wait := flags.Duration("wait", time.Minute, "the `time` that specialroutes has to become ready")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return fmt.Errorf("arguments: %w", err)
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	ctx, cancel := context.WithTimeout(ctx, *wait)
	defer cancel()
	if err := awaitReady(ctx, *specialRoutes); err != nil {
		return fmt.Errorf("specialroutes is not ready: %w", err)
	}
	return ensureRecord(ctx, *specialRoutes, *endpoint, out)
}

// awaitReady returns when specialroutes is ready, or with the last reason why not
// when ctx ends.
func awaitReady(ctx context.Context, specialRoutes string) error {
	tick := time.NewTicker(seedInterval)
	defer tick.Stop()
	for {
		status, body, err := send(ctx, http.MethodGet, specialRoutes+"/readyz", nil)
		if err == nil && status == http.StatusOK {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("status %d: %s", status, body)
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}
