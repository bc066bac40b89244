package balance

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/registry"
)

// large is an estate of so many instances: one service that is asked for, with a
// thousandth of them but ten at least, and others of ten each.
func large(count int) (*registry.Snapshot, []registry.Instance) {
	mine := max(10, count/1000)
	services := map[string][]registry.Instance{"a": nil}
	for i := range count {
		instance := registry.Instance{
			ID: fmt.Sprintf("i%06d", i), Address: fmt.Sprintf("10.%d.%d.%d:80", i>>16, i>>8&255, i&255),
			Labels: map[string]string{"version": fmt.Sprintf("%d", i%2), "app": "x", "zone": "a"},
		}
		service := "a"
		if i >= mine {
			service = fmt.Sprintf("s%d", i/10)
		}
		services[service] = append(services[service], instance)
	}
	return registry.NewSnapshot(services), services["a"]
}

// BenchmarkPick is what a request pays for its instance, with few and with very many.
func BenchmarkPick(b *testing.B) {
	for _, count := range []int{10, 100_000} {
		s, _ := large(count)
		for name, w := range map[string]Want{
			"plain":  {Service: "a", Instances: s},
			"labels": {Service: "a", Instances: s, Route: ruled(b, "a", lenient("version")), Header: http.Header{"Version": {"1"}}},
		} {
			b.Run(fmt.Sprintf("instances=%d/%s", count, name), func(b *testing.B) {
				balancer := New(Options{Now: time.Now})
				b.ReportAllocs()
				for b.Loop() {
					p := balancer.Select(w).Next()
					p.Answered()
					p.Release()
				}
			})
		}
	}
}

// BenchmarkPickBesideATrippedOne is that in a large service of which one instance is
// not available.
func BenchmarkPickBesideATrippedOne(b *testing.B) {
	for _, count := range []int{10, 100_000} {
		b.Run(fmt.Sprintf("instances=%d", count), func(b *testing.B) {
			s := registry.NewSnapshot(map[string][]registry.Instance{"a": instances(count)})
			balancer := New(Options{Now: time.Now})
			for range tripAt {
				balancer.circuit(circuitKey{"a", "a1"}).fail(time.Now().Add(time.Hour), false)
			}
			for b.Loop() {
				p := balancer.Select(Want{Service: "a", Instances: s}).Next()
				p.Answered()
				p.Release()
			}
		})
	}
}

// BenchmarkChange is one change of one instance, from the registry's answer to the
// first request that picks by it, among 100,000 instances; in one service that is
// asked for they are all of them.
func BenchmarkChange(b *testing.B) {
	services := make(map[string][]registry.Instance)
	all, mine := large(100_000)
	for _, name := range all.Services() {
		for _, i := range all.Instances(name) {
			services["one"] = append(services["one"], *i)
		}
	}
	for name, set := range map[string]struct {
		s    *registry.Snapshot
		list []registry.Instance
	}{
		"of=100":    {all, mine},
		"of=100000": {registry.NewSnapshot(map[string][]registry.Instance{"a": services["one"]}), services["one"]},
	} {
		b.Run(name, func(b *testing.B) {
			balancer, s, n := New(Options{Now: time.Now}), set.s, 0
			for b.Loop() {
				n++
				set.list[n%len(set.list)].Labels = map[string]string{"version": fmt.Sprint(n)}
				s = s.With("a", set.list)
				p := balancer.Select(Want{Service: "a", Instances: s}).Next()
				p.Release()
			}
		})
	}
}
