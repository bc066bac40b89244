//go:build linux

package forward_test

import (
	"crypto/tls"
	"testing"

	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/forward"
	"specialroutes.example/gateway/internal/forward/forwardtest"
)

// TestLoopUnderTLS runs the suite over the loop under TLS.
func TestLoopUnderTLS(t *testing.T) {
	pair, roots := certificate(t)
	forwardtest.ExerciseTLS(t, func(t *testing.T, g *forward.Gateway, c *config.Config) string {
		t.Helper()
		l := tls.NewListener(listen(t), &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}})
		return newTLSFront(t, startOn(t, l, true, g, c), roots)
	})
}
