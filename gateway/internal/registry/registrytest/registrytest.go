// Package registrytest holds what every registry must do, as one suite that each
// adapter's tests run.
package registrytest

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"specialroutes.example/gateway/internal/registry"
)

// Open returns a registry that lists the given instances. The adapter's test
// ends it with t.Cleanup.
type Open func(t *testing.T, services map[string][]registry.Instance) registry.Registry

// Exercise runs the suite.
func Exercise(t *testing.T, open Open) {
	t.Run("instances are listed by ID", func(t *testing.T) { testListed(t, open) })
	t.Run("labels are kept", func(t *testing.T) { testLabels(t, open) })
	t.Run("an unknown service has no instances", func(t *testing.T) { testUnknown(t, open) })
	t.Run("what cannot be used is set aside alone", func(t *testing.T) { testSetAside(t, open) })
	t.Run("a failed connect takes no listed instance out", func(t *testing.T) { testConnectFailed(t, open) })
	t.Run("equal data swap nothing", func(t *testing.T) { testStable(t, open) })
	t.Run("many requests read at once", func(t *testing.T) { testConcurrent(t, open) })
}

// ready opens a registry and waits until it knows its instances.
func ready(t *testing.T, open Open, services map[string][]registry.Instance) registry.Registry {
	t.Helper()
	r := open(t, services)
	select {
	case <-r.Ready():
	case <-t.Context().Done():
		t.Fatal("the registry never became ready")
	}
	if got := r.Status().Source; got != registry.Live {
		t.Fatalf("Status().Source = %q, want %q", got, registry.Live)
	}
	return r
}

func ids(instances []*registry.Instance) []string {
	var all []string
	for _, i := range instances {
		all = append(all, i.ID)
	}
	return all
}

func testListed(t *testing.T, open Open) {
	r := ready(t, open, map[string][]registry.Instance{
		"a": {{ID: "a2", Address: "10.0.0.2:80"}, {ID: "a1", Address: "localhost:81"}, {ID: "a3", Address: "[::1]:82"}},
		"b": {{ID: "a1", Address: "10.0.0.4:80"}},
	})
	got := r.Load().Instances("a")
	if want := []string{"a1", "a2", "a3"}; !slices.Equal(ids(got), want) {
		t.Fatalf("IDs = %v, want %v", ids(got), want)
	}
	for i, want := range []registry.Instance{
		{ID: "a1", Service: "a", Address: "localhost:81", ByName: true},
		{ID: "a2", Service: "a", Address: "10.0.0.2:80"},
		{ID: "a3", Service: "a", Address: "[::1]:82"},
	} {
		got := *got[i]
		got.Labels = nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("instance = %+v, want %+v", got, want)
		}
	}
	if got, want := r.Load().Services(), []string{"a", "b"}; !slices.Equal(got, want) {
		t.Errorf("Services = %v, want %v", got, want)
	}
}

func testLabels(t *testing.T, open Open) {
	r := ready(t, open, map[string][]registry.Instance{
		"a": {{ID: "a1", Address: "10.0.0.1:80", Labels: map[string]string{"version": "1.0.0", "zone": "a"}}},
	})
	got := r.Load().Instances("a")[0].Labels
	for key, want := range map[string]string{"version": "1.0.0", "zone": "a"} {
		if got[key] != want {
			t.Errorf("label %q = %q, want %q", key, got[key], want)
		}
	}
}

func testUnknown(t *testing.T, open Open) {
	r := ready(t, open, map[string][]registry.Instance{"a": {{ID: "a1", Address: "10.0.0.1:80"}}})
	if got := r.Load().Instances("nobody"); len(got) != 0 {
		t.Errorf("Instances(nobody) = %v, want none", ids(got))
	}
}

func testSetAside(t *testing.T, open Open) {
	r := ready(t, open, map[string][]registry.Instance{
		"a": {{ID: "zero", Address: "10.0.0.1:0"}, {ID: "good", Address: "10.0.0.2:80"}, {ID: "bad", Address: "no/host:80"}},
	})
	if got := ids(r.Load().Instances("a")); !slices.Equal(got, []string{"good"}) {
		t.Errorf("usable = %v, want good alone", got)
	}
	aside := make(map[string]bool)
	for _, s := range r.Load().SetAside() {
		aside[s.Service+"/"+s.ID] = s.Reason != ""
	}
	if want := map[string]bool{"a/zero": true, "a/bad": true}; !maps.Equal(aside, want) {
		t.Errorf("set aside with a reason = %v, want %v", aside, want)
	}
}

func testConnectFailed(t *testing.T, open Open) {
	r := ready(t, open, map[string][]registry.Instance{"a": {{ID: "a1", Address: "10.0.0.1:80"}}})
	r.ConnectFailed("a", "a1")
	r.ConnectFailed("a", "nobody")
	r.ConnectFailed("nobody", "a1")
	if got := ids(r.Load().Instances("a")); !slices.Equal(got, []string{"a1"}) {
		t.Errorf("Instances(a) = %v, want a1", got)
	}
}

func testStable(t *testing.T, open Open) {
	r := ready(t, open, map[string][]registry.Instance{"a": {{ID: "a1", Address: "10.0.0.1:80"}}})
	if first := r.Load(); r.Load() != first {
		t.Error("two loads without a change give two snapshots")
	}
}

func testConcurrent(t *testing.T, open Open) {
	r := ready(t, open, map[string][]registry.Instance{"a": {{ID: "a1", Address: "10.0.0.1:80"}}})
	done := make(chan int)
	for range 8 {
		go func() {
			seen := 0
			for range 1000 {
				seen += len(r.Load().Instances("a"))
			}
			done <- seen
		}()
	}
	for range 8 {
		if got := <-done; got != 1000 {
			t.Errorf("a reader saw %d instances in 1000 loads", got)
		}
	}
}
