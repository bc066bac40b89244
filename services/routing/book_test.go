package routing_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"specialroutes.example/services/routing"
	"specialroutes.example/services/routing/routingtest"
)

func book(weight int64) routing.Book {
	return routing.Book{ServiceName: new("organizationservice"), Active: new("Y"), Endpoint: new("http://orgservice-new:8087"), Weight: new(weight)}
}

func TestFromBook_Creates(t *testing.T) {
	t.Parallel()
	for weight := int64(0); weight <= 10; weight++ {
		r, err := routing.FromBook(book(weight), nil)
		if err != nil {
			t.Fatal(err)
		}
		want := &routing.Record{
			Service: "organizationservice", Active: new(true), Default: new("default"),
			Variants: []routing.Variant{
				{Name: "default", Weight: new(weight)},
				{Name: "alternate", Weight: new(10 - weight), Endpoint: new("http://orgservice-new:8087")},
			},
		}
		if !reflect.DeepEqual(r, want) {
			t.Errorf("FromBook = %s, want %s", asJSON(t, r), asJSON(t, want))
		}
		if errs := r.Validate(); errs != nil {
			t.Errorf("the record of weight %d is not valid: %v", weight, errs)
		}
		back, err := routing.ToBook(r)
		if err != nil || !reflect.DeepEqual(back, book(weight)) {
			t.Errorf("ToBook = %s, %v, want what was put", asJSON(t, back), err)
		}
	}
}

// A PUT over a record that the view can show keeps all that the view does not
// know: names, order, owner, label rules.
func TestFromBook_KeepsWhatItDoesNotShow(t *testing.T) {
	t.Parallel()
	const document = `{"service": "organizationservice", "active": true,
		"variants": [{"name": "new", "weight": 3, "endpoint": "http://old-place"}, {"name": "old", "weight": 7}], "default": "old",
		"onUnavailable": "fail", "rules": [], "labelRules": [{"header": "version", "label": "version", "mode": "lenient"}], "owner": "us", "ends": "2026-12-31"}`
	before := decode(t, document)
	b := book(1)
	b.Active = new("N")
	r, err := routing.FromBook(b, before)
	if err != nil {
		t.Fatal(err)
	}
	want := decode(t, document)
	want.Active = new(false)
	want.Variants[0].Weight, want.Variants[0].Endpoint, want.Variants[1].Weight = new(int64(9)), new("http://orgservice-new:8087"), new(int64(1))
	if !reflect.DeepEqual(r, want) {
		t.Errorf("FromBook = %s, want %s", asJSON(t, r), asJSON(t, want))
	}
	if !reflect.DeepEqual(before, decode(t, document)) {
		t.Error("FromBook changes the record before")
	}
}

func TestFromBook_Refuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*routing.Book)
		want   []string
	}{
		{"nothing", func(b *routing.Book) { *b = routing.Book{} }, []string{"/serviceName", "/active", "/endpoint", "/weight"}},
		{"weight -1", func(b *routing.Book) { b.Weight = new(int64(-1)) }, []string{"/weight"}},
		{"weight 11", func(b *routing.Book) { b.Weight = new(int64(11)) }, []string{"/weight"}},
		{"active in lower case", func(b *routing.Book) { b.Active = new("y") }, []string{"/active"}},
		{"active empty", func(b *routing.Book) { b.Active = new("") }, []string{"/active"}},
		{"endpoint empty", func(b *routing.Book) { b.Endpoint = new("") }, []string{"/endpoint"}},
		{"endpoint of metadata", func(b *routing.Book) { b.Endpoint = new("http://169.254.169.254/latest") }, []string{"/endpoint"}},
		{"service name empty", func(b *routing.Book) { b.ServiceName = new("") }, []string{"/serviceName"}},
		{"the wildcard", func(b *routing.Book) { b.ServiceName = new("*") }, []string{"/serviceName"}},
		{"all at once", func(b *routing.Book) {
			*b = routing.Book{ServiceName: new("A"), Active: new("X"), Endpoint: new("h"), Weight: new(int64(99))}
		}, []string{"/serviceName", "/active", "/endpoint", "/weight"}},
	} {
		b := book(5)
		tt.change(&b)
		_, err := routing.FromBook(b, nil)
		var v routing.ValidationError
		if !errors.As(err, &v) {
			t.Errorf("%s: %v, want a ValidationError", tt.name, err)
			continue
		}
		var pointers []string
		for _, e := range v {
			pointers = append(pointers, e.Pointer)
		}
		if !slices.Equal(pointers, tt.want) {
			t.Errorf("%s: errors of %q, want %q", tt.name, pointers, tt.want)
		}
	}
}

func TestBook_NotExpressible(t *testing.T) {
	t.Parallel()
	with := func(change func(*routing.Record)) *routing.Record {
		r := routingtest.Book("organizationservice", 5, "http://h")
		change(r)
		return r
	}
	for name, r := range map[string]*routing.Record{
		"no variants": decode(t, `{"service": "organizationservice", "active": true}`),
		"three variants": with(func(r *routing.Record) {
			r.Variants = append(r.Variants, routing.Variant{Name: "c", Weight: new(int64(0))})
		}),
		"a sum that is not 10":          with(func(r *routing.Record) { r.Variants[0].Weight = new(int64(6)) }),
		"a default with an endpoint":    with(func(r *routing.Record) { r.Variants[0].Endpoint = new("http://g") }),
		"a default with a service":      with(func(r *routing.Record) { r.Variants[0].Service = new("g") }),
		"a default with a selector":     with(func(r *routing.Record) { r.Variants[0].Selector = map[string]string{"v": "1"} }),
		"an alternate without endpoint": with(func(r *routing.Record) { r.Variants[1].Endpoint = nil }),
		"the default at the endpoint":   with(func(r *routing.Record) { r.Default = new("new") }),
		"a rule": with(func(r *routing.Record) {
			r.Rules = []routing.Rule{{Name: "r", Variant: new("new"), Match: []routing.Match{{On: "path", Prefix: new("/")}}}}
		}),
		"sticky":       with(func(r *routing.Record) { r.Sticky = &routing.Sticky{By: "client"} }),
		"the wildcard": decode(t, `{"service": "*", "active": true}`),
	} {
		if errs := r.Validate(); errs != nil {
			t.Errorf("%s: the record is not valid: %v", name, errs)
		}
		if _, err := routing.ToBook(r); !errors.Is(err, routing.ErrNotExpressible) {
			t.Errorf("%s: ToBook = %v, want ErrNotExpressible", name, err)
		}
		if _, err := routing.FromBook(book(5), r); !errors.Is(err, routing.ErrNotExpressible) {
			t.Errorf("%s: FromBook = %v, want ErrNotExpressible", name, err)
		}
	}
}
