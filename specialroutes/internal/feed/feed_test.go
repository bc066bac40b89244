package feed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"specialroutes.example/specialroutes/internal/feed"
	"specialroutes.example/specialroutes/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is a database of cursors: a change is a cursor appended.
type source struct {
	mu    sync.Mutex
	log   []store.Cursor
	err   error
	heads int
	reads int
}

func (s *source) Head(context.Context) (store.Cursor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heads++
	return s.log[len(s.log)-1], s.err
}

func (s *source) Changes(_ context.Context, after store.Cursor) (store.Changes, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.err != nil {
		return store.Changes{}, s.err
	}
	c := store.Changes{Cursor: s.log[len(s.log)-1], Full: true}
	for i, at := range s.log {
		if at == after {
			c.Full = false
			for range s.log[i+1:] {
				c.Deleted = append(c.Deleted, "gone")
			}
		}
	}
	return c, nil
}

func (s *source) set(f func(*source)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func (s *source) add(n int64) store.Cursor {
	c := store.Cursor{Revision: n, Nonce: fmt.Sprintf("n%d", n)}
	s.set(func(s *source) { s.log = append(s.log, c) })
	return c
}

// setup is a running feed in a bubble of time that synctest moves.
type setup struct {
	*feed.Feed
	source *source
	logs   *bytes.Buffer
	head   store.Cursor
	known  []bool // what followers were told of their places; one asks at a time
}

func inBubble(t *testing.T, test func(t *testing.T, s *setup)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &setup{source: new(source), logs: new(bytes.Buffer)}
		s.head = s.source.add(1)
		s.Feed = feed.New(s.source, slog.New(slog.NewTextHandler(s.logs, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		synctest.Wait()
		test(t, s)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
}

type answer struct {
	store.Changes
	err   error
	after time.Duration
}

// follow asks in a goroutine of its own.
func (s *setup) follow(ctx context.Context, after store.Cursor, wait time.Duration) <-chan answer {
	answers := make(chan answer, 1)
	start := time.Now()
	go func() {
		c, err := s.Feed.Changes(ctx, feed.Ask{After: after, Wait: wait, Known: func(known bool) { s.known = append(s.known, known) }})
		answers <- answer{c, err, time.Since(start)}
	}()
	synctest.Wait()
	return answers
}

func TestChangesAnswersAtOnceWhoIsBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, s *setup) {
		s.source.add(2)
		s.Wake()
		synctest.Wait()
		for name, after := range map[string]store.Cursor{"nothing": {}, "an old cursor": s.head, "an unknown one": {Revision: 7, Nonce: "x"}} {
			got := <-s.follow(t.Context(), after, time.Minute)
			if got.err != nil || got.after != 0 || got.Cursor.Revision != 2 || got.Full != (name != "an old cursor") {
				t.Errorf("after %s: Changes = %+v", name, got)
			}
		}
	})
}

func TestChangesWaitsForTheNextChange(t *testing.T) {
	inBubble(t, func(t *testing.T, s *setup) {
		answers := s.follow(t.Context(), s.head, time.Minute)
		if got := s.Waiting(); got != 1 {
			t.Errorf("Waiting() = %d, want 1", got)
		}
		time.Sleep(10 * time.Second)
		next := s.source.add(2)
		got := <-answers
		if late := got.after - 10*time.Second; got.err != nil || got.Cursor != next || len(got.Deleted) != 1 || late > feed.Interval {
			t.Errorf("Changes = %+v, want %v within %v of the change", got, next, feed.Interval)
		}
		if got := s.Waiting(); got != 0 {
			t.Errorf("Waiting() = %d, want 0", got)
		}
	})
}

func TestManyFollowersCostOneQueryAnInterval(t *testing.T) {
	inBubble(t, func(t *testing.T, s *setup) {
		var all []<-chan answer // each has waited before the next one asks
		for range 50 {
			all = append(all, s.follow(t.Context(), s.head, time.Minute))
		}
		time.Sleep(20 * time.Second)
		s.source.set(func(s *source) {
			if s.reads != 0 || s.heads > 102 {
				t.Errorf("20 s of waiting cost %d reads and %d looks, want 0 and about 100", s.reads, s.heads)
			}
		})
		s.Stop()
		for _, answers := range all {
			<-answers
		}
	})
}

func TestChangesIsEmptyWhenTheWaitIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T, s *setup) {
		got := <-s.follow(t.Context(), s.head, 55*time.Second)
		if got.err != nil || got.after != 55*time.Second || got.Full || got.Cursor != s.head || len(got.Deleted) != 0 {
			t.Errorf("Changes = %+v, want nothing after 55s", got)
		}
	})
}

func TestChangesWithoutWaitReadsTheDatabase(t *testing.T) {
	inBubble(t, func(t *testing.T, s *setup) {
		next := s.source.add(2) // not looked at yet
		if got := <-s.follow(t.Context(), s.head, 0); got.Cursor != next || got.after != 0 {
			t.Errorf("Changes = %+v, want %v at once", got, next)
		}
		if got := <-s.follow(t.Context(), next, 0); got.err != nil || got.Cursor != next || got.Full || got.after != 0 {
			t.Errorf("Changes = %+v, want nothing, at once", got)
		}
	})
}

func TestWakeTellsFollowersOfALocalWriteAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *setup) {
		answers := s.follow(t.Context(), s.head, time.Minute)
		next := s.source.add(2)
		s.Wake()
		if got := <-answers; got.Cursor != next || got.after != 0 {
			t.Errorf("Changes = %+v, want %v at once", got, next)
		}
	})
}

