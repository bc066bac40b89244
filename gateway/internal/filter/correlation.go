package filter

// correlationMost is the longest correlation ID that is kept.
const correlationMost = 128

// correlation gives every request one ID: the client's own if it is usable, else
// a new one. It never refuses a request for it.
func correlation(newID func() string) func(*Exchange) error {
	return func(ex *Exchange) error {
		h := ex.Request.Header
		if lines := h[CorrelationID]; len(lines) == 1 && UsableCorrelationID(lines[0]) {
			ex.Entry.CorrelationID = lines[0]
			return nil
		}
		id := newID()
		h[CorrelationID] = ex.line(id)
		ex.Entry.CorrelationID, ex.Entry.CorrelationReplaced = id, true
		return nil
	}
}

// UsableCorrelationID reports whether an ID is kept: 1 to 128 of A-Z a-z 0-9 . _ : / + = @ -.
func UsableCorrelationID(id string) bool {
	if id == "" || len(id) > correlationMost {
		return false
	}
	for i := range len(id) {
		if !idByte(id[i]) {
			return false
		}
	}
	return true
}

func idByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	switch c {
	case '.', '_', ':', '/', '+', '=', '@', '-':
		return true
	}
	return false
}
