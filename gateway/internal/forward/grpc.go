package forward

import (
	"net/http"
	"strings"

	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/filter"
)

// limitsOf returns the time limits of an exchange. Either side of a gRPC call may
// be silent for long, so idle is what it is for tunnels; the head of the answer has
// as long as any other, from the last byte of the request on.
func limitsOf(ex *filter.Exchange) config.Timeouts {
	limits := ex.Route.Timeouts
	if isGRPC(ex.Request.Header) {
		limits.Idle = limits.Tunnel
	}
	return limits
}

// isGRPC reports whether a message is one of gRPC: its content is application/grpc,
// or that with the name of an encoding behind it.
func isGRPC(h http.Header) bool {
	lines := h["Content-Type"]
	if len(lines) == 0 {
		return false
	}
	rest, ok := strings.CutPrefix(lines[0], "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}
