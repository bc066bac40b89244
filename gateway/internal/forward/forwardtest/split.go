package forwardtest

import (
	"math"
	"testing"

	"specialroutes.example/services/routing"
)

// testSplit sends calls that the record divides, and looks who answered.
func (s *suite) testSplit(t *testing.T) {
	t.Run("by the record's weights", s.testShares)
	t.Run("the alternate sees the call, the old service nothing of it", s.testAlternate)
	t.Run("no record and an inactive one", s.testNoRecord)
}

func (s *suite) testShares(t *testing.T) {
	old, alternate := newUpstream(t, ok("OLD")), newUpstream(t, ok("NEW"))
	for weight, share := range map[int64]float64{0: 1, 1: .9, 5: .5, 9: .1, 10: 0} {
		calls := 500
		if weight == 5 {
			calls = 2000
		}
		g := s.gateway(t, setup{
			instances: []string{old.address()},
			records:   []*routing.Record{bookRecord(alternate.URL, weight)},
			draw:      seeded(uint64(weight)),
		})
		c := g.dial(t)
		seen := 0
		for range calls {
			c.send(head("GET", "/x"))
			a := c.read("GET")
			want := map[string]string{"OLD": "old", "NEW": "new"}[a.body]
			if a.Header.Get("X-Route-Variant") != want || a.Header.Get("X-Route-Reason") != "draw" {
				t.Fatalf("%s says variant %q for %q", a.body, a.Header.Get("X-Route-Variant"), a.Header.Get("X-Route-Reason"))
			}
			if a.body == "NEW" {
				seen++
			}
		}
		n := float64(calls)
		if most := 5 * math.Sqrt(n*share*(1-share)); math.Abs(float64(seen)-n*share) > most {
			t.Errorf("weight %d: %d of %d calls went to the alternate, want %v ± %v", weight, seen, calls, n*share, most)
		}
	}
}

func (s *suite) testAlternate(t *testing.T) {
	old := newUpstream(t, ok("OLD"))
	alternate, heads := recording(t)
	g := s.gateway(t, setup{
		instances: []string{old.address()},
		records:   []*routing.Record{bookRecord("http://"+alternate.address(), 5)},
		draw:      always(6),
	})
	g.get(t, "/v1/%7Bid%7D?a=%zz;b", "Authorization: x").is(t, 200, "ok")
	got := <-heads
	for name, want := range map[string]string{
		"Host": alternate.address(), "X-Route-Variant": "new", "X-Route-Reason": "draw", "Authorization": "x",
	} {
		if lines := fieldLines(got, name); len(lines) != 1 || lines[0] != want {
			t.Errorf("%s = %q, want %q", name, lines, want)
		}
	}
	if n, o := alternate.calls.Load(), old.calls.Load(); n != 1 || o != 0 {
		t.Errorf("alternate called %d times, old %d; want 1, 0", n, o)
	}
	e := g.entries.only(t)
	if e.Variant != "new" || e.Reason != "draw" || e.Instance != alternate.address() || e.Fallback != "" || e.Retries != 0 {
		t.Errorf("logged %+v", e)
	}
}

func (s *suite) testNoRecord(t *testing.T) {
	old := newUpstream(t, ok("OLD"))
	inactive := bookRecord("http://"+closedPort(t), 0)
	inactive.Active = new(false)
	for _, tt := range []struct {
		records         []*routing.Record
		variant, reason string
	}{
		{nil, "default", "no-record"},
		{[]*routing.Record{inactive}, "old", "inactive"},
	} {
		g := s.gateway(t, setup{instances: []string{old.address()}, records: tt.records, draw: always(10)})
		a := g.get(t, "/x")
		a.is(t, 200, "OLD")
		if v, r := a.Header.Get("X-Route-Variant"), a.Header.Get("X-Route-Reason"); v != tt.variant || r != tt.reason {
			t.Errorf("variant %q for %q, want %q, %q", v, r, tt.variant, tt.reason)
		}
	}
}
