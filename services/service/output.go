package service

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"
	"time"
)

const (
	// mostWaiting is how many bytes of lines may wait for standard error; lines over
	// it are dropped.
	mostWaiting = 1 << 20

	// flushLimit is what standard error has at the end to take what waits.
	flushLimit = time.Second
)

// output is a writer that never blocks and never fails: what is written waits, in
// order, for one goroutine that writes it to an output. A line for which there is no
// room is dropped, counted, and told of when the output takes something again. So a
// log that nobody reads any more, as a blocked pipe, holds up nothing.
type output struct {
	w    io.Writer
	name string // of the program, for the line about what was dropped
	most int    // bytes that may wait

	wake chan struct{} // has room for one
	done chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	waiting []byte
	writing int // bytes that the goroutine has taken
	dropped int // lines since they were last told of
	closed  bool
}

// newOutput returns an output to w, which close ends.
func newOutput(w io.Writer, name string, most int) *output {
	o := &output{w: w, name: name, most: most, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go o.run()
	return o
}

// Write takes p as a whole, or drops it, and returns at once.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || len(o.waiting)+o.writing+len(p) > o.most {
		o.dropped += max(1, bytes.Count(p, []byte("\n")))
		return len(p), nil
	}
	o.waiting = append(o.waiting, p...)
	o.awake()
	return len(p), nil
}

func (o *output) awake() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// close ends the output, and returns when what waits is written or the limit is over.
// In that case the goroutine stays in a call that nothing ends but the process. What
// is written afterwards is dropped. Further calls wait again.
func (o *output) close(limit time.Duration) {
	o.mu.Lock()
	o.closed = true
	o.awake()
	o.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-o.done:
	case <-timer.C:
	}
}

// run writes until the output is closed and nothing waits.
func (o *output) run() {
	defer close(o.done)
	var lines []byte
	for ended := false; !ended; {
		<-o.wake
		for {
			lines, ended = o.take(lines)
			if len(lines) == 0 {
				break
			}
			_, _ = o.w.Write(lines) // nobody is left to tell of it
		}
	}
}

// take returns what waits, with a line about what was dropped behind it, and whether
// the output is closed. The buffer is used for what will wait.
func (o *output) take(buffer []byte) (lines []byte, closed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines, o.waiting = o.waiting, buffer[:0]
	if o.dropped > 0 {
		lines = append(lines, o.told(o.dropped)...)
		o.dropped = 0
	}
	o.writing = len(lines)
	return lines, o.closed
}

// told is the line about lines that were dropped, as slog writes one.
func (o *output) told(dropped int) []byte {
	line, err := json.Marshal(struct {
		Time    time.Time `json:"time"`
		Level   string    `json:"level"`
		Msg     string    `json:"msg"`
		Service string    `json:"service"`
		Lines   int       `json:"lines"`
	}{time.Now(), "WARN", "lines of the log were dropped: standard error took nothing", o.name, dropped})
	if err != nil { // a struct of texts, a time and an integer
		panic(err)
	}
	return append(line, '\n')
}
