package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// labService is the one service that a lab's gateway routes to, below labPrefix.
const (
	labService = "lab-service"
	labPrefix  = "/api/lab"
)

// lab is a gateway and a specialroutes of one test's own, between two recording
// upstreams: what the test sends and what arrives are both in its hands.
type lab struct {
	routes
	old, new *upstream
	gateway  *process
	special  *process
	environ  []string // of the gateway, to start it again
	config   string   // the gateway's configuration file
	data     string   // host:port of the gateway
	base     string   // URL of labPrefix at the gateway
	admin    string   // URL of the gateway's admin port
}

// labOptions are what a test changes of a lab.
type labOptions struct {
	config  map[string]string // top-level keys of the gateway's file, as YAML text; "" leaves the key out
	records string            // URL of a records' source instead of a specialroutes of its own
	old     *upstream         // the default's instance, if it must be special
	new     *upstream         // the alternate
}

// newLab starts both programs. There is no record yet.
func newLab(t testing.TB, o labOptions) *lab {
	t.Helper()
	l := &lab{old: o.old, new: o.new}
	if l.old == nil {
		l.old = newUpstream(t, "old", nil)
	}
	if l.new == nil {
		l.new = newUpstream(t, "new", nil)
	}
	l.url = o.records
	if l.url == "" {
		l.startSpecial(t)
	}
	l.configure(t, o.config)
	l.startGateway(t)
	return l
}

func (l *lab) startSpecial(t testing.TB) {
	t.Helper()
	l.special, l.url = startSpecialRoutes(t, filepath.Join(t.TempDir(), "special.db"), shared.ports.free(t))
}

// startSpecialRoutes runs a specialroutes on an SQLite file and returns its URL.
func startSpecialRoutes(t testing.TB, file, addr string) (*process, string) {
	t.Helper()
	p := startProcess(t, "specialroutes", binaryPath(t, "specialroutes"), []string{
		"SPECIALROUTES_LISTEN=" + addr,
		"SPECIALROUTES_INSECURE_ADMIN=true",
		"SPECIALROUTES_DRAIN_DELAY=10ms",
		"DATABASE_URL=sqlite://" + file,
	})
	p.ready(t, "http://"+addr+"/readyz")
	return p, "http://" + addr
}

func (l *lab) configure(t testing.TB, changes map[string]string) {
	t.Helper()
	dir := t.TempDir()
	l.data = shared.ports.free(t)
	adminAddr := shared.ports.free(t)
	l.base = "http://" + l.data + labPrefix
	l.admin = "http://" + adminAddr
	l.admins = []string{l.admin}
	config := map[string]string{
		"id":        "lab",
		"listen":    l.data,
		"admin":     adminAddr,
		"routes":    fmt.Sprintf("[{prefix: %s, service: %s}]", labPrefix, labService),
		"instances": fmt.Sprintf("{%s: [{id: old-1, address: %q}]}", labService, l.old.addr()),
		"records":   fmt.Sprintf("{url: [%q], file: %q}", l.url, filepath.Join(dir, "records.json")),
		"drain":     "{delay: 50ms, limit: 10s}",
	}
	maps.Copy(config, changes)
	l.config = writeConfig(t, dir, config)
	l.environ = []string{"GATEWAY_CONFIG=" + l.config}
}

// writeConfig writes a gateway's file, one top-level key a line, in order.
func writeConfig(t testing.TB, dir string, config map[string]string) string {
	t.Helper()
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if config[key] != "" {
			fmt.Fprintf(&text, "%s: %s\n", key, config[key])
		}
	}
	file := filepath.Join(dir, "gateway.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// startGateway starts the gateway, again after it ended, and waits until it is
// ready.
func (l *lab) startGateway(t testing.TB) {
	t.Helper()
	l.gateway = startProcess(t, "gateway", binaryPath(t, "gateway"), l.environ)
	l.gateway.ready(t, l.admin+"/readyz")
}

// toNew sends every call to the alternate, by a record of weight 0.
func (l *lab) toNew(t testing.TB) {
	t.Helper()
	l.put(t, book{labService, "Y", l.new.URL, 0})
}

// accessLine waits for the one access log line that belongs to a correlation ID.
func (l *lab) accessLine(t testing.TB, correlation string) map[string]any {
	t.Helper()
	return accessLine(t, l.gateway.out.String, correlation)
}
