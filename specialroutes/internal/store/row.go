package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"specialroutes.example/services/routing"
	"specialroutes.example/services/strictjson"
)

// This file is what the implementations share: how a row becomes a record and a
// record a row.

// FromRow makes a record of what a database holds. It never fails: what may not be
// used is Broken.
func FromRow(service string, at Cursor, raw []byte) Stored {
	s := Stored{Service: service, Revision: at.Revision, Nonce: at.Nonce}
	if !json.Valid(raw) {
		s.Broken = "it is not JSON"
		return s
	}
	s.Raw = bytes.Clone(raw)
	record, err := decode(service, raw)
	if err != nil {
		s.Broken = err.Error()
		return s
	}
	s.Record = record
	return s
}

// decode reads a record and checks that it is valid and the record of its service.
// Endpoints with link-local addresses pass: whether they may be used is the
// operator's word, which the store does not know.
func decode(service string, raw []byte) (*routing.Record, error) {
	var r routing.Record
	if err := strictjson.Decode(raw, &r); err != nil {
		return nil, err
	}
	return &r, check(service, &r)
}

func check(service string, r *routing.Record) error {
	if r.Service != service {
		return fmt.Errorf("/service: it is the record of %q, not of %q", r.Service, service)
	}
	return r.Validate(routing.AllowLinkLocal()).Err()
}

// ToRow writes a record as JSON for the row of a service. The error is ErrInvalid.
func ToRow(service string, r *routing.Record) ([]byte, error) {
	if err := check(service, r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if hasNUL(raw) {
		return nil, fmt.Errorf("%w: a text in it holds the character U+0000", ErrInvalid)
	}
	return raw, nil
}

// recordRow makes the record that a change stores; without a new one it is that of a
// deleted row. The error is ErrInvalid.
func recordRow(service string, at Cursor, next *routing.Record) (Stored, error) {
	if next == nil {
		return Stored{Service: service, Revision: at.Revision, Nonce: at.Nonce}, nil
	}
	raw, err := ToRow(service, next)
	if err != nil {
		return Stored{}, err
	}
	return FromRow(service, at, raw), nil
}

// hasNUL says whether a text in the JSON holds U+0000, which PostgreSQL can not
// keep. In valid JSON that is written \u0000, with an even number of backslashes
// before it.
func hasNUL(raw []byte) bool {
	for rest := raw; ; {
		i := bytes.IndexByte(rest, '\\')
		if i < 0 || i+1 >= len(rest) {
			return false
		}
		if bytes.HasPrefix(rest[i+1:], []byte("u0000")) {
			return true
		}
		rest = rest[i+2:] // past the backslash and what it escapes
	}
}

// CheckText says whether the databases can keep a text: it is UTF-8 without
// U+0000. A service of any other name can not have a record.
func CheckText(texts ...string) error {
	for _, s := range texts {
		if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			return fmt.Errorf("%w: %q is not UTF-8 without U+0000", ErrInvalid, s)
		}
	}
	return nil
}
