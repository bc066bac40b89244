package store

import (
	"errors"
	"strconv"
	"strings"
)

// Cursor is a place in the order of all changes. A revision alone does not name
// one: after a restore from backup the same numbers are given out again, for
// other changes. The nonce, random for each change, tells them apart.
type Cursor struct {
	Revision int64 // 0 in a database that was never written to
	Nonce    string
}

// maxNonce is above the length of all nonces that were ever made, in bytes.
const maxNonce = 64

// ErrCursor says that a text is not a cursor.
var ErrCursor = errors.New("not a cursor: want REVISION.NONCE")

// IsZero says whether the cursor names no place at all.
func (c Cursor) IsZero() bool { return c == Cursor{} }

// String writes the cursor as "42.k3f9"; the zero cursor is "".
func (c Cursor) String() string {
	if c.IsZero() {
		return ""
	}
	return strconv.FormatInt(c.Revision, 10) + "." + c.Nonce
}

// ETag returns the entity tag of what was changed last there, with its quotation marks,
// as it stands in the HTTP header: `"42.k3f9"`.
func (c Cursor) ETag() string { return `"` + c.String() + `"` }

// ParseCursor reads what String wrote; "" is the zero cursor. The error is
// ErrCursor.
func ParseCursor(s string) (Cursor, error) {
	if s == "" {
		return Cursor{}, nil
	}
	revision, nonce, ok := strings.Cut(s, ".")
	n, err := strconv.ParseInt(revision, 10, 64)
	if !ok || err != nil || n < 0 || strconv.FormatInt(n, 10) != revision || !validNonce(nonce) {
		return Cursor{}, ErrCursor
	}
	return Cursor{Revision: n, Nonce: nonce}, nil
}

func validNonce(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && len(s) <= maxNonce
}
