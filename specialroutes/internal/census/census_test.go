package census_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"specialroutes.example/specialroutes/internal/census"
	"specialroutes.example/specialroutes/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// table is a store of which only lists are asked.
type table struct {
	mu      sync.Mutex
	records []store.Stored // by name
	labels  []store.Labels // of one service, by ID
	err     error
}

// change changes the table while it is being asked.
func (t *table) change(do func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	do()
}

func (t *table) List(_ context.Context, after string, limit int) ([]store.Stored, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rest := t.records
	for len(rest) > 0 && rest[0].Service <= after {
		rest = rest[1:]
	}
	return slices.Clone(rest[:min(limit, len(rest))]), t.err
}

func (t *table) ListLabels(_ context.Context, _ string, after store.Instance, limit int) ([]store.Labels, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rest := t.labels
	for len(rest) > 0 && rest[0].ID <= after.ID {
		rest = rest[1:]
	}
	return slices.Clone(rest[:min(limit, len(rest))]), t.err
}

func TestCensusCountsOverAllPagesAndNamesWhatIsBrokenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logs bytes.Buffer
		tab := &table{err: store.ErrUnavailable}
		for i := range 2500 {
			s := store.Stored{Service: fmt.Sprintf("s%04d", i)}
			if i%1000 == 7 {
				s.Broken = "a reason"
			}
			tab.records = append(tab.records, s)
		}
		for i := range 1500 {
			l := store.Labels{Instance: store.Instance{Service: "svc", ID: fmt.Sprintf("%04d", i)}}
			if i == 1200 {
				l.Broken = "another reason"
			}
			tab.labels = append(tab.labels, l)
		}
		registry := prometheus.NewRegistry()
		c := census.New(tab, slog.New(slog.NewTextHandler(&logs, nil)), registry)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()

		time.Sleep(10 * time.Second)
		synctest.Wait()
		expect(t, registry, "")
		tab.change(func() { tab.err = nil }) // the first count comes soon after the database does
		time.Sleep(2 * time.Second)
		synctest.Wait()
		expect(t, registry, counts(3, 2497))
		tab.change(func() { tab.records[7].Broken = "" })
		time.Sleep(3 * census.Interval)
		synctest.Wait()
		expect(t, registry, counts(2, 2498))
		if got := strings.Count(logs.String(), "another reason"); got != 1 || !strings.Contains(logs.String(), "instance=1200") {
			t.Errorf("the log names %d changes of labels, want one once: %s", got, &logs)
		}
		if got := strings.Count(logs.String(), "a reason"); got != 3 {
			t.Errorf("the log names %d broken records, want each of 3 once: %s", got, &logs)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
}

func counts(broken, good int) string {
	return fmt.Sprintf(`# HELP specialroutes_instance_labels Instances whose labels are changed, by state; a broken change cannot be used. Counted every 30 s.
# TYPE specialroutes_instance_labels gauge
specialroutes_instance_labels{state="broken"} 1
specialroutes_instance_labels{state="good"} 1499
# HELP specialroutes_records Route records by state; a broken one cannot be used. Counted every 30 s.
# TYPE specialroutes_records gauge
specialroutes_records{state="broken"} %d
specialroutes_records{state="good"} %d
`, broken, good)
}

func expect(t *testing.T, r *prometheus.Registry, want string) {
	t.Helper()
	if err := testutil.GatherAndCompare(r, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
