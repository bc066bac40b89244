package forward

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// Calls may fail many times a second; the log tells why once in a while.
func TestTrust_TellsOnceInAWhile(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	now := time.Unix(1_700_000_000, 0)
	tr := newTrust(Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Now: func() time.Time { return now }})
	for range 100 {
		tr.tell("a:1", errors.New("it is unknown"))
	}
	tr.tell("b:1", errors.New("it is unknown"))
	now = now.Add(distrustInterval)
	tr.tell("a:1", errors.New("it is old"))
	for address, want := range map[string]int{"a:1": 2, "b:1": 1} {
		if got := strings.Count(log.String(), "address="+address); got != want {
			t.Errorf("told of %s %d times, want %d:\n%s", address, got, want, &log)
		}
	}
	if !strings.Contains(log.String(), "it is old") {
		t.Errorf("the log does not say why:\n%s", &log)
	}
}

func TestTrust_RemembersAddressesWithinABound(t *testing.T) {
	t.Parallel()
	tr := newTrust(Options{})
	for n := range 3 * distrustMost {
		tr.tell(fmt.Sprint("10.0.0.1:", n), errNotH2)
		if len(tr.told) > distrustMost {
			t.Fatalf("%d addresses are remembered", len(tr.told))
		}
	}
}
