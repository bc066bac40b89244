package routing_test

import (
	"math"
	"testing"

	"specialroutes.example/services/routing"
	"specialroutes.example/services/routing/routingtest"
)

func TestCountMoves(t *testing.T) {
	t.Parallel()
	const n = 10_000
	weighted := func(weights ...int64) *routing.Route {
		return routingtest.Compile(t, routingtest.Weighted("s", weights...))
	}
	inactive := routingtest.Weighted("s", 1, 1)
	inactive.Active = new(false)
	tests := []struct {
		name          string
		before, after *routing.Route
		share         float64
		from, to      string // of the only move
	}{
		{"nothing changes", weighted(9, 1), weighted(9, 1), 0, "", ""},
		{"the same shares", weighted(9, 1), weighted(90, 10), 0, "", ""},
		{"a tenth more", weighted(9, 1), weighted(8, 2), 0.1, "v0", "v1"},
		{"a tenth less", weighted(8, 2), weighted(9, 1), 0.1, "v1", "v0"},
		{"switched off", weighted(1, 1), routingtest.Compile(t, inactive), 0.5, "v1", "v0"},
		{"created", nil, routingtest.Compile(t, routingtest.Book("s", 7, "http://h")), 0.3, "default", "new"},
		{"deleted", routingtest.Compile(t, routingtest.Book("s", 7, "http://h")), nil, 0.3, "new", "default"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := routing.CountMoves(tt.before, tt.after, n)
			deviation := math.Sqrt(n * tt.share * (1 - tt.share))
			if m.Sample != n || math.Abs(float64(m.Moved)-n*tt.share) > 5*deviation {
				t.Errorf("%d of %d move, want %.0f ± %.0f", m.Moved, m.Sample, n*tt.share, 5*deviation)
			}
			if tt.share == 0 {
				if m.Between == nil || len(m.Between) != 0 {
					t.Errorf("Between = %v, want an empty list", m.Between)
				}
				return
			}
			if want := (routing.Move{From: tt.from, To: tt.to, Keys: m.Moved}); len(m.Between) != 1 || m.Between[0] != want {
				t.Errorf("Between = %v, want %v", m.Between, want)
			}
		})
	}
}
