package accesslog

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestARingGivesLinesBackInTheirOrder(t *testing.T) {
	t.Parallel()
	const size = 1 << 10
	r := newRing(size)
	got := make([]byte, 0, size)
	// Lines of every length around that of slots, so that some lie over the end.
	for n := 1; n < 4*slotSize; n++ {
		line := strings.Repeat(string(rune('a'+n%26)), n)
		ok, first := r.put([]byte(line))
		if !ok || !first {
			t.Fatalf("%d bytes: taken %v, first %v", n, ok, first)
		}
		if ok, first := r.put([]byte("next")); !ok || first {
			t.Fatalf("behind %d bytes: taken %v, first %v", n, ok, first)
		}
		got = r.take(got[:0])
		if string(got) != line+"next" {
			t.Fatalf("%d bytes came back as %q", n, got)
		}
		if !r.empty() {
			t.Fatalf("after %d bytes something is left", n)
		}
	}
}

func TestARingTakesWhatFitsAndGivesNoMoreThanIsAskedFor(t *testing.T) {
	t.Parallel()
	const size, line = 1 << 10, "ten bytes\n"
	r := newRing(size)
	n := 0
	for ; ; n++ {
		if ok, _ := r.put([]byte(line)); !ok {
			break
		}
	}
	if n != size/slotSize {
		t.Errorf("%d lines fit, want one for each of %d slots", n, size/slotSize)
	}
	piece := make([]byte, 0, 25)
	if got := r.take(piece); string(got) != line+line {
		t.Errorf("a piece of 25 bytes is %q, want two lines", got)
	}
	if got := r.take(make([]byte, 0, 5)); string(got) != line {
		t.Errorf("a piece of 5 bytes is %q, want one line all the same", got)
	}
	if ok, first := r.put([]byte(line)); !ok || first {
		t.Errorf("after some were taken out: taken %v, first %v", ok, first)
	}
}

// Many goroutines put in more than the ring holds while one takes out: what was
// accepted comes out once, whole, and in the order of its goroutine.
func TestARingIsSafeForManyGoroutines(t *testing.T) {
	t.Parallel()
	const goroutines, each = 8, 5000
	r := newRing(2 << 10)
	var refused atomic.Int64
	var group sync.WaitGroup
	for g := range goroutines {
		group.Go(func() {
			for i := range each {
				line := fmt.Appendf(nil, "%d %d %s\n", g, i, strings.Repeat("x", (g*31+i)%150))
				if ok, _ := r.put(line); !ok {
					refused.Add(1)
					runtime.Gosched()
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	var next [goroutines]int
	taken := 0
	for ended, piece := false, make([]byte, 0, 1<<10); !ended || !r.empty(); {
		select {
		case <-done:
			ended = true
		default:
		}
		piece = r.take(piece[:0])
		for line := range strings.Lines(string(piece)) {
			fields := strings.Fields(line)
			g, _ := strconv.Atoi(fields[0])
			i, _ := strconv.Atoi(fields[1])
			if want := (g*31 + i) % 150; i < next[g] || want > 0 && fields[2] != strings.Repeat("x", want) {
				t.Fatalf("got %q after line %d of its goroutine", line, next[g]-1)
			}
			next[g] = i + 1
			taken++
		}
		runtime.Gosched()
	}
	if got := int64(taken) + refused.Load(); got != goroutines*each {
		t.Errorf("%d lines came out and %d were refused, together %d, want %d", taken, refused.Load(), got, goroutines*each)
	}
	if taken == 0 || refused.Load() == 0 {
		t.Errorf("%d came out and %d were refused: want both to happen", taken, refused.Load())
	}
}
