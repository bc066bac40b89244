package routing

import "errors"

// ErrNotExpressible is returned for a record that the book's view cannot show.
var ErrNotExpressible = errors.New("the record cannot be expressed in the book's view")

// The names that the book's view gives to the variants it creates.
const (
	BookDefault   = DefaultName
	BookAlternate = "alternate"
)

// bookSum is the sum of weights of the book's view: it counts in tenths.
const bookSum = 10

// Book is the book's view of a record: two variants and ten tenths. Weight is the
// tenths that STAY on the default variant; the alternate, at Endpoint, gets the
// others. A nil pointer is an absent member.
type Book struct {
	ServiceName *string `json:"serviceName,omitzero"`
	Active      *string `json:"active,omitzero"` // Y or N
	Endpoint    *string `json:"endpoint,omitzero"`
	Weight      *int64  `json:"weight,omitzero"` // 0..10
}

// FromBook returns the record that a PUT of the book's view makes of before, the
// record there is, or nil when there is none. Without one it has the variants
// default and alternate; with one it keeps their names and all else, and takes
// active, endpoint and the two weights from b. before is not changed. The error is
// ErrNotExpressible when before is not such a record, or a ValidationError whose
// pointers are members of b.
func FromBook(b Book, before *Record, opts ...Option) (*Record, error) {
	if err := b.validate(optionsOf(opts)).Err(); err != nil {
		return nil, err
	}
	r := &Record{
		Service:  *b.ServiceName,
		Variants: []Variant{{Name: BookDefault}, {Name: BookAlternate}},
		Default:  new(BookDefault),
	}
	stays, goes := 0, 1
	if before != nil {
		var ok bool
		if stays, goes, ok = before.bookVariants(); !ok {
			return nil, ErrNotExpressible
		}
		r = before.Clone()
		r.Service = *b.ServiceName
	}
	r.Active = new(*b.Active == "Y")
	r.Variants[stays].Weight = new(*b.Weight)
	r.Variants[goes].Weight = new(bookSum - *b.Weight)
	r.Variants[goes].Endpoint = new(*b.Endpoint)
	return r, nil
}

// ToBook returns the book's view of a valid record, or ErrNotExpressible.
func ToBook(r *Record) (Book, error) {
	stays, goes, ok := r.bookVariants()
	if !ok {
		return Book{}, ErrNotExpressible
	}
	active := "N"
	if *r.Active {
		active = "Y"
	}
	return Book{
		ServiceName: new(r.Service),
		Active:      &active,
		Endpoint:    new(*r.Variants[goes].Endpoint),
		Weight:      new(*r.Variants[stays].Weight),
	}, nil
}

// bookVariants returns the indexes of the default variant and of the other one,
// and whether the book's view can show the record.
func (r *Record) bookVariants() (stays, goes int, ok bool) {
	if r.Active == nil || r.Default == nil || len(r.Variants) != 2 || len(r.Rules) > 0 || r.Sticky != nil {
		return 0, 0, false
	}
	if r.Variants[1].Name == *r.Default {
		stays = 1
	}
	goes = 1 - stays
	a, b := &r.Variants[stays], &r.Variants[goes]
	ok = a.Name == *r.Default && a.Endpoint == nil && a.Service == nil && a.Selector == nil &&
		b.Endpoint != nil && a.Weight != nil && b.Weight != nil &&
		*a.Weight >= 0 && *b.Weight >= 0 && *a.Weight+*b.Weight == bookSum
	return stays, goes, ok
}

// validate returns everything that is wrong with b.
func (b *Book) validate(o options) ValidationError {
	var errs ValidationError
	add := func(member, detail string) {
		errs = append(errs, FieldError{Pointer: "/" + member, Detail: detail})
	}
	if b.ServiceName == nil {
		add("serviceName", "is missing")
	} else if !isName(*b.ServiceName) {
		add("serviceName", nameDetail)
	}
	if b.Active == nil {
		add("active", "is missing")
	} else if *b.Active != "Y" && *b.Active != "N" {
		add("active", `must be "Y" or "N"`)
	}
	if b.Endpoint == nil {
		add("endpoint", "is missing")
	} else if _, err := parseEndpoint(*b.Endpoint, o); err != nil {
		add("endpoint", err.Error())
	}
	if b.Weight == nil {
		add("weight", "is missing")
	} else if *b.Weight < 0 || *b.Weight > bookSum {
		add("weight", "must be an integer from 0 to 10: the tenths that stay on the default variant")
	}
	return errs
}
