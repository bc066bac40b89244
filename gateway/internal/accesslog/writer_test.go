package accesslog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sample() *Entry {
	return &Entry{
		Time:          time.Date(2026, 11, 29, 12, 0, 0, 123456789, time.FixedZone("", 3600)),
		CorrelationID: "c-1", Method: "GET", Host: "localhost:5555", Path: "/api/organization/v1/x",
		Route: "/api/organization", Service: "organizationservice", Variant: "new", Reason: "draw",
		Fallback: "wanted=new; reason=connect", Instance: "127.0.0.1:8087",
		Status: 200, BytesIn: 3, BytesOut: 180,
		Duration: 1234567 * time.Nanosecond, Upstream: 1200 * time.Microsecond, Retries: 1,
		Client: netip.MustParseAddr("192.0.2.1"),
	}
}

func TestALineHoldsAllMembersInOrder(t *testing.T) {
	t.Parallel()
	const want = `{"time":"2026-11-29T11:00:00.123456Z","correlationId":"c-1","method":"GET","host":"localhost:5555",` +
		`"path":"/api/organization/v1/x","route":"/api/organization","service":"organizationservice","variant":"new","reason":"draw",` +
		`"fallback":"wanted=new; reason=connect","instance":"127.0.0.1:8087","status":200,"bytesIn":3,"bytesOut":180,` +
		`"duration":0.001234,"upstream":0.001200,"retries":1,"client":"192.0.2.1"}` + "\n"
	if got := string(appendEntry(nil, sample())); got != want {
		t.Errorf("line:\n got %s\nwant %s", got, want)
	}
	e := &Entry{CorrelationReplaced: true, Status: 400, Duration: -1, Code: "bad_request", OverrideInvalid: "expired"}
	const rare = `{"time":"0001-01-01T00:00:00.000000Z","correlationId":"","correlationReplaced":true,"method":"","host":"","path":"",` +
		`"route":"","service":"","variant":"","reason":"","fallback":"","instance":"","status":400,"bytesIn":0,"bytesOut":0,` +
		`"duration":0.000000,"upstream":0.000000,"retries":0,"client":"","code":"bad_request","overrideInvalid":"expired"}` + "\n"
	if got := string(appendEntry(nil, e)); got != rare {
		t.Errorf("line:\n got %s\nwant %s", got, rare)
	}
}

func TestTextOfTheClientCannotLeaveItsString(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ in, want string }{
		{"/a\r\nFAKE", `"/a\u000d\u000aFAKE"`},
		{"\"\\", `"\"\\"`},
		{"\x1b[31m\x7f", `"\u001b[31m\u007f"`},
		{"\u0085\u009b31m", `"\u0085\u009b31m"`},
		{"\u2028\u2029", `"\u2028\u2029"`},
		{"\xff\xc3", `"\ufffd\ufffd"`},
		{"zoë €😀\ufffd", `"zoë €😀` + "\ufffd" + `"`},
	} {
		if got := string(appendText(nil, "", test.in, longestPath)); got != test.want {
			t.Errorf("%q: got %s, want %s", test.in, got, test.want)
		}
	}
}

func TestLongTextIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ in, want string }{
		{"abcd", `"abcd"`},
		{"abcde", `"abcd…"`},
		{"abcé", `"abc…"`},
		{"a€€", `"a€…"`},
		{"a😀b", `"a…"`},
		{"\xff\xff\xff\xff\xff", `"…"`},
	} {
		if got := string(appendText(nil, "", test.in, 4)); got != test.want {
			t.Errorf("%q: got %s, want %s", test.in, got, test.want)
		}
	}
	e := &Entry{Path: strings.Repeat("\x00", 60<<10), Host: strings.Repeat("\x00", 60<<10)}
	if n := len(appendEntry(nil, e)); n > writeSize/2 {
		t.Errorf("a line of %d bytes, want far less than what is written at once", n)
	}
}

func FuzzEveryLineIsOneJSONDocument(f *testing.F) {
	f.Add("/a\r\n", "x\"", int64(3))
	f.Add("\xff\u2028", "\\", int64(-1))
	f.Fuzz(func(t *testing.T, path, host string, n int64) {
		line := appendEntry(nil, &Entry{Path: path, Host: host, BytesIn: n, Duration: time.Duration(n)})
		if bytes.IndexByte(line, '\n') != len(line)-1 || !utf8.Valid(line) {
			t.Fatalf("not one line of UTF-8: %q", line)
		}
		var got struct {
			Path, Host string
			BytesIn    int64
		}
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if len(path) <= longestPath && got.Path != strings.ToValidUTF8(path, "\ufffd") && utf8.ValidString(path) || got.BytesIn != n {
			t.Errorf("got %q, %d back, want %q, %d", got.Path, got.BytesIn, path, n)
		}
	})
}

