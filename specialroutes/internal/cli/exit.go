package cli

import (
	"errors"

	"specialroutes.example/services/service"
)

// The exit codes that a script can branch on. docs/command-line.md tells users of
// them; a test holds the two together.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitRefused     = 4
	exitConflict    = 5
	exitUnavailable = 6
	exitNotApplied  = 7
)

// ExitCodes returns what each exit code means, by its number.
func ExitCodes() []string {
	return []string{
		exitOK:          "done",
		exitFailed:      "failed: a fault of the server, a file that cannot be read, an answer that cannot be understood, an interrupt",
		exitUsage:       "the command line is wrong; nothing was sent",
		exitNotFound:    "there is no record of that service, or nothing is said about the labels of that instance",
		exitRefused:     "refused: the record or the request is invalid, or the token does not allow it; asking again will not help",
		exitConflict:    "what is stored is not in the state that was asked for: `--if-match`, `--if-none-match`, or it cannot be used",
		exitUnavailable: "specialroutes or its database cannot be reached, or something else answers in its place; asking again may help",
		exitNotApplied:  "written, but with `--wait` not in force on every gateway",
	}
}

// usage is a mistake in the command line.
func usage(err error) error { return &service.ExitError{Code: exitUsage, Err: err} }

// Usage marks a mistake in the command line, so that it has the exit code of one.
// An error that has an exit code keeps it; nil stays nil.
func Usage(err error) error {
	var e *service.ExitError
	if err == nil || errors.As(err, &e) {
		return err
	}
	return usage(err)
}

func unavailable(err error) error { return &service.ExitError{Code: exitUnavailable, Err: err} }
