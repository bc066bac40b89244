// Package strictjson is the project's one JSON decoder for documents that come
// from outside: whatever two readers could take in two ways is refused. It adds
// to github.com/go-json-experiment/json, which refuses duplicate, unknown and
// differently-cased names, that null is refused too, wherever a type does not ask
// for it, and errors which name the member and never a Go type.
package strictjson

import (
	"bytes"
	"errors"
	"io"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Error is a document that was refused. Pointer is the JSON pointer (RFC 6901) of
// the member at fault, "" for the document as a whole. Detail is a plain phrase
// without a value from the document.
type Error struct{ Pointer, Detail string }

// Error names the member and the mistake.
func (e *Error) Error() string {
	if e.Pointer == "" {
		return "the document " + e.Detail
	}
	return e.Pointer + " " + e.Detail
}

// Decode reads one JSON document into v, a pointer to a zero value. It refuses
// duplicate, unknown and differently-cased member names, null anywhere but for the
// values of a NullValues, fractions, exponents and numbers out of range where an integer is wanted, values of another
// type, invalid UTF-8, and anything after the document. The error is an *Error, of
// the first mistake that was found; v is then half filled and of no use.
func Decode(data []byte, v any) error {
	if err := checkText(data, reflect.TypeOf(v)); err != nil {
		return err
	}
	err := json.Unmarshal(data, v, json.RejectUnknownMembers(true))
	var semantic *json.SemanticError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &semantic):
		return &Error{Pointer: string(semantic.JSONPointer), Detail: semanticDetail(semantic)}
	default: // checkText has read the whole text, so this is a fault of v
		return &Error{Detail: "cannot be read: " + err.Error()}
	}
}

// checkText reads data to its end and refuses what is wrong in any document,
// whatever it is decoded into, and null where a value of type t has no use for it.
func checkText(data []byte, t reflect.Type) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return &Error{Detail: "is empty"}
	}
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	for tokens := 0; ; tokens++ {
		if tokens > 0 && dec.StackDepth() == 0 {
			return checkEnd(dec)
		}
		tok, err := dec.ReadToken()
		if err != nil {
			return syntaxError(err)
		}
		if tok.Kind() == 'n' && !takesNull(t, dec.StackPointer()) {
			return &Error{Pointer: string(dec.StackPointer()), Detail: "is null; leave it out instead"}
		}
	}
}

// checkEnd refuses whatever follows the document but white space.
func checkEnd(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); errors.Is(err, io.EOF) {
		return nil
	}
	return &Error{Detail: "is followed by more data"}
}
