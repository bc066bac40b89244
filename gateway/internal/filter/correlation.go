package filter

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
)

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

// RandomID returns a new correlation ID in the form of a UUID (RFC 9562, 5.4). Nothing
// is protected by it, so it does not come from the system's source of randomness: that
// takes five times as long.
func RandomID() string {
	var b [16]byte
	binary.NativeEndian.PutUint64(b[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(b[8:], rand.Uint64())
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // version 4, and the variant
	var text [36]byte
	at := 0
	for _, part := range [...][]byte{b[:4], b[4:6], b[6:8], b[8:10], b[10:]} {
		if at > 0 {
			text[at] = '-'
			at++
		}
		at += hex.Encode(text[at:], part)
	}
	return string(text[:])
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
