package accesslog

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// mostWaiting is how many bytes of lines may wait; lines over it are dropped.
	mostWaiting = 4 << 20

	// chunkSize is the unit in which waiting lines are kept, and a large one of
	// writing. It is well above the longest line.
	chunkSize = 64 << 10

	// sparedChunks are kept for use again; more are only needed while the output
	// stalls.
	sparedChunks = 8

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
	wake    chan struct{}
	dropped atomic.Int64

	mu      sync.Mutex
	chunks  [][]byte // in order; lines are appended to the last one
	spare   [][]byte
	waiting int // bytes in chunks, and in those that are being written
}

// NewWriter returns a Writer to out, which only Run's goroutine writes to. Dropped
// lines are told of in log, now and then; nil discards.
func NewWriter(out io.Writer, log *slog.Logger) *Writer {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	w := &Writer{out: out, log: log, wake: make(chan struct{}, 1)}
	w.lines.New = func() any { return new(make([]byte, 0, 1024)) }
	return w
}

// Observe queues the line of e and returns at once, whatever the output does. It
// keeps nothing of e.
func (w *Writer) Observe(e *Entry) {
	line := w.lines.Get().(*[]byte)
	*line = appendEntry((*line)[:0], e)
	w.queue(*line)
	w.lines.Put(line)
}

// Dropped is the number of lines that were not written, because too many waited or
// because the output failed.
func (w *Writer) Dropped() int64 { return w.dropped.Load() }

func (w *Writer) queue(line []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting+len(line) > mostWaiting {
		w.dropped.Add(1)
		return
	}
	w.waiting += len(line)
	first := len(w.chunks) == 0
	if first || len(line) > cap(w.last())-len(w.last()) {
		w.chunks = append(w.chunks, w.newChunk())
	}
	w.chunks[len(w.chunks)-1] = append(w.last(), line...)
	if first {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

func (w *Writer) last() []byte { return w.chunks[len(w.chunks)-1] }

func (w *Writer) newChunk() []byte {
	n := len(w.spare)
	if n == 0 {
		return make([]byte, 0, chunkSize)
	}
	c := w.spare[n-1]
	w.spare = w.spare[:n-1]
	return c[:0]
}

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
	for ended := false; !ended; {
		select {
		case <-w.wake:
			ended = !pause(ctx, gather)
		case <-ctx.Done():
			ended = true
		}
		w.writeChunks()
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

// writeChunks writes what waits.
func (w *Writer) writeChunks() {
	for _, c := range w.take() {
		if n, err := w.out.Write(c); err != nil {
			w.dropped.Add(int64(bytes.Count(c[max(0, min(n, len(c))):], []byte("\n"))))
		}
		w.release(c)
	}
}

// take removes all chunks from the queue.
func (w *Writer) take() [][]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	chunks := w.chunks
	w.chunks = nil
	return chunks
}

// release gives back a chunk that has been written.
func (w *Writer) release(c []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting -= len(c)
	if len(w.spare) < sparedChunks {
		w.spare = append(w.spare, c)
	}
}