func TestAFollowerAheadOfThisReplicaIsAnsweredByTheDatabase(t *testing.T) {
	inBubble(t, func(t *testing.T, s *setup) {
		ahead := s.source.add(2) // this replica has not looked yet; the follower was at another one
		answers := s.follow(t.Context(), ahead, time.Minute)
		time.Sleep(time.Second) // it looks now, and finds what the follower has
		select {
		case got := <-answers:
			t.Fatalf("Changes = %+v, want a wait", got)
		default:
		}
		next := s.source.add(3)
		if got := <-answers; got.err != nil || got.Cursor != next || got.Full {
			t.Errorf("Changes = %+v, want %v", got, next)
		}
	})
}

func TestARestoredDatabaseGivesAFullAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *setup) {
		s.source.add(2)
		latest := s.source.add(3)
		s.Wake()
		synctest.Wait()
		answers := s.follow(t.Context(), latest, time.Minute)
		restored := store.Cursor{Revision: 2, Nonce: "other"}
		s.source.set(func(src *source) { src.log = []store.Cursor{s.head, restored} })
		if got := <-answers; got.err != nil || !got.Full || got.Cursor != restored {
			t.Errorf("Changes = %+v, want all of %v", got, restored)
		}
		if !strings.Contains(s.logs.String(), "another history") {
			t.Errorf("the log does not say so: %s", s.logs)
		}
	})
}

func TestFollowersAreToldThatTheDatabaseIsAway(t *testing.T) {
	inBubble(t, func(t *testing.T, s *setup) {
		answers := s.follow(t.Context(), s.head, time.Minute)
		s.source.set(func(s *source) { s.err = store.ErrUnavailable })
		got := <-answers
		if !errors.Is(got.err, store.ErrUnavailable) || got.after < 2*time.Second || got.after > 3*time.Second {
			t.Errorf("Changes = %+v, want ErrUnavailable after about 2 s", got)
		}
		if _, err := s.Head(); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Head() = %v, want ErrUnavailable", err)
		}
		s.source.set(func(s *source) { s.reads = 0 })
		if got := <-s.follow(t.Context(), store.Cursor{}, 0); !errors.Is(got.err, store.ErrUnavailable) || s.source.reads != 0 {
			t.Errorf("Changes = %+v after %d reads, want ErrUnavailable without one", got, s.source.reads)
		}
		s.source.set(func(s *source) { s.err = nil })
		time.Sleep(feed.Interval)
		synctest.Wait()
		if head, err := s.Head(); err != nil || head != s.head {
			t.Errorf("Head() = %v, %v, want %v", head, err, s.head)
		}
	})
}

func TestAShortAbsenceOfTheDatabaseDisturbsNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, s *setup) {
		answers := s.follow(t.Context(), s.head, 10*time.Second)
		s.source.set(func(s *source) { s.err = store.ErrUnavailable })
		time.Sleep(time.Second)
		s.source.set(func(s *source) { s.err = nil })
		if got := <-answers; got.err != nil || got.after != 10*time.Second {
			t.Errorf("Changes = %+v, want nothing after 10s", got)
		}
	})
}

func TestStopEndsWaitingAtOnceAndForGood(t *testing.T) {
	inBubble(t, func(t *testing.T, s *setup) {
		answers := s.follow(t.Context(), s.head, time.Minute)
		s.Stop()
		if got := <-answers; got.err != nil || got.after != 0 || got.Cursor != s.head || got.Full {
			t.Errorf("Changes = %+v, want nothing at once", got)
		}
		if got := <-s.follow(t.Context(), s.head, time.Minute); !errors.Is(got.err, feed.ErrStopped) {
			t.Errorf("Changes after Stop = %+v, want ErrStopped", got)
		}
		s.Stop() // again: nothing
	})
}

func TestAPlaceIsCalledKnownOnceAndBeforeTheWait(t *testing.T) {
	inBubble(t, func(t *testing.T, s *setup) {
		for _, test := range []struct {
			name  string
			after store.Cursor
			wait  time.Duration
			want  bool
		}{
			{"the newest", s.head, time.Minute, true},
			{"the newest, without a wait", s.head, 0, true},
			{"one of another history", store.Cursor{Revision: 1, Nonce: "x"}, time.Minute, false},
			{"none", store.Cursor{}, time.Minute, false},
		} {
			s.known = nil
			answers := s.follow(t.Context(), test.after, test.wait)
			if len(s.known) != 1 || s.known[0] != test.want {
				t.Errorf("%s: known %v, want %v once", test.name, s.known, test.want)
			}
			<-answers
		}
	})
}

func TestChangesEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, s *setup) {
		ctx, cancel := context.WithCancel(t.Context())
		answers := s.follow(ctx, s.head, time.Minute)
		cancel()
		if got := <-answers; !errors.Is(got.err, context.Canceled) || got.after != 0 {
			t.Errorf("Changes = %+v, want context.Canceled at once", got)
		}
	})
}

func TestNothingIsKnownBeforeTheFirstLook(t *testing.T) {
	t.Parallel()
	src := &source{log: []store.Cursor{{}}, err: store.ErrUnavailable}
	f := feed.New(src, slog.New(slog.DiscardHandler))
	if c, err := f.Changes(t.Context(), feed.Ask{Wait: time.Minute}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Changes() = %v, %v, want what the database says", c, err)
	}
	if head, err := f.Head(); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Head() = %v, %v, want ErrUnavailable", head, err)
	}
}
