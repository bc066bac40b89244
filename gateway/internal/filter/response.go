package filter

// response puts the correlation ID on the answer, once, over the upstream's.
func response(ex *Exchange) {
	ex.Answer[CorrelationID] = ex.line(ex.Entry.CorrelationID)
}
