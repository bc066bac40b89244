//go:build linux

package forward

import "specialroutes.example/gateway/internal/balance"

// Aside has the loop forward over net/http's transport whatever a target speaks, as
// it does for targets of HTTP/2. Call it before g serves.
func Aside(g *Gateway) { g.direct.speaks = func(*balance.Target) bool { return false } }
