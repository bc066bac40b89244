package forwardtest

import (
	"testing"

	"specialroutes.example/gateway/internal/config"
)

// keptHost is that of the requests that come before a test's. They are not observed.
const keptHost = "kept"

// addKept adds a route for them.
func addKept(t *testing.T, c *config.Config) {
	t.Helper()
	up := newUpstream(t, ok("kept"))
	c.Routes = append(c.Routes, config.Route{Prefix: "/kept", Service: "kept"})
	if c.Instances == nil {
		c.Instances = make(map[string][]config.Instance)
	}
	c.Instances["kept"] = []config.Instance{{ID: "kept", Address: up.address()}}
}

// keep makes a connection one that has had a request, whatever became of that.
func (c *client) keep() {
	c.t.Helper()
	c.send("POST /kept HTTP/1.1\r\nHost: " + keptHost + "\r\ntmx-correlation-id: kept\r\nContent-Length: 4\r\n\r\nkept")
	c.read("POST")
}
