package metrics

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"specialroutes.example/gateway/internal/accesslog"
	"specialroutes.example/gateway/internal/balance"
	"specialroutes.example/gateway/internal/config"
	"specialroutes.example/gateway/internal/records"
	"specialroutes.example/gateway/internal/registry"
	"specialroutes.example/gateway/internal/registry/static"
)

// listed is a registry with a status of its own.
type listed struct {
	registry.Registry
	status *registry.Status
}

func (l *listed) Status() registry.Status { return *l.status }

func nobodyHealth(string, string) balance.Health {
	return balance.Health{Circuit: balance.CircuitClosed}
}

// samples returns the values of all series, by name and labels.
func samples(t testing.TB, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.Metric {
			all[seriesName(f.GetName(), m)] = seriesValue(m)
		}
	}
	return all
}

func seriesName(name string, m *dto.Metric) string {
	var labels []string
	for _, l := range m.Label {
		labels = append(labels, l.GetName()+"="+l.GetValue())
	}
	return name + "{" + strings.Join(labels, ",") + "}"
}

// seriesValue is the count of a histogram, and the value of all else.
func seriesValue(m *dto.Metric) float64 {
	switch {
	case m.Histogram != nil:
		return float64(m.Histogram.GetSampleCount())
	case m.Counter != nil:
		return m.Counter.GetValue()
	default:
		return m.Gauge.GetValue()
	}
}

func entry(service, variant string, status int) *accesslog.Entry {
	return &accesslog.Entry{Service: service, Variant: variant, Status: status, Instance: "i", Duration: time.Millisecond, Upstream: time.Millisecond}
}

func TestRequestsAreCountedByServiceVariantAndClass(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	r := NewRequests(reg, []string{"org"})
	for range 3 {
		r.Observe(entry("org", "old", 204))
	}
	e := entry("org", "new", 503)
	e.BytesIn, e.BytesOut, e.Retries, e.Fallback = 3, 4, 2, "wanted=new; reason=connect"
	e.CorrelationReplaced, e.OverrideInvalid = true, "expired"
	r.Observe(e)
	r.Observe(&accesslog.Entry{Status: 404}) // no route
	r.Observe(&accesslog.Entry{Service: "org", Status: 499})
	got := samples(t, reg)
	for series, want := range map[string]float64{
		"gateway_requests_total{class=2xx,service=org,variant=old}":           3,
		"gateway_requests_total{class=5xx,service=org,variant=new}":           1,
		"gateway_requests_total{class=4xx,service=other,variant=other}":       1,
		"gateway_requests_total{class=4xx,service=org,variant=other}":         1,
		"gateway_request_duration_seconds{class=2xx,service=org,variant=old}": 3,
		"gateway_upstream_duration_seconds{service=org,variant=old}":          3,
		"gateway_upstream_duration_seconds{service=other,variant=other}":      0,
		"gateway_request_bytes_total{service=org,variant=new}":                3,
		"gateway_response_bytes_total{service=org,variant=new}":               4,
		"gateway_retries_total{service=org,variant=new}":                      2,
		"gateway_fallbacks_total{reason=connect,service=org,wanted=new}":      1,
		"gateway_correlation_ids_made_total{}":                                1,
		"gateway_invalid_overrides_total{}":                                   1,
	} {
		if v, ok := got[series]; !ok || v != want {
			t.Errorf("%s: got %v (there: %t), want %v", series, v, ok, want)
		}
	}
	if t.Failed() {
		t.Logf("series: %q", slices.Sorted(maps.Keys(got)))
	}
}

func TestNoClientCanMakeSeries(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	r := NewRequests(reg, []string{"org"})
	r.Observe(entry("org", "old", 200))
	for i := range 1000 {
		r.Observe(entry(fmt.Sprint("service", i), fmt.Sprint("variant", i), i))
		e := entry("org", fmt.Sprint("renamed", i), 200)
		e.Fallback = fmt.Sprintf("wanted=renamed%d; reason=invented%d", i, i)
		r.Observe(e)
	}
	got := samples(t, reg)
	if n := got["gateway_requests_total{class=2xx,service=org,variant=other}"]; n != 1000-mostVariants+1 {
		t.Errorf("requests of variants beyond the bound: got %v, want %d", n, 1000-mostVariants+1)
	}
	// Six classes of other, the variants of org and org's other, in seven metrics at most.
	if most := 7*(len(classes)+mostVariants+1) + 10; len(got) > most {
		t.Errorf("got %d series, want at most %d", len(got), most)
	}
	if n := len(*r.cells.Load()); n > mostVariants+1 {
		t.Errorf("got %d cells kept, want at most %d", n, mostVariants+1)
	}
}

