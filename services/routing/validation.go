package routing

import "strings"

// FieldError is one mistake in a record. Pointer is the JSON pointer (RFC 6901)
// of the member at fault, "" for the document as a whole. It converts to
// problem.FieldError.
type FieldError struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

// ValidationError is everything that is wrong with a record, in the order of the
// document. A nil ValidationError means that nothing is; because a nil slice in
// an error is not a nil error, hand it on with Err.
type ValidationError []FieldError

// Error names every member at fault.
func (e ValidationError) Error() string {
	if len(e) == 0 {
		return "no errors"
	}
	var b strings.Builder
	for i, f := range e {
		if i > 0 {
			b.WriteString("; ")
		}
		if f.Pointer != "" {
			b.WriteString(f.Pointer)
			b.WriteString(": ")
		}
		b.WriteString(f.Detail)
	}
	return b.String()
}

// Err returns e as an error, nil when there is nothing wrong.
func (e ValidationError) Err() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// Option changes what Validate and Compile permit.
type Option func(*options)

type options struct{ allowLinkLocal bool }

// AllowLinkLocal permits endpoints with link-local and metadata addresses, which
// are refused otherwise. It is the operator's word, never the record's.
func AllowLinkLocal() Option { return func(o *options) { o.allowLinkLocal = true } }

func optionsOf(list []Option) options {
	var o options
	for _, set := range list {
		set(&o)
	}
	return o
}
