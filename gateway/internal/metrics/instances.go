package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"specialroutes.example/gateway/internal/registry"
)

// CollectInstances registers what status tells of the registry.
func CollectInstances(reg prometheus.Registerer, status func() registry.Status, now func() time.Time) {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("gateway_registry_"+name, help, nil, nil)
	}
	reg.MustRegister(&instancesCollector{
		status: status,
		now:    now,
		errors: desc("errors_total", "Questions to the registry that failed."),
		age:    desc("age_seconds", "Since the instances in force were last known to be right; absent while there are none."),
	})
}

// instancesCollector makes metrics of a registry.Status.
type instancesCollector struct {
	status      func() registry.Status
	now         func() time.Time
	errors, age *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *instancesCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.errors
	ch <- c.age
}

// Collect implements prometheus.Collector. Of a list that is always right the age
// is 0.
func (c *instancesCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.status()
	ch <- prometheus.MustNewConstMetric(c.errors, prometheus.CounterValue, float64(s.Errors))
	if s.Source == registry.None {
		return
	}
	age := 0.0
	if !s.Since.IsZero() {
		age = max(0, c.now().Sub(s.Since).Seconds())
	}
	ch <- prometheus.MustNewConstMetric(c.age, prometheus.GaugeValue, age)
}
