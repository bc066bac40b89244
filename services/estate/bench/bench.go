package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Options is what Run measures, and for how long.
type Options struct {
	// Rounds is how often each contender has its turn. At least 1.
	Rounds int

	// Seconds is how long one turn lasts. At least 1.
	Seconds int

	// Connections is the number of connections of the load. At least 1.
	Connections int

	// Profile is the file that a profile of the gateway under full load is written to,
	// instead of a comparison; "" compares.
	Profile string

	// Alone leaves out nginx and HAProxy as peers.
	Alone bool

	// Backends are two addresses, host:port, that take the place of our own backends:
	// the one of the default and the one of the alternate. Empty: our own.
	Backends []string

	// GatewayYAML is laid over the configuration of the gateways.
	GatewayYAML string

	// Progress is told what is being measured, a line each. Nil is nobody.
	Progress io.Writer
}

// duration is how long one turn lasts.
func (o Options) duration() time.Duration { return time.Duration(o.Seconds) * time.Second }

func (o Options) tell(format string, args ...any) {
	if o.Progress != nil {
		fmt.Fprintf(o.Progress, format+"\n", args...)
	}
}

// Run measures and returns what it found. The error is ErrMachine or a *ToolsError
// if it cannot be measured here.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	if err := Check(); err != nil {
		return nil, err
	}
	r := &Report{options: o, machine: describe(ctx)}
	o.tell("deciding by one of many records …")
	if r.decisions, err = decisions(ctx); err != nil {
		return nil, err
	}
	o.tell("building and starting everything …")
	s, err := start(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	r.machine.loadBefore = loadAverage()
	for _, step := range []struct {
		what    string
		measure func(context.Context, *setup, Options) error
	}{
		{"small answers, as fast as they come", r.measureSmall},
		{"answers of 1 MiB", r.measureLarge},
		{"the time to an answer at half of nginx's rate", r.measurePaced},
		{"memory of idle connections", r.measureIdle},
	} {
		o.tell("%s …", step.what)
		if err := step.measure(ctx, s, o); err != nil {
			return nil, err
		}
	}
	r.machine.loadAfter = loadAverage()
	return r, nil
}

// Hold starts what Run would measure, hands the addresses of the gateways and their
// process IDs to ready, and stays until ctx ends.
func Hold(ctx context.Context, o Options, ready func(name, url string, pid int)) (err error) {
	if err := Check(); err != nil {
		return err
	}
	s, err := start(ctx, o)
	if err != nil {
		return err
	}
	for _, c := range s.contenders {
		ready(c.name, c.url(""), c.pid())
	}
	<-ctx.Done()
	return s.stop()
}

// Profile puts the gateway alone under full load, writes a profile of its processor
// time to o.Profile, and returns its most expensive functions as text.
func Profile(ctx context.Context, o Options) (string, error) {
	if err := Check(); err != nil {
		return "", err
	}
	profile, err := filepath.Abs(o.Profile)
	if err != nil {
		return "", fmt.Errorf("bench: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(profile), 0o750); err != nil {
		return "", fmt.Errorf("bench: %w", err)
	}
	o.Alone, o.Profile = true, profile
	s, err := start(ctx, o)
	if err != nil {
		return "", err
	}
	c := s.contenders[0]
	got, err := fullLoad(ctx, c.url(smallPath), c.pid(), o.duration(), o.Connections)
	// The profile is written when the gateway ends.
	if err := errors.Join(err, s.stop()); err != nil {
		return "", err
	}
	text, err := printProfile(ctx, o.Profile, got.cpu)
	return fmt.Sprintf("%.1f µs of processor time a request, %.0f requests/s, while profiled\n\n%s", got.cpu, got.rate, text), err
}
