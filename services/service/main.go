package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// forceGrace is what the program has after a second signal to close its ports and
// write its last line.
const forceGrace = time.Second

// sayGrace is what the last word of a forced end may take.
const sayGrace = 100 * time.Millisecond

// Main is the whole of a program's main function. The context of run ends with
// the first SIGINT, SIGTERM or SIGHUP, which says that the terminal is gone; the
// second one is sent on force (for Options.Force), and ends the process in any
// case a second later. An error of run is printed and makes the exit code 1, or that
// of an ExitError. What run writes to stderr never blocks it, whoever reads standard
// error: lines wait in a buffer, are dropped and counted when it is full, and have a
// second at the end.
func Main(name string, run func(ctx context.Context, args, environ []string, stderr io.Writer, force <-chan os.Signal) error) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	force := make(chan os.Signal, 1)
	stderr := newOutput(os.Stderr, name, mostWaiting)
	var ended atomic.Bool
	go func() { // lives as long as the process
		<-signals
		cancel()
		force <- <-signals
		time.Sleep(forceGrace)
		if !ended.Load() {
			fmt.Fprintln(stderr, name+": ended by a second signal")
			stderr.close(sayGrace)
			os.Exit(1)
		}
	}()
	err := run(ctx, os.Args[1:], os.Environ(), stderr, force)
	ended.Store(true)
	if err != nil {
		// An error may begin with the name already, where a package has the same one.
		fmt.Fprintln(stderr, name+":", strings.TrimPrefix(err.Error(), name+": "))
	}
	stderr.close(flushLimit)
	if err != nil {
		os.Exit(exitCode(err))
	}
}

// ExitError is an error that comes with the exit code of its process.
type ExitError struct {
	Code int // from 1
	Err  error
}

// Error returns the text of Err.
func (e *ExitError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }

func exitCode(err error) int {
	var e *ExitError
	if errors.As(err, &e) {
		return e.Code
	}
	return 1
}
