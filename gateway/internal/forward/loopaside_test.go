//go:build linux

package forward_test

import (
	"testing"

	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/forward"
	"specialroutes.example/gateway/internal/forward/forwardtest"
)

// TestLoopAside runs the suite over the way from the loop to net/http's transport,
// which targets of HTTP/2 take, on connections that have gone it before.
func TestLoopAside(t *testing.T) {
	forwardtest.ExerciseKept(t, func(t *testing.T, g *forward.Gateway, c *config.Config) string {
		t.Helper()
		forward.Aside(g)
		return start(true)(t, g, c)
	})
}
