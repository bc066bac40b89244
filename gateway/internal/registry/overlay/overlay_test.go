package overlay_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"specialroutes.example/gateway/internal/records"
	"specialroutes.example/gateway/internal/records/recordstest"
	"specialroutes.example/gateway/internal/registry"
	"specialroutes.example/gateway/internal/registry/overlay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listing is a registry whose instances are set by hand.
type listing struct {
	registry.Registry
	current atomic.Pointer[registry.Snapshot]
}

func (l *listing) Load() *registry.Snapshot { return l.current.Load() }

// bench is a registry with changes over it, and all that they depend on.
type bench struct {
	*testing.T
	below *listing
	feed  *recordstest.Feed
	store *records.Store
	at    atomic.Int64 // seconds
	*overlay.Registry
}

var start = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func (b *bench) now() time.Time { return start.Add(time.Duration(b.at.Load()) * time.Second) }

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, below: new(listing), feed: recordstest.NewFeed(t), store: new(records.Store)}
	version := func(v string) map[string]string { return map[string]string{"version": v, "zone": "a"} }
	b.below.current.Store(registry.NewSnapshot(map[string][]registry.Instance{
		"org": {{ID: "1", Address: "h:1", Labels: version("1.0.0")}, {ID: "2", Address: "h:2", Labels: version("2.0.0")}},
		"lic": {{ID: "1", Address: "h:3", Labels: version("1.0.0")}},
	}))
	f, err := records.NewFollower(records.Options{URLs: []string{b.feed.URL}, Now: b.now}, b.store)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = f.Run(t.Context()) })
	t.Cleanup(running.Wait)
	b.Registry = overlay.New(b.below, func() *records.Overlays { return b.store.Load().Overlays() }, b.now)
	<-f.Ready()
	return b
}

// reach waits until a revision is in force.
func (b *bench) reach(revision int) {
	b.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if b.store.Load().Cursor() == fmt.Sprintf("%d.feed", revision) {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("revision %d never came", revision)
		}
	}
}

func (b *bench) labels(service, id string) map[string]string {
	b.Helper()
	list := b.Load().Instances(service)
	at, found := registry.Find(list, id)
	if !found {
		b.Fatalf("%s/%s is not listed", service, id)
	}
	return list[at].Labels
}

func (b *bench) has(service, id string, want map[string]string) {
	b.Helper()
	if got := b.labels(service, id); !maps.Equal(got, want) {
		b.Errorf("labels of %s/%s = %v, want %v", service, id, got, want)
	}
}

func TestWithoutChangesTheSnapshotIsTheRegistrysOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if b.Load() != b.below.Load() {
		t.Error("Load is another snapshot")
	}
}

func TestAChangeSetsReplacesAndHides(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.reach(b.feed.PutLabels("org", "1", `{"version":null,"zone":"alice","app":"beta"}`, start.Add(time.Hour)))
	b.has("org", "1", map[string]string{"zone": "alice", "app": "beta"})
	b.has("org", "2", map[string]string{"version": "2.0.0", "zone": "a"})
	b.has("lic", "1", map[string]string{"version": "1.0.0", "zone": "a"})
	i := b.Load().Instances("org")[0]
	if i.Operator == nil || i.Operator.Revision != 1 || i.Registered["version"] != "1.0.0" || !i.Operator.Ends.Equal(start.Add(time.Hour)) {
		t.Errorf("the operator's part is %+v over %v", i.Operator, i.Registered)
	}
	if got := b.below.Load().Instances("org")[0]; got.Operator != nil || got.Labels["zone"] != "a" {
		t.Error("the registry's own snapshot has changed")
	}
	b.reach(b.feed.DeleteLabels("org", "1"))
	if b.Load() != b.below.Load() {
		t.Error("removed, it is not as before")
	}
}

