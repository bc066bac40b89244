package routing

// The sticky formula, for its test vectors and its limits.
var (
	Score   = score
	ScoreOf = scoreOf
)

// OrderOfScores returns the variants in the order in which a split scores them.
func OrderOfScores(weights []int64, def int) (variants []int) {
	for _, s := range newSplit(weights, def).inOrder {
		variants = append(variants, s.variant)
	}
	return variants
}
