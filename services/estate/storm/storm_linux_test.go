package storm_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"specialroutes.example/services/estate"
)

// storm is many clients at the same time. It lasts until hold has passed and every
// client has gone, and returns what did not go as it should.
type storm struct {
	name    string
	clients int
	run     func(ctx context.Context, g *gateway, n int, hold time.Duration) error
}

// perClient is what the gateway's memory may grow by for each client.
const perClient = 512 << 10

// storms are all of them. The uploads come first: what they need is counted from what
// a gateway holds that has done nothing yet.
func storms() []storm {
	return []storm{
		{"uploads of a declared GiB to an upstream that takes 1 MB/s", 100, hugeUploads},
		{"heads that never end", 500, slowHeads},
		{"slow readers", 500, slowReaders},
		{"slow writers", 500, slowWriters},
		{"idle WebSockets through 1,000 writes of their record", 1000, webSockets},
	}
}

// fit is how many of the storms, from the end, can be mixed.
const fit = 3

// together is the last ones at the same time.
func together() storm {
	mixed := storms()
	mixed = mixed[len(mixed)-fit:]
	total := 0
	for _, s := range mixed {
		total += s.clients
	}
	return storm{"slow readers, slow writers and WebSockets together", total,
		func(ctx context.Context, g *gateway, _ int, hold time.Duration) error {
			return each(len(mixed), func(i int) error { return mixed[i].run(ctx, g, mixed[i].clients, hold) })
		}}
}

// TestGateway_ComesToRestAfterEachStorm runs each storm once, the last ones at the
// same time. With -soak it runs each alone as well, on a gateway without the loop
// too, and again until the time is over.
func TestGateway_ComesToRestAfterEachStorm(t *testing.T) {
	gateways := []*gateway{newGateway(t, 0)}
	alone := storms()
	all := append(alone[:len(alone)-fit:len(alone)-fit], together())
	if shared.soak > 0 {
		gateways = append(gateways, newGateway(t, 1))
		all = append(storms(), together())
	}
	for _, g := range gateways {
		g.base = g.measure(t)
	}
	for end := time.Now().Add(shared.soak); !t.Failed(); {
		for _, s := range all {
			for _, g := range gateways {
				t.Run(s.name+"/"+g.name, func(t *testing.T) { s.test(t, g) })
			}
		}
		if time.Now().After(end) {
			break
		}
	}
	if shared.soak > 0 {
		for _, g := range gateways {
			t.Run("pipes/"+g.name, g.givesPipesBack)
		}
	}
}

// test runs a storm and looks at what it did to the gateway.
func (s storm) test(t *testing.T, g *gateway) {
	g.resetPeak(t)
	before := g.measure(t)
	ctx, cancel := context.WithTimeout(t.Context(), shared.hold()+2*time.Minute)
	defer cancel()
	began := time.Now()
	if err := s.run(ctx, g, s.clients, shared.hold()); err != nil {
		t.Error(err)
	}
	if pid := g.process.PID(); pid != g.pid {
		t.Fatalf("the gateway's process is %d now, was %d", pid, g.pid)
	}
	lasted := time.Since(began)
	after := g.rest(t)
	grown := after.peak - before.resident
	if limit := int64(s.clients) * perClient; grown > limit {
		t.Errorf("the gateway's memory grew by %d KiB, %d KiB a client; want no more than %d KiB", grown>>10, grown>>10/int64(s.clients), limit>>10)
	}
	if t.Failed() {
		t.Logf("what the gateway says of it:\n%s", g.complaints())
	}
	t.Logf("%d clients in %.1f s: memory %d → %d MiB at most (%.0f KiB a client) → %d MiB; at rest after another %.1f s with %d goroutines (%d at the start) and %d descriptors (%d), pipes excepted (%d)",
		s.clients, lasted.Seconds(), before.resident>>20, after.peak>>20, float64(grown)/(1<<10)/float64(s.clients), after.resident>>20,
		time.Since(began).Seconds()-lasted.Seconds(), after.goroutines, g.base.goroutines, after.descriptors, g.base.descriptors, after.pipes)
}

// each calls f for 0 to n-1 at the same time and returns their errors, the first few
// in full.
func each(n int, f func(i int) error) error {
	const told = 5
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		errs  []error
	)
	for i := range n {
		group.Go(func() {
			if err := f(i); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	group.Wait()
	if len(errs) > told {
		errs = append(errs[:told:told], fmt.Errorf("and %d more of %d", len(errs)-told, n))
	}
	return errors.Join(errs...)
}

// newGateway returns the gateway of the estate with that number.
func newGateway(t *testing.T, i int) *gateway {
	t.Helper()
	g := &gateway{name: "loop", process: shared.estate.Process(estate.Gateway), url: shared.estate.GatewayURL(i), admin: shared.estate.GatewayAdminURL(i)}
	if i > 0 {
		g.name, g.process = "without loop", shared.estate.Process(fmt.Sprintf("%s-%d", estate.Gateway, i))
	}
	g.pid = g.process.PID()
	return g
}
