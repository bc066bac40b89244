package filter

// routeHeaders tells the upstream for which variant it answers, and why.
func routeHeaders(ex *Exchange) error {
	h := ex.Request.Header
	h[RouteReason] = ex.line(ex.Entry.Reason)
	ex.Use(ex.Pick, h)
	return nil
}
