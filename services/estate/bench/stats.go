package bench

import (
	"fmt"
	"slices"
)

// values are the results of one thing, in the order of the rounds.
type values []float64

// median returns the middle value, 0 of none.
func (v values) median() float64 {
	if len(v) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(v))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// format gives the median and the range of all rounds, in a format of one number.
func (v values) format(number string) string {
	if len(v) == 0 {
		return "–"
	}
	return fmt.Sprintf(number+" ("+number+"–"+number+")", v.median(), slices.Min(v), slices.Max(v))
}

// ratio is that of two medians, with the range of the rounds' own ratios: a round
// of one is set against the round of the other that was next to it.
type ratio struct {
	of     float64
	rounds values
}

func ratioOf(a, b values) ratio {
	r := ratio{of: a.median() / b.median()}
	for i := range min(len(a), len(b)) {
		r.rounds = append(r.rounds, a[i]/b[i])
	}
	return r
}

func (r ratio) String() string {
	if len(r.rounds) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", r.of, slices.Min(r.rounds), slices.Max(r.rounds))
}

// quantile returns the value below which the given part of all lies, 0 of none. It
// sorts v.
func quantile[T ~int64 | ~float64](v []T, part float64) T {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[min(len(v)-1, int(part*float64(len(v))))]
}
