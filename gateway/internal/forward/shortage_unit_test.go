package forward

import (
	"bytes"
	"log/slog"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

func TestTheLogTellsOfAShortageOnceInAWhile(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	now := time.Unix(1000, 0)
	g := &Gateway{options: Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Now: func() time.Time { return now }}}
	err := &connectError{&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}}
	for _, tt := range []struct {
		after time.Duration
		want  int // lines since the start
	}{{0, 1}, {time.Millisecond, 1}, {shortageInterval, 2}, {shortageInterval / 2, 2}, {shortageInterval, 3}} {
		now = now.Add(tt.after)
		g.tellShortage(err)
		if got := bytes.Count(log.Bytes(), []byte("out of descriptors")); got != tt.want {
			t.Errorf("%v later: %d lines, want %d", tt.after, got, tt.want)
		}
	}
}