func TestConcurrentRequestsLoseNoCount(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	r := NewRequests(reg, []string{"org"})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range 1000 {
				r.Observe(entry("org", fmt.Sprint(i%10), 200+100*(i%3)))
			}
		})
	}
	group.Wait()
	if got := testutil.ToFloat64(sum{r.requests}); got != 8000 {
		t.Errorf("got %v requests, want 8000", got)
	}
}

// sum is the sum of a vector's series as one gauge.
type sum struct{ vec *prometheus.CounterVec }

func (s sum) Describe(ch chan<- *prometheus.Desc) { ch <- prometheus.NewDesc("sum", "", nil, nil) }

func (s sum) Collect(ch chan<- prometheus.Metric) {
	series := make(chan prometheus.Metric, 1000)
	s.vec.Collect(series)
	close(series)
	total := 0.0
	for m := range series {
		var out dto.Metric
		_ = m.Write(&out)
		total += out.Counter.GetValue()
	}
	ch <- prometheus.MustNewConstMetric(prometheus.NewDesc("sum", "", nil, nil), prometheus.GaugeValue, total)
}

func TestInFlightFollowsTheRequests(t *testing.T) {
	t.Parallel()
	r := NewRequests(prometheus.NewRegistry(), nil)
	var during float64
	h := r.InFlight(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		during = testutil.ToFloat64(r.inFlight)
		panic(http.ErrAbortHandler)
	}))
	func() {
		defer func() { _ = recover() }()
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	}()
	if after := testutil.ToFloat64(r.inFlight); during != 1 || after != 0 {
		t.Errorf("in flight: got %v during and %v after, want 1 and 0", during, after)
	}
}

func TestTheStateOfTheRecordsIsTold(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	status := records.Status{Source: records.SourceNone, Revision: -1}
	reg := NewRegistry("v1", "abc", "go1")
	CollectRecords(reg, func() records.Status { return status }, func() time.Time { return now })
	CountDropped(reg, func() int64 { return 5 })
	got := samples(t, reg)
	if _, ok := got["gateway_records_age_seconds{}"]; ok || got["gateway_records_source{source=none}"] != 1 || got["gateway_records_cursor_revision{}"] != -1 {
		t.Errorf("without records: got %v", got)
	}
	status = records.Status{
		Source: records.SourceFile, AsOf: now.Add(-time.Minute), Revision: 42, InForce: 2, SetAside: 1,
		Errors: 3, Recoveries: 4, Changes: 7, FullAnswers: 8, FileErrors: 9,
	}
	got = samples(t, reg)
	for series, want := range map[string]float64{
		"gateway_build_info{goversion=go1,revision=abc,version=v1}": 1,
		"gateway_records_source{source=file}":                       1,
		"gateway_records_source{source=live}":                       0,
		"gateway_records_source{source=none}":                       0,
		"gateway_records_age_seconds{}":                             60,
		"gateway_records_cursor_revision{}":                         42,
		"gateway_records_in_force{}":                                2,
		"gateway_records_set_aside{}":                               1,
		"gateway_records_errors_total{}":                            3,
		"gateway_records_reconnects_total{}":                        4,
		"gateway_access_log_dropped_total{}":                        5,
		"gateway_records_changes_total{}":                           7,
		"gateway_records_full_answers_total{}":                      8,
		"gateway_records_file_errors_total{}":                       9,
	} {
		if v, ok := got[series]; !ok || v != want {
			t.Errorf("%s: got %v (there: %t), want %v", series, v, ok, want)
		}
	}
}

func TestTheStateOfTheRegistryIsTold(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	status := registry.Status{Source: registry.None, Errors: 3}
	reg := prometheus.NewRegistry()
	CollectInstances(reg, Instances{&listed{Registry: static.New(nil), status: &status}, nobodyHealth, func() time.Time { return now }})
	got := samples(t, reg)
	if _, ok := got["gateway_registry_age_seconds{}"]; ok || got["gateway_registry_errors_total{}"] != 3 {
		t.Errorf("without an answer: got %v", got)
	}
	for since, want := range map[time.Time]float64{{}: 0, now.Add(-time.Minute): 60} {
		status = registry.Status{Source: registry.Live, Since: since}
		if age, ok := samples(t, reg)["gateway_registry_age_seconds{}"]; !ok || age != want {
			t.Errorf("age = %v (there: %t), want %v", age, ok, want)
		}
	}
}

