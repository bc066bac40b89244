package consul_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"specialroutes.example/gateway/internal/registry"
	"specialroutes.example/gateway/internal/registry/consul"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quick are waits for tests that need not measure them.
func quick() consul.Times {
	return consul.Times{
		Wait: 10 * time.Second, Answer: time.Second, Interval: time.Millisecond,
		Least: 2 * time.Millisecond, Most: 20 * time.Millisecond, Unconfirmed: time.Hour,
	}
}

// follow runs a registry until the test ends.
func follow(t *testing.T, o consul.Options) *consul.Registry {
	t.Helper()
	if o.Times == (consul.Times{}) {
		o.Times = quick()
	}
	r, err := consul.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return r
}

// awaitReady waits for the first answers.
func awaitReady(t *testing.T, r *consul.Registry) {
	t.Helper()
	select {
	case <-r.Ready():
	case <-time.After(20 * time.Second):
		t.Fatalf("not ready: %+v", r.Status())
	}
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// shown lists the instances of the service "a": their IDs, with a "?" after those
// that are unconfirmed.
func shown(r registry.Registry) []string {
	all := []string{}
	for _, i := range r.Load().Instances("a") {
		id := i.ID
		if i.Unconfirmed {
			id += "?"
		}
		all = append(all, id)
	}
	return all
}

func shows(t *testing.T, r registry.Registry, want ...string) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !slices.Equal(shown(r), want) {
		if time.Now().After(deadline) {
			t.Fatalf("instances = %v, want %v", shown(r), want)
		}
		time.Sleep(time.Millisecond)
	}
}
