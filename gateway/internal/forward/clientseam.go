//go:build linux

package forward

import "time"

// reply is what an answer came to.
type reply struct {
	status   int   // that was sent, or 499 where the client has left; 0: none
	bytes    int64 // of the body that were sent
	begun    bool  // a byte of the answer has left
	complete bool  // all of it has
	keep     bool  // the client's connection may take another request
}

// deadline is a socket's deadline, moved only when that makes a difference: to
// move it costs more than to look.
type deadline struct{ at time.Time }

// deadlineSlack is the part of a limit by which a deadline may be late.
const deadlineSlack = 16

// reach makes the deadline lie at least limit after now, and at most a little
// later. A limit of zero is none. set moves it.
func (d *deadline) reach(now time.Time, limit time.Duration, set func(time.Time) error) error {
	if limit <= 0 {
		if d.at.IsZero() {
			return nil
		}
		d.at = time.Time{}
		return set(d.at)
	}
	slack := limit / deadlineSlack
	if left := d.at.Sub(now); left >= limit && left <= limit+slack {
		return nil
	}
	d.at = now.Add(limit + slack)
	return set(d.at)
}
