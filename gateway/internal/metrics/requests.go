// Package metrics counts what the gateway does, for Prometheus. The values of
// labels come from the configuration and the records only, so that no client can
// make series; all else is "other".
package metrics

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"specialroutes.example/gateway/internal/accesslog"
)

// other is the label of what has no name of its own.
const other = "other"

// mostVariants bounds the variants of one service that get series of their own.
// A record holds 16; the rest is for those that were renamed. When it is used up,
// those that no record has any more go.
const mostVariants = 64

// durations are the bounds of histograms, in seconds.
var durations = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

// classes are the status classes, by the hundreds; the first is "other".
var classes = [...]string{other, "1xx", "2xx", "3xx", "4xx", "5xx"}

// Requests counts requests. It is safe for concurrent use; in the steady state
// Observe takes no lock and allocates nothing.
type Requests struct {
	services map[string]bool // that get series of their own

	requests  *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	upstream  *prometheus.HistogramVec
	received  *prometheus.CounterVec
	sent      *prometheus.CounterVec
	retries   *prometheus.CounterVec
	fallbacks *prometheus.CounterVec
	replaced  prometheus.Counter
	overrides prometheus.Counter
	inFlight  prometheus.Gauge

	mu       sync.Mutex // serialises the making of cells
	cells    atomic.Pointer[map[cellKey]*cell]
	variants map[string]map[string]bool // by service
	inForce  func(service string) []string
}

// cellKey is what the series of a request are found by.
type cellKey struct {
	service, variant string
	class            int
}

// cell is the series of a service, variant and class.
type cell struct {
	requests prometheus.Counter
	seconds  prometheus.Observer
	upstream prometheus.Observer
	received prometheus.Counter
	sent     prometheus.Counter
	retries  prometheus.Counter
}

// NewRequests registers the counters of requests. Only the services named here,
// those of the table, get series of their own.
func NewRequests(reg prometheus.Registerer, services []string) *Requests {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "gateway", Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "gateway", Name: name, Help: help, Buckets: durations}, labels)
	}
	r := &Requests{
		services:  make(map[string]bool, len(services)),
		requests:  counter("requests_total", "Requests whose answer has ended.", "service", "variant", "class"),
		seconds:   histogram("request_duration_seconds", "From the head of a request to the last byte of its answer.", "service", "variant", "class"),
		upstream:  histogram("upstream_duration_seconds", "The part of that which was spent waiting for upstreams.", "service", "variant"),
		received:  counter("request_bytes_total", "Bytes of request bodies.", "service", "variant"),
		sent:      counter("response_bytes_total", "Bytes of answer bodies.", "service", "variant"),
		retries:   counter("retries_total", "Attempts after the first.", "service", "variant"),
		fallbacks: counter("fallbacks_total", "Requests for which something gave way, by the variant that was wanted and the reason.", "service", "wanted", "reason"),
		replaced: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "gateway", Name: "correlation_ids_made_total", Help: "Requests without a usable correlation ID of their own.",
		}),
		overrides: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "gateway", Name: "invalid_overrides_total", Help: "Requests with a route override that was removed.",
		}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "gateway", Name: "requests_in_flight", Help: "Requests whose answer has not ended.",
		}),
		variants: make(map[string]map[string]bool),
	}
	for _, s := range services {
		r.services[s] = true
	}
	r.cells.Store(new(map[cellKey]*cell))
	reg.MustRegister(r.requests, r.seconds, r.upstream, r.received, r.sent, r.retries, r.fallbacks, r.replaced, r.overrides, r.inFlight)
	return r
}

// VariantsFrom says which variants a service's record has at the moment. It is called
// before anything is counted. Without it no variant that had series loses them.
func (r *Requests) VariantsFrom(inForce func(service string) []string) { r.inForce = inForce }

// InFlight counts the requests in next.
func (r *Requests) InFlight(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.inFlight.Inc()
		defer r.inFlight.Dec()
		next.ServeHTTP(w, req)
	})
}

// AddInFlight counts requests that no handler sees: delta is 1 when one begins, -1
// when it is over.
func (r *Requests) AddInFlight(delta int) { r.inFlight.Add(float64(delta)) }