func TestAChangeEndsByTheGatewaysClock(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.feed.PutLabels("org", "1", `{"version":"3"}`, start.Add(10*time.Second))
	b.reach(b.feed.PutLabels("org", "2", `{"version":"4"}`, start.Add(20*time.Second)))
	b.feed.CloseClientConnections()
	b.feed.Close() // nobody tells of the end
	b.at.Store(9)
	first := b.Load()
	b.has("org", "1", map[string]string{"version": "3", "zone": "a"})
	if b.Load() != first {
		t.Error("two loads without a change give two snapshots")
	}
	b.at.Store(10)
	b.has("org", "1", map[string]string{"version": "1.0.0", "zone": "a"})
	b.has("org", "2", map[string]string{"version": "4", "zone": "a"})
	if b.Load().Instances("org")[1] != first.Instances("org")[1] {
		t.Error("an instance about which nothing has changed is another one")
	}
	b.at.Store(20)
	b.has("org", "2", map[string]string{"version": "2.0.0", "zone": "a"})
	if got := b.Load().Instances("org"); &got[0] != &b.below.Load().Instances("org")[0] {
		t.Error("after all ends the list is not the registry's own")
	}
}

func TestAChangeOutlivesTheInstancesAbsence(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.reach(b.feed.PutLabels("org", "1", `{"version":"3"}`, start.Add(time.Hour)))
	all := b.below.Load()
	b.below.current.Store(all.With("org", nil))
	if got := b.Load().Instances("org"); len(got) != 0 || slices.Contains(b.Load().Services(), "org") {
		t.Errorf("instances = %v, want none", got)
	}
	b.below.current.Store(all.With("org", []registry.Instance{{ID: "1", Address: "h:9", Labels: map[string]string{"version": "1.1"}}}))
	b.has("org", "1", map[string]string{"version": "3"})
	if got := b.Load().Instances("org")[0].Address; got != "h:9" {
		t.Errorf("address = %s", got)
	}
}

func TestOnlyWhatHasChangedIsBuiltAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.reach(b.feed.PutLabels("org", "1", `{"version":"3"}`, start.Add(time.Hour)))
	before := b.Load()
	b.below.current.Store(b.below.Load().With("lic", []registry.Instance{{ID: "9", Address: "h:9"}}))
	b.reach(b.feed.Put("lic", recordstest.BookRecord("lic", 5, "http://127.0.0.1:1")))
	after := b.Load()
	if after == before || len(after.Instances("lic")) != 1 || after.Instances("lic")[0].ID != "9" {
		t.Fatalf("the other service has not changed: %v", after.Instances("lic"))
	}
	if &before.Instances("org")[0] != &after.Instances("org")[0] {
		t.Error("a service about which nothing has changed has another list")
	}
	b.reach(b.feed.PutLabels("lic", "9", `{"version":"3"}`, start.Add(time.Hour)))
	if again := b.Load(); &after.Instances("org")[0] != &again.Instances("org")[0] || again.Instances("lic")[0].Labels["version"] != "3" {
		t.Error("a change for one service rebuilds another, or does not hold")
	}
}

func TestManyRequestsLoadWhileChangesCome(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	done := make(chan struct{})
	var loading sync.WaitGroup
	for range 4 {
		loading.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if list := b.Load().Instances("org"); len(list) != 2 || list[0].Labels["zone"] != "a" {
					t.Errorf("instances = %v", list)
					return
				}
			}
		})
	}
	for n := range 4 {
		b.reach(b.feed.PutLabels("org", "1", `{"version":"3"}`, start.Add(time.Hour)))
		b.reach(b.feed.DeleteLabels("org", "1"))
		b.below.current.Store(b.below.Load().With("lic", []registry.Instance{{ID: string(rune('a' + n)), Address: "h:9"}}))
	}
	close(done)
	loading.Wait()
}

// BenchmarkLoad is what each request pays.
func BenchmarkLoad(b *testing.B) {
	below := new(listing)
	below.current.Store(registry.NewSnapshot(map[string][]registry.Instance{"org": {{ID: "1", Address: "h:1"}}}))
	store := new(records.Store)
	r := overlay.New(below, func() *records.Overlays { return store.Load().Overlays() }, time.Now)
	for b.Loop() {
		if r.Load() == nil {
			b.Fatal("no snapshot")
		}
	}
}
