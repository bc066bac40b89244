// Package consulagenttest gives tests a real Consul agent.
package consulagenttest

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"specialroutes.example/services/estate/consulagent"
)

// removeLimit bounds the end of an agent.
const removeLimit = 20 * time.Second

// Start runs an agent until the test ends. Without a consul program the test is
// skipped, or fails when CI is set: what is promised of the real Consul must be
// seen before a change lands.
func Start(t testing.TB) *consulagent.Agent {
	t.Helper()
	a, err := consulagent.Start(t.Context(), consulagent.Options{})
	if errors.Is(err, consulagent.ErrNotInstalled) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), removeLimit)
		defer cancel()
		if err := a.Remove(ctx); err != nil {
			t.Error(err)
		}
	})
	return a
}
