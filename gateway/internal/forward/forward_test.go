package forward_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/forward"
	"specialroutes.example/gateway/internal/forward/forwardtest"
)

// endLimit is how long goroutines may take to end after the tests. net/http's server
// stays half a second with a connection that it ends, also after Close, and goleak by
// itself waits for less.
const endLimit = 5 * time.Second

func TestMain(m *testing.M) {
	code := m.Run()
	for over := time.Now().Add(endLimit); code == 0; {
		err := goleak.Find() // which looks several times
		if err == nil {
			break
		}
		if time.Now().After(over) {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// TestServer runs the suite over net/http's server alone.
func TestServer(t *testing.T) { forwardtest.Exercise(t, start(false)) }

// TestLoop runs the suite over the loop, and over net/http for what it hands over.
func TestLoop(t *testing.T) { forwardtest.Exercise(t, start(true)) }

// start serves a gateway as the process does.
func start(loop bool) forwardtest.Start {
	return func(t *testing.T, g *forward.Gateway, c *config.Config) string {
		t.Helper()
		return startOn(t, listen(t), loop, g, c)
	}
}

// startOn serves a gateway on l, and returns its address.
func startOn(t *testing.T, l net.Listener, loop bool, g *forward.Gateway, c *config.Config) string {
	t.Helper()
	s := forward.NewServer(g, c.Timeouts, c.Limits, slog.New(slog.DiscardHandler))
	s.Observer, s.NewID = g.Observer(), func() string { return "made" }
	if loop {
		s.Loop = g
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() {
		_ = s.Shutdown(context.WithoutCancel(t.Context()))
		_ = s.Close()
		<-done
	})
	return l.Addr().String()
}
