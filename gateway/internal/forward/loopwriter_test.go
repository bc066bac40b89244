//go:build linux

package forward

import (
	"errors"
	"net"
	"net/http"
	"testing"
	"time"
)

// noted is a connection that takes everything and notes the write deadline.
type noted struct {
	net.Conn
	due     time.Time
	failure error // of writing
}

func (n *noted) SetWriteDeadline(t time.Time) error {
	n.due = t
	return nil
}

func (n *noted) Write(p []byte) (int, error) { return len(p), n.failure }

// written answers a request on a connection that has a write deadline from an earlier
// one.
func written(t *testing.T, conn *noted) (*client, *loopWriter) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, "/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{conn: conn, loop: newLoop(&Server{}), tracked: new(tracked)}
	if err := c.writeDue.reach(time.Now(), time.Minute, conn.SetWriteDeadline); err != nil {
		t.Fatal(err)
	}
	w := newLoopWriter(c, r, new(reply))
	if !conn.due.IsZero() {
		t.Errorf("the answer is bounded by %v of an earlier one", conn.due)
	}
	_, _ = w.answer.Write([]byte("ok"))
	w.answer.end()
	if conn.due.IsZero() {
		t.Error("the last flush may take for ever")
	}
	w.end()
	return c, w
}

func TestLoopWriter_DeadlinesEndWithTheirAnswer(t *testing.T) {
	t.Parallel()
	conn := new(noted)
	c, w := written(t, conn)
	if !conn.due.IsZero() || !c.writeDue.at.IsZero() {
		t.Errorf("the write deadline %v stays, the client knows of %v", conn.due, c.writeDue.at)
	}
	if r := *w.rep; r != (reply{status: 200, bytes: 2, begun: true, complete: true, keep: true}) {
		t.Errorf("the answer came to %+v", r)
	}
}

func TestLoopWriter_WhatDoesNotArriveIsNotLoggedAsAnswered(t *testing.T) {
	t.Parallel()
	_, w := written(t, &noted{failure: errors.New("broken")})
	if r := *w.rep; r.status != statusClientGone || r.complete || r.keep {
		t.Errorf("the answer came to %+v, want the status %d", r, statusClientGone)
	}
}
