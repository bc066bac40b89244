package opening_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"specialroutes.example/specialroutes/internal/opening"
	"specialroutes.example/specialroutes/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// opened is a store of which only Head and Close are asked.
type opened struct {
	store.Store
	closed bool
}

func (*opened) Head(context.Context) (store.Cursor, error) {
	return store.Cursor{Revision: 1, Nonce: "a"}, nil
}
func (o *opened) Close() error { o.closed = true; return nil }

func TestStoreIsAwayUntilItIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := time.Now().Add(time.Minute)
		inner := new(opened)
		s := opening.New(slog.New(slog.DiscardHandler), func(context.Context) (store.Store, error) {
			if time.Now().Before(up) {
				return nil, store.ErrUnavailable
			}
			return inner, nil
		})
		done := make(chan error)
		go func() { done <- s.Run(t.Context()) }()
		time.Sleep(50 * time.Second)
		select {
		case <-s.Opened():
			t.Error("it says that it is open")
		default:
		}
		if _, err := s.Head(t.Context()); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Head() = %v, want ErrUnavailable", err)
		}
		for name, call := range map[string]func() error{
			"Get":          func() error { _, err := s.Get(t.Context(), "a"); return err },
			"List":         func() error { _, err := s.List(t.Context(), "", 1); return err },
			"Write":        func() error { _, err := s.Write(t.Context(), "a", store.Author{}, nil); return err },
			"Changes":      func() error { _, err := s.Changes(t.Context(), store.Cursor{}); return err },
			"History":      func() error { _, err := s.History(t.Context(), "a", 0, 1); return err },
			"Prune":        func() error { _, err := s.Prune(t.Context(), store.Prune{}); return err },
			"LeaveGateway": func() error { return s.LeaveGateway(t.Context(), "gw") },
			"SeeGateway":   func() error { return s.SeeGateway(t.Context(), store.Gateway{}) },
			"ListGateways": func() error { _, err := s.ListGateways(t.Context(), 0); return err },
			"Ping":         func() error { return s.Ping(t.Context()) },
		} {
			if err := call(); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s = %v, want ErrUnavailable", name, err)
			}
		}
		if err := <-done; err != nil || time.Since(up) > 5*time.Second {
			t.Errorf("Run = %v, %v after the database was up", err, time.Since(up))
		}
		<-s.Opened()
		if head, err := s.Head(t.Context()); err != nil || head.Revision != 1 {
			t.Errorf("Head() = %v, %v, want revision 1", head, err)
		}
		if err := s.Close(); err != nil || !inner.closed {
			t.Errorf("Close() = %v, closed %v", err, inner.closed)
		}
	})
}

func TestRunGivesUpOnWhatNoWaitingMends(t *testing.T) {
	t.Parallel()
	broken := errors.New("a migration failed")
	s := opening.New(slog.New(slog.DiscardHandler), func(context.Context) (store.Store, error) { return nil, broken })
	if err := s.Run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Run = %v, want %v", err, broken)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := opening.New(slog.New(slog.DiscardHandler), func(context.Context) (store.Store, error) { return nil, store.ErrUnavailable })
		if err := s.Run(ctx); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
	})
}
