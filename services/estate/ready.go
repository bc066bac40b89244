package estate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

const (
	readyLimit    = 30 * time.Second
	readyInterval = 20 * time.Millisecond

	// tailLines and tailBytes bound what an error shows of a log.
	tailLines = 20
	tailBytes = 16 << 10
)

// errExited says that a process ended before it was ready.
var errExited = errors.New("it ended")

// StartError is a process that did not become ready.
type StartError struct {
	Process string
	Err     error
	Log     string // the last lines that it wrote
}

func (e *StartError) Error() string {
	text := fmt.Sprintf("estate: %s did not start: %v", e.Process, e.Err)
	if e.Log != "" {
		text += "; its log ends:\n" + e.Log
	}
	return text
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// awaitReady returns when the URL answers 200, or with an error when that did not
// happen in time, the process is gone, or ctx ends.
func awaitReady(ctx context.Context, url string, exited <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true}
	tick := time.NewTicker(readyInterval)
	defer tick.Stop()
	for {
		err := askReady(ctx, transport, url)
		if err == nil {
			return nil
		}
		select {
		case <-exited:
			return errExited
		case <-ctx.Done():
			return fmt.Errorf("%w; at last: %w", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

func askReady(ctx context.Context, transport http.RoundTripper, url string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, res.Status)
	}
	return nil
}

// tail returns the last lines of a file, from an offset on.
func tail(path string, from int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	if _, err := f.Seek(max(from, end-tailBytes), io.SeekStart); err != nil {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(f, tailBytes))
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
