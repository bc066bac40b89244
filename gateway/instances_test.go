package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestThatNothingIsAvailableIsToldOnceInAWhile(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	now, counted := time.Unix(1_700_000_000, 0), 0
	tell := tellPanics(func(string) { counted++ }, func() time.Time { return now }, slog.New(slog.NewTextHandler(&log, nil)))
	for range 100 {
		tell("a")
	}
	tell("b")
	now = now.Add(panicLogInterval)
	tell("a")
	if got := strings.Count(log.String(), "of=a"); counted != 102 || got != 2 || strings.Count(log.String(), "of=b") != 1 {
		t.Errorf("counted %d, told of a %d times, want 102 and 2:\n%s", counted, got, &log)
	}
	tellPanics(func(string) { counted++ }, time.Now, nil)("a")
	if counted != 103 {
		t.Error("without a log nothing is counted")
	}
}
