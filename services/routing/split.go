package routing

import "slices"

// split divides the numbers 1..sum among variants in proportion to their
// weights. It is immutable.
type split struct {
	sum     int64
	shares  []share // the default variant first, then record order; weight > 0
	inOrder []share // the same in record order
}

// share is one variant's interval: it ends at upTo and begins after the one
// before it.
type share struct {
	variant int
	weight  int64
	upTo    int64
}

// newSplit builds the split in which variant i has weights[i] and the default
// variant owns the first interval.
func newSplit(weights []int64, def int) split {
	var s split
	add := func(i int) {
		if weights[i] == 0 {
			return
		}
		s.sum += weights[i]
		s.shares = append(s.shares, share{variant: i, weight: weights[i], upTo: s.sum})
	}
	add(def)
	for i := range weights {
		if i != def {
			add(i)
		}
	}
	s.inOrder = slices.Clone(s.shares)
	slices.SortFunc(s.inOrder, func(a, b share) int { return a.variant - b.variant })
	return s
}

// at returns the variant whose interval holds v, which is 1..sum. With the book's
// record this is its rule: the alternate when weight < v, where weight is the
// default variant's part of ten.
func (s *split) at(v int64) int {
	for i := range s.shares {
		if s.shares[i].upTo < v {
			continue
		}
		return s.shares[i].variant
	}
	panic("routing: the draw is above the sum of weights")
}
