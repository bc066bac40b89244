package store

import (
	"crypto/rand"
	"strings"
	"time"
)

// Sources are the time and the randomness that a store works with. The zero value
// takes both from the system.
type Sources struct {
	// Now gives the time that history keeps; nil is time.Now.
	Now func() time.Time

	// Nonce gives a fresh nonce for each change: 1 to 64 characters of a-z and 0-9,
	// never the same twice, also not after a restore from backup. nil is NewNonce.
	// It must be safe for concurrent use.
	Nonce func() string
}

// WithDefaults returns the sources with what is nil filled in.
func (s Sources) WithDefaults() Sources {
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Nonce == nil {
		s.Nonce = NewNonce
	}
	return s
}

// NewNonce returns a nonce of 65 random bits from the system's secure source.
func NewNonce() string {
	const length = 13 // of characters with 5 bits each
	return strings.ToLower(rand.Text()[:length])
}
