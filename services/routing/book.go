package routing

import "errors"

// ErrNotExpressible is returned for a record that the book's view cannot show.
var ErrNotExpressible = errors.New("the record cannot be expressed in the book's view")

// Book is the book's view of a record: two variants and ten tenths. Weight is the
// tenths that STAY on the default variant. A nil pointer is an absent member.
type Book struct {
	ServiceName *string `json:"serviceName,omitzero"`
	Active      *string `json:"active,omitzero"` // Y or N
	Endpoint    *string `json:"endpoint,omitzero"`
	Weight      *int64  `json:"weight,omitzero"` // 0..10
}

// FromBook returns the record that a PUT of the book's view makes of before, the
// record there is, or nil when there is none. Without one it has the variants
// default and alternate; with one it keeps their names and all else, and has
// active, endpoint and the two weights from b. before is not changed. The error is
// ErrNotExpressible when before is not such a record, or a ValidationError whose
// pointers are members of b.
func FromBook(b Book, before *Record) (*Record, error) {
	return nil, ErrNotExpressible
}

// ToBook returns the book's view of a record, or ErrNotExpressible.
func ToBook(r *Record) (Book, error) {
	return Book{}, ErrNotExpressible
}
