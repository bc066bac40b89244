package api

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"specialroutes.example/specialroutes/internal/feed"
)

// metrics are those of the interface. Labels take values from the table of
// operations only: what a client makes up is "other".
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics(r *prometheus.Registry, f *feed.Feed) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "specialroutes_http_requests_total",
			Help: "Requests that were answered.",
		}, []string{"path", "method", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "specialroutes_http_request_seconds",
			Help:    "How long answers took, waiting for changes included.",
			Buckets: []float64{.001, .005, .02, .1, .5, 2, 10, 60},
		}, []string{"path"}),
	}
	followers := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "specialroutes_followers",
		Help: "Requests to /v1/changes that wait for a change.",
	}, func() float64 { return float64(f.Waiting()) })
	revision := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "specialroutes_revision",
		Help: "Revision of the last change that this process knows.",
	}, func() float64 { head, _ := f.Head(); return float64(head.Revision) })
	up := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "specialroutes_database_up",
		Help: "1 while the database answers.",
	}, func() float64 {
		if _, err := f.Head(); err != nil {
			return 0
		}
		return 1
	})
	r.MustRegister(m.requests, m.seconds, followers, revision, up)
	return m
}

func (m *metrics) observe(path, method string, status int, took time.Duration) {
	if path == "" { // no operation: neither path nor method is of our making
		path, method = "other", "other"
	}
	m.requests.WithLabelValues(path, method, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(path).Observe(took.Seconds())
}
