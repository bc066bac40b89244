package routing

// Score is the sticky formula, for its test vectors.
var Score = score
