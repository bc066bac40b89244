package accesslog

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// mostWaiting is how many bytes of lines may wait; lines over it are dropped. It
	// is a power of two.
	mostWaiting = 4 << 20

	// writeSize is the largest piece that is written at once. It is well above the
	// longest line.
	writeSize = 64 << 10

	// gather is how long lines are gathered before they are written. One write for
	// many lines costs a busy gateway less than one each.
	gather = 10 * time.Millisecond

	// lastChance is what the output has after the end to take what waits.
	lastChance = 2 * time.Second

	// reportEvery bounds how often dropped lines are told of in the event log.
	reportEvery = 10 * time.Second
)

// Writer writes entries as lines to an output. Observe may be called by many
// goroutines; Run is called once.
type Writer struct {
	out     io.Writer
	log     *slog.Logger
	lines   sync.Pool // of *[]byte
	waiting *ring
	wake    chan struct{}
	dropped atomic.Int64
}

// NewWriter returns a Writer to out, which only Run's goroutine writes to. Dropped
// lines are told of in log, now and then; nil discards.
func NewWriter(out io.Writer, log *slog.Logger) *Writer {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	w := &Writer{out: out, log: log, waiting: newRing(mostWaiting), wake: make(chan struct{}, 1)}
	w.lines.New = func() any { return new(make([]byte, 0, 1024)) }
	return w
}

// Observe queues the line of e and returns at once, whatever the output does. It
// takes no lock and keeps nothing of e.
func (w *Writer) Observe(e *Entry) {
	line := w.lines.Get().(*[]byte)
	*line = appendEntry((*line)[:0], e)
	ok, first := w.waiting.put(*line)
	w.lines.Put(line)
	if !ok {
		w.dropped.Add(1)
	}
	if first {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// Dropped is the number of lines that were not written, because too many waited or
// because the output failed.
func (w *Writer) Dropped() int64 { return w.dropped.Load() }

// Run writes until ctx ends, and then what still waits. It returns nil; an output
// that takes nothing any more cannot hold it for longer than two seconds.
func (w *Writer) Run(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.write(ctx)
	}()
	<-ctx.Done()
	timer := time.NewTimer(lastChance)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C: // the goroutine is in a call that nothing ends but the process
		w.log.Error("the access log's output takes nothing; its last lines are lost")
	}
	return nil
}

// write writes whenever lines wait, until ctx ends and none wait.
func (w *Writer) write(ctx context.Context) {
	var reported int64
	var reportedAt time.Time
	piece := make([]byte, 0, writeSize)
	for ended := false; !ended || !w.waiting.empty(); {
		// Without a call to wake us, a line may be about to be whole.
		if w.waiting.empty() && !ended {
			select {
			case <-w.wake:
			case <-ctx.Done():
			}
		}
		if ended = !pause(ctx, gather); ended {
			runtime.Gosched() // to whoever puts in the last line
		}
		w.writeWaiting(piece)
		if n := w.Dropped(); n > reported && (ended || time.Since(reportedAt) > reportEvery) {
			w.log.Warn("lines of the access log were dropped", "lines", n-reported, "total", n)
			reported, reportedAt = n, time.Now()
		}
	}
}

// pause waits for d, and reports whether ctx lasted.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// writeWaiting writes what waits, in pieces of no more than the capacity of piece.
func (w *Writer) writeWaiting(piece []byte) {
	for {
		piece = w.waiting.take(piece[:0])
		if len(piece) == 0 {
			return
		}
		if n, err := w.out.Write(piece); err != nil {
			w.dropped.Add(int64(bytes.Count(piece[max(0, min(n, len(piece))):], []byte("\n"))))
		}
	}
}