// Observe counts one request. It keeps nothing of e.
func (r *Requests) Observe(e *accesslog.Entry) {
	key := cellKey{e.Service, e.Variant, class(e.Status)}
	c := (*r.cells.Load())[key]
	if c == nil {
		c = r.newCell(key)
	}
	c.requests.Inc()
	c.seconds.Observe(e.Duration.Seconds())
	if e.Instance != "" {
		c.upstream.Observe(e.Upstream.Seconds())
	}
	if e.BytesIn > 0 {
		c.received.Add(float64(e.BytesIn))
	}
	if e.BytesOut > 0 {
		c.sent.Add(float64(e.BytesOut))
	}
	if e.Retries > 0 {
		c.retries.Add(float64(e.Retries))
	}
	if e.Fallback != "" {
		r.countFallback(e)
	}
	if e.CorrelationReplaced {
		r.replaced.Inc()
	}
	if e.OverrideInvalid != "" {
		r.overrides.Inc()
	}
}

// class returns the index of a status's class.
func class(status int) int {
	if status < 100 || status > 599 {
		return 0
	}
	return status / 100
}

// newCell makes the series of a key that is seen for the first time. A key that
// may have no series of its own is not kept, for there is no end to such keys.
func (r *Requests) newCell(key cellKey) *cell {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := (*r.cells.Load())[key]; c != nil {
		return c
	}
	service, variant := r.labels(key.service, key.variant)
	c := &cell{
		requests: r.requests.WithLabelValues(service, variant, classes[key.class]),
		seconds:  r.seconds.WithLabelValues(service, variant, classes[key.class]),
		upstream: r.upstream.WithLabelValues(service, variant),
		received: r.received.WithLabelValues(service, variant),
		sent:     r.sent.WithLabelValues(service, variant),
		retries:  r.retries.WithLabelValues(service, variant),
	}
	if service == key.service && variant == key.variant || key.service == "" && key.variant == "" {
		// The strings may be part of something larger; the map would keep all of it.
		key.service, key.variant = strings.Clone(key.service), strings.Clone(key.variant)
		cells := maps.Clone(*r.cells.Load())
		if cells == nil {
			cells = make(map[cellKey]*cell)
		}
		cells[key] = c
		r.cells.Store(&cells)
	}
	return c
}

// labels returns the labels that a service and variant are counted under. The
// caller holds r.mu.
func (r *Requests) labels(service, variant string) (string, string) {
	if !r.services[service] {
		return other, other
	}
	known := r.variants[service]
	if !known[variant] && len(known) >= mostVariants {
		r.forgetVariants(service)
	}
	switch {
	case known[variant]:
	case variant == "" || len(known) >= mostVariants:
		return service, other
	case known == nil:
		r.variants[service] = map[string]bool{variant: true}
	default:
		known[variant] = true
	}
	return service, variant
}

// forgetVariants takes the series of variants that the service's record does not have
// any more. The caller holds r.mu.
func (r *Requests) forgetVariants(service string) {
	if r.inForce == nil {
		return
	}
	now, known := r.inForce(service), r.variants[service]
	gone := make(map[string]bool)
	for variant := range known {
		if !slices.Contains(now, variant) {
			gone[variant] = true
			delete(known, variant)
			r.deleteSeries(service, variant)
		}
	}
	if len(gone) == 0 {
		return
	}
	cells := maps.Clone(*r.cells.Load())
	maps.DeleteFunc(cells, func(k cellKey, _ *cell) bool { return k.service == service && gone[k.variant] })
	r.cells.Store(&cells)
}

func (r *Requests) deleteSeries(service, variant string) {
	for _, vec := range []interface {
		DeletePartialMatch(labels prometheus.Labels) int
	}{r.requests, r.seconds, r.upstream, r.received, r.sent, r.retries} {
		vec.DeletePartialMatch(prometheus.Labels{"service": service, "variant": variant})
	}
	r.fallbacks.DeletePartialMatch(prometheus.Labels{"service": service, "wanted": variant})
}

// reasons are those for which something gives way.
var reasons = map[string]bool{"no-instances": true, "labels": true, "tripped": true, "limit": true, "connect": true, "zones": true}

// countFallback reads the text of X-Route-Fallback, "wanted=new; reason=connect".
func (r *Requests) countFallback(e *accesslog.Entry) {
	wanted, reason, _ := strings.Cut(strings.TrimPrefix(e.Fallback, "wanted="), "; reason=")
	if !reasons[reason] {
		reason = other
	}
	r.mu.Lock()
	service, wanted := r.labels(e.Service, wanted)
	r.mu.Unlock()
	r.fallbacks.WithLabelValues(service, wanted, reason).Inc()
}