// run runs w until the test ends or stop is called.
func run(t testing.TB, w *Writer) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func TestAllLinesOfManyGoroutinesArriveWholeAndInOrder(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer // read after the end only
	w := NewWriter(&out, nil)
	stop := run(t, w)
	const goroutines, each = 8, 1000
	var group sync.WaitGroup
	for g := range goroutines {
		group.Go(func() {
			for i := range each {
				w.Observe(&Entry{Service: fmt.Sprint(g), Status: i})
			}
		})
	}
	group.Wait()
	stop()
	next := make(map[string]int)
	for line := range strings.Lines(out.String()) {
		var e struct {
			Service string
			Status  int
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if e.Status != next[e.Service] {
			t.Fatalf("goroutine %s: got line %d, want %d", e.Service, e.Status, next[e.Service])
		}
		next[e.Service]++
	}
	for g := range goroutines {
		if n := next[fmt.Sprint(g)]; n != each {
			t.Errorf("goroutine %d: got %d lines, want %d", g, n, each)
		}
	}
	if w.Dropped() != 0 {
		t.Errorf("Dropped: got %d, want 0", w.Dropped())
	}
}

// gate is an output that takes nothing until it is opened.
type gate struct {
	entered chan struct{}
	open    chan struct{}
	out     bytes.Buffer
}

func newGate() *gate { return &gate{entered: make(chan struct{}, 1000), open: make(chan struct{})} }

func (g *gate) Write(p []byte) (int, error) {
	g.entered <- struct{}{}
	<-g.open
	return g.out.Write(p)
}

func TestLinesAreDroppedAndCountedWhenTooManyWait(t *testing.T) {
	t.Parallel()
	out := newGate()
	w := NewWriter(out, nil)
	stop := run(t, w)
	w.Observe(sample())
	<-out.entered // the output holds the first line
	line := len(appendEntry(nil, sample()))
	const lines = 20_000
	for range lines - 1 {
		w.Observe(sample()) // returns, or the test would hang here
	}
	fit := 1 + mostWaiting/slotSize/int(slots(line)) // that which the output holds, and those that wait
	if got, want := w.Dropped(), int64(lines-fit); got != want {
		t.Errorf("Dropped: got %d, want %d", got, want)
	}
	close(out.open)
	stop()
	if got := bytes.Count(out.out.Bytes(), []byte("\n")); got != fit {
		t.Errorf("written after all: got %d lines, want %d", got, fit)
	}
	if !w.waiting.empty() {
		t.Error("lines still wait")
	}
}

func TestAnOutputThatTakesNothingCannotHoldTheEnd(t *testing.T) {
	t.Parallel()
	out := newGate()
	w := NewWriter(out, nil)
	stop := run(t, w)
	w.Observe(sample())
	<-out.entered
	stop() // the test hangs here if it does
	close(out.open)
}

// failing is an output with an error after some bytes.
type failing struct{ rest int }

func (f *failing) Write(p []byte) (int, error) {
	if f.rest >= len(p) {
		f.rest -= len(p)
		return len(p), nil
	}
	n := f.rest
	f.rest = 0
	return n, errors.New("no space left")
}

func TestLinesThatTheOutputRefusesAreCounted(t *testing.T) {
	t.Parallel()
	w := NewWriter(&failing{rest: len(appendEntry(nil, sample())) + 10}, nil)
	for range 3 {
		w.Observe(sample()) // before Run, so that they are one write
	}
	run(t, w)()
	if w.Dropped() != 2 {
		t.Errorf("Dropped: got %d, want 2", w.Dropped())
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	w := NewWriter(io.Discard, nil)
	run(t, w)
	e := sample()
	if n := testing.AllocsPerRun(1000, func() { w.Observe(e) }); n > 0.1 {
		t.Errorf("got %v allocations a line, want none", n)
	}
}

// BenchmarkObserve is what a call waits for. What is queued is written outside of
// the measurement, before lines would be dropped, which costs less than queueing.
func BenchmarkObserve(b *testing.B) {
	w := NewWriter(io.Discard, nil)
	e := sample()
	queued, piece := 0, make([]byte, 0, writeSize)
	for b.Loop() {
		w.Observe(e)
		if queued++; queued == 1000 { // those of 10 ms at 100,000 calls a second
			b.StopTimer()
			w.writeWaiting(piece)
			queued = 0
			b.StartTimer()
		}
	}
	if n := w.Dropped(); n > 0 {
		b.Errorf("%d lines were dropped", n)
	}
}

func TestTimesAreThoseOfThePackageTime(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{
		{}, time.Unix(0, 0), time.Unix(1<<31, 999_999_999), time.Date(2024, 2, 29, 23, 59, 59, 1000, time.FixedZone("", -7200)),
		time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
	} {
		if got, want := string(appendTime(nil, at)), at.UTC().Format("2006-01-02T15:04:05.000000Z"); got != want {
			t.Errorf("%v: %s, want %s", at, got, want)
		}
	}
}

// Every byte in every place of a text is judged as it is alone.
func TestPlainTextIsFoundByWords(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		for at := range 20 {
			text := []byte("plain text, all of it")[:20]
			text[at] = byte(c)
			isPlain := c < utf8.RuneSelf && plain[c]
			if n := plainPrefix(string(text)); isPlain && n < 16 || !isPlain && n > at {
				t.Errorf("%q: %d bytes are plain", text, n)
			}
		}
	}
}