func TestTheDocumentNamesEveryMetric(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Gateway metrics and alarms\n")
	if !found {
		t.Fatal("docs/operations.md lacks its section")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	reg := NewRegistry("", "", "")
	NewRequests(reg, []string{"org"}).Observe(&accesslog.Entry{Service: "org", Variant: "new", Fallback: "wanted=new; reason=connect"})
	CollectRecords(reg, func() records.Status { return records.Status{AsOf: time.Unix(1, 0)} }, time.Now)
	CollectInstances(reg, Instances{static.New(map[string][]config.Instance{"org": {{ID: "1", Address: "h:1"}}}), nobodyHealth, time.Now})
	NewPanics(reg)("org")
	CountDropped(reg, func() int64 { return 0 })
	documented := make(map[string]bool)
	for _, name := range regexp.MustCompile("gateway_[a-z_]+").FindAllString(section, -1) {
		documented[name] = true
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "gateway_") && !documented[f.GetName()] {
			t.Errorf("docs/operations.md does not name %s", f.GetName())
		}
		delete(documented, f.GetName())
	}
	for name := range documented {
		t.Errorf("docs/operations.md names %s, which there is not", name)
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	r := NewRequests(prometheus.NewRegistry(), []string{"org"})
	e := entry("org", "old", 200)
	if n := testing.AllocsPerRun(1000, func() { r.Observe(e) }); n != 0 {
		t.Errorf("got %v allocations a request, want none", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	r := NewRequests(prometheus.NewRegistry(), []string{"org"})
	e := entry("org", "old", 200)
	e.BytesOut = 180
	b.ReportAllocs()
	for b.Loop() {
		r.Observe(e)
	}
}

// A team that renames its variants for ever must not end in "other".
func TestVariantsThatAreGoneMakeRoomForNewOnes(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	r := NewRequests(reg, []string{"org"})
	inForce := []string{"old", "v-0"}
	r.VariantsFrom(func(service string) []string { return inForce })
	count := func(variant string) {
		r.Observe(&accesslog.Entry{Service: "org", Variant: variant, Status: 200, Fallback: "wanted=" + variant + "; reason=zones"})
	}
	for n := range 1000 {
		inForce[1] = fmt.Sprintf("v-%d", n)
		count("old")
		count(inForce[1])
		count(fmt.Sprintf("never-%d", n)) // of no record; it may have a name while there is room
	}
	got := samples(t, reg)
	if got["gateway_requests_total{class=2xx,service=org,variant=old}"] != 1000 || got["gateway_requests_total{class=2xx,service=org,variant=v-999}"] != 1 {
		t.Errorf("variants in force are not counted by name: %v", got)
	}
	if got["gateway_fallbacks_total{reason=zones,service=org,wanted=v-999}"] != 1 {
		t.Errorf("fallbacks are not counted by name and reason: %v", got)
	}
	series := 0
	for name := range got {
		if strings.HasPrefix(name, "gateway_requests_total{") {
			series++
		}
	}
	if series > mostVariants+1 || len(*r.cells.Load()) > mostVariants {
		t.Errorf("%d series and %d cells, want at most %d", series, len(*r.cells.Load()), mostVariants)
	}
}

func TestInstancesAreCountedByTheirCircuits(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	r := static.New(map[string][]config.Instance{
		"org": {{ID: "1", Address: "h:1"}, {ID: "2", Address: "h:2"}, {ID: "3", Address: "h:3"}, {ID: "bad", Address: "h:0"}},
		"lic": {{ID: "open", Address: "h:1"}},
	})
	states := map[string]string{"1": balance.CircuitClosed, "2": balance.CircuitOpen, "3": balance.CircuitHalfOpen, "open": balance.CircuitOpen}
	CollectInstances(reg, Instances{r, func(_, id string) balance.Health { return balance.Health{Circuit: states[id]} }, time.Now})
	panics := NewPanics(reg)
	panics("lic")
	panics("lic")
	got := samples(t, reg)
	for name, want := range map[string]float64{
		"gateway_instances{circuit=closed,service=org}":    1,
		"gateway_instances{circuit=open,service=org}":      1,
		"gateway_instances{circuit=half-open,service=org}": 1,
		"gateway_instances{circuit=closed,service=lic}":    0,
		"gateway_instances{circuit=open,service=lic}":      1,
		"gateway_instances_unconfirmed{service=org}":       0,
		"gateway_instances_set_aside{}":                    1,
		"gateway_service_panic{service=org}":               0,
		"gateway_service_panic{service=lic}":               1,
		"gateway_panics_total{service=lic}":                2,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s = %v (%v), want %v", name, v, ok, want)
		}
	}
}
