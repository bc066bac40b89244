package accesslog

import "sync/atomic"

// ring is a queue of lines in one piece of memory. Many goroutines put lines in and
// one takes them out, all without a lock: whoever puts takes a place by one atomic
// operation, and marks it when the line is whole there. Lines come out in the order
// in which their places were taken.
type ring struct {
	bytes []byte
	marks []atomic.Uint32 // by slot: the length of the line that begins there; 0: it is not whole yet

	_    [cacheLine]byte
	head atomic.Uint64 // slots that were taken so far
	_    [cacheLine]byte
	tail atomic.Uint64 // slots that are free again; written by the one that takes lines out
	_    [cacheLine]byte
}

const (
	// slotSize is what places are made of. A line takes seven or eight of them.
	slotSize = 64

	// cacheLine keeps what different processors write apart.
	cacheLine = 64
)

// newRing returns a ring for size bytes, a power of two.
func newRing(size int) *ring {
	return &ring{bytes: make([]byte, size), marks: make([]atomic.Uint32, size/slotSize)}
}

// slots is how many slots n bytes take.
func slots(n int) uint64 { return uint64(n+slotSize-1) / slotSize }

// put adds a line, which is not empty, unless there is no room for it. first says that
// nothing lay before it, so that whoever takes lines out may be waiting.
func (r *ring) put(line []byte) (ok, first bool) {
	n := slots(len(line))
	var place uint64
	for {
		tail := r.tail.Load() // before head, which is never less
		place = r.head.Load()
		if place+n-tail > uint64(len(r.marks)) {
			return false, false
		}
		if r.head.CompareAndSwap(place, place+n) {
			break
		}
	}
	at := place % uint64(len(r.marks))
	rest := line[copy(r.bytes[at*slotSize:], line):]
	copy(r.bytes, rest)
	r.marks[at].Store(uint32(len(line)))
	// After the mark: either we see that all before was taken out, or whoever took it
	// out sees our place.
	return true, r.tail.Load() == place
}

// take appends whole lines to b, as many as its capacity holds, and at least one when
// one is there and b is empty. One goroutine at a time may call it.
func (r *ring) take(b []byte) []byte {
	tail := r.tail.Load()
	for {
		at := tail % uint64(len(r.marks))
		n := int(r.marks[at].Load())
		if n == 0 || len(b) > 0 && len(b)+n > cap(b) {
			break
		}
		from := r.bytes[at*slotSize:]
		b = append(b, from[:min(n, len(from))]...)
		b = append(b, r.bytes[:max(0, n-len(from))]...)
		r.marks[at].Store(0)
		tail += slots(n)
	}
	r.tail.Store(tail)
	return b
}

// empty reports whether all lines were taken out. It is false while a line is being
// put in.
func (r *ring) empty() bool { return r.tail.Load() == r.head.Load() }
