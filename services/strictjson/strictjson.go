// Package strictjson is the project's one JSON decoder for documents that come
// from outside: whatever a reader could take in two ways is refused.
package strictjson

import (
	"github.com/go-json-experiment/json"
)

// Error is a document that was refused. Pointer is the JSON pointer (RFC 6901) of
// the member at fault, "" for the document as a whole.
type Error struct{ Pointer, Detail string }

// Error names the member and the mistake.
func (e *Error) Error() string {
	if e.Pointer == "" {
		return e.Detail
	}
	return e.Pointer + ": " + e.Detail
}

// Decode reads one JSON document into v, a pointer to a zero value. It refuses
// duplicate, unknown and differently-cased member names, null anywhere, fractions,
// exponents and numbers out of range where an integer is wanted, values of another
// type, invalid UTF-8, and anything after the document. The error is an *Error.
func Decode(data []byte, v any) error {
	if err := json.Unmarshal(data, v, json.RejectUnknownMembers(true)); err != nil {
		return &Error{Detail: err.Error()}
	}
	return nil
}
