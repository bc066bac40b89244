package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"specialroutes.example/gateway/internal/balance"
	"specialroutes.example/gateway/internal/registry"
)

// Instances is what CollectInstances asks.
type Instances struct {
	Registry registry.Registry
	Health   func(service, id string) balance.Health
	Now      func() time.Time
}

// CollectInstances registers what is known of instances and of the registry that
// lists them. The services are those of the table, of records and of the settings.
func CollectInstances(reg prometheus.Registerer, i Instances) {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("gateway_"+name, help, labels, nil)
	}
	reg.MustRegister(&instancesCollector{
		Instances:   i,
		errors:      desc("registry_errors_total", "Questions to the registry that failed."),
		age:         desc("registry_age_seconds", "Since the instances in force were last known to be right; absent while there are none."),
		instances:   desc("instances", "Instances of a service, by the state of their circuits.", "service", "circuit"),
		unconfirmed: desc("instances_unconfirmed", "Instances of a service that the registry has not listed since it was away.", "service"),
		setAside:    desc("instances_set_aside", "Instances of all services that cannot be used."),
		panic:       desc("service_panic", "1 while the circuits of all of a service's instances are open, so that calls go to one of them all the same.", "service"),
	})
}

// instancesCollector makes metrics of a registry's snapshot and status.
type instancesCollector struct {
	Instances
	errors, age, instances, unconfirmed, setAside, panic *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *instancesCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.errors, c.age, c.instances, c.unconfirmed, c.setAside, c.panic} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. Of a list that is always right the age
// is 0.
func (c *instancesCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.Registry.Status()
	ch <- prometheus.MustNewConstMetric(c.errors, prometheus.CounterValue, float64(s.Errors))
	snapshot := c.Registry.Load()
	ch <- gauge(c.setAside, len(snapshot.SetAside()))
	for _, service := range snapshot.Services() {
		c.collectService(ch, service, snapshot.Instances(service))
	}
	if s.Source == registry.None {
		return
	}
	age := 0.0
	if !s.Since.IsZero() {
		age = max(0, c.Now().Sub(s.Since).Seconds())
	}
	ch <- prometheus.MustNewConstMetric(c.age, prometheus.GaugeValue, age)
}

func (c *instancesCollector) collectService(ch chan<- prometheus.Metric, service string, instances []*registry.Instance) {
	circuits := map[string]int{balance.CircuitClosed: 0, balance.CircuitHalfOpen: 0, balance.CircuitOpen: 0}
	unconfirmed, panics := 0, 0
	for _, i := range instances {
		circuits[c.Health(service, i.ID).Circuit]++
		if i.Unconfirmed {
			unconfirmed++
		}
	}
	for state, n := range circuits {
		ch <- gauge(c.instances, n, service, state)
	}
	if circuits[balance.CircuitOpen] == len(instances) {
		panics = 1
	}
	ch <- gauge(c.unconfirmed, unconfirmed, service)
	ch <- gauge(c.panic, panics, service)
}

func gauge(desc *prometheus.Desc, value int, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
}

// NewPanics registers and returns the counter of requests, by the service that was
// requested, that went to an instance or endpoint although it was not available.
func NewPanics(reg prometheus.Registerer) func(service string) {
	panics := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "gateway", Name: "panics_total",
		Help: "Attempts at an instance or endpoint that is not available, because nothing else was left.",
	}, []string{"service"})
	reg.MustRegister(panics)
	return func(service string) { panics.WithLabelValues(service).Inc() }
}
