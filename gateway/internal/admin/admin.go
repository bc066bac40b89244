// Package admin is what operators and their tools ask the gateway, on a port of
// its own: does it live, is it ready, how is it doing, and what is in force. All
// of it is read only and without authentication, so the port belongs on the
// loopback or an inner network.
package admin

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"specialroutes.example/gateway/internal/balance"
	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/records"
	"specialroutes.example/gateway/internal/registry"
	"specialroutes.example/services/problem"
	"specialroutes.example/services/service"
)

// Options is what the admin port tells of. All of it is safe for concurrent use.
type Options struct {
	Config   *config.Config
	Records  *records.Store
	Status   func() records.Status // of the follower that fills Records
	Registry registry.Registry
	Balancer *balance.Balancer // its health of instances and endpoints
	Metrics  prometheus.Gatherer
	Draining *service.Draining

	// Opened is closed when the data port accepts connections.
	Opened <-chan struct{}

	Now func() time.Time // nil is time.Now; for ages
}

// New returns the handler of the admin port.
func New(o Options) http.Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	mux := http.NewServeMux()
	for path, h := range map[string]http.Handler{
		"/healthz":   service.Live(),
		"/readyz":    http.HandlerFunc(o.ready),
		"/metrics":   promhttp.HandlerFor(o.Metrics, promhttp.HandlerOpts{}),
		"/routes":    http.HandlerFunc(o.routes),
		"/records":   http.HandlerFunc(o.records),
		"/instances": http.HandlerFunc(o.instances),
	} {
		mux.Handle(path, readOnly(h))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		problem.Write(w, problem.Problem{Status: http.StatusNotFound, Code: "not_found", Detail: "the admin port has nothing here"})
	})
	return mux
}

// readOnly refuses all methods but GET and HEAD.
func readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			problem.Write(w, problem.Problem{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Detail: "the admin port is read only"})
			return
		}
		next.ServeHTTP(w, req)
	})
}

// write answers with v as indented JSON, for people read it too.
func write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // the client has gone; nobody is left to tell
}
