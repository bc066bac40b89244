package filter

// response puts the correlation ID on the answer, once, over the upstream's.
func response(ex *Exchange) {
	ex.Answer[CorrelationID] = []string{ex.Entry.CorrelationID}
}
