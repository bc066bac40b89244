package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"specialroutes.example/gateway/internal/records"
)

// NewRegistry returns a registry with what every process tells of itself and the
// version of this one. Nothing is in Prometheus' global registry, which any
// dependency could fill.
func NewRegistry(version, revision, goVersion string) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "gateway", Name: "build_info", Help: "Always 1; the labels say what runs.",
	}, []string{"version", "revision", "goversion"})
	build.WithLabelValues(version, revision, goVersion).Set(1)
	reg.MustRegister(build)
	return reg
}

// CountDropped registers the counter of lines that the access log dropped.
func CountDropped(reg prometheus.Registerer, dropped func() int64) {
	reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Namespace: "gateway", Name: "access_log_dropped_total", Help: "Lines of the access log that were not written.",
	}, func() float64 { return float64(dropped()) }))
}

// CollectRecords registers what status tells of the route records. One call of
// status is made for each scrape, so that its numbers belong together.
func CollectRecords(reg prometheus.Registerer, status func() records.Status, now func() time.Time) {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("gateway_records_"+name, help, labels, nil)
	}
	reg.MustRegister(&recordsCollector{
		status: status,
		now:    now,
		source: desc("source", "1 for where the records in force came from.", "source"),
		plain: []recordsMetric{
			{desc("cursor_revision", "The number in the cursor of the records in force; -1 without one."), prometheus.GaugeValue, func(s records.Status) int64 { return s.Revision }},
			{desc("in_force", "Records in force."), prometheus.GaugeValue, func(s records.Status) int64 { return int64(s.InForce) }},
			{desc("set_aside", "Records whose latest version cannot be used."), prometheus.GaugeValue, func(s records.Status) int64 { return int64(s.SetAside) }},
			{desc("labels_in_force", "Instances whose labels an operator has changed."), prometheus.GaugeValue, func(s records.Status) int64 { return int64(s.Overlays) }},
			{desc("labels_set_aside", "Instances whose latest change of labels cannot be used."), prometheus.GaugeValue, func(s records.Status) int64 { return int64(s.OverlaysSetAside) }},
			{desc("errors_total", "Exchanges with specialroutes that failed."), prometheus.CounterValue, func(s records.Status) int64 { return s.Errors }},
			{desc("reconnects_total", "Exchanges with specialroutes that succeeded after one that failed."), prometheus.CounterValue, func(s records.Status) int64 { return s.Recoveries }},
			{desc("changes_total", "Answers of specialroutes that changed the records in force."), prometheus.CounterValue, func(s records.Status) int64 { return s.Changes }},
			{desc("full_answers_total", "Answers of specialroutes that replaced all records."), prometheus.CounterValue, func(s records.Status) int64 { return s.FullAnswers }},
			{desc("file_errors_total", "Readings and writings of the file of records that failed."), prometheus.CounterValue, func(s records.Status) int64 { return s.FileErrors }},
		},
		age: desc("age_seconds", "Since the records in force were last known to be right; absent while there are none."),
	})
}

// recordsCollector makes metrics of a records.Status.
type recordsCollector struct {
	status func() records.Status
	now    func() time.Time
	source *prometheus.Desc
	plain  []recordsMetric
	age    *prometheus.Desc
}

type recordsMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(records.Status) int64
}

// Describe implements prometheus.Collector.
func (c *recordsCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range c.plain {
		ch <- m.desc
	}
	ch <- c.source
	ch <- c.age
}

// Collect implements prometheus.Collector.
func (c *recordsCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.status()
	for _, m := range c.plain {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, float64(m.value(s)))
	}
	for _, source := range []records.Source{records.SourceLive, records.SourceFile, records.SourceNone} {
		is := 0.0
		if s.Source == source {
			is = 1
		}
		ch <- prometheus.MustNewConstMetric(c.source, prometheus.GaugeValue, is, string(source))
	}
	if !s.AsOf.IsZero() {
		ch <- prometheus.MustNewConstMetric(c.age, prometheus.GaugeValue, max(0, c.now().Sub(s.AsOf).Seconds()))
	}
}
