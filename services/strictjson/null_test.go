package strictjson_test

import (
	"errors"
	"testing"

	"specialroutes.example/services/strictjson"
)

type nulls map[string]*string

func (nulls) NullValues() {}

type withNulls struct {
	Nulls  nulls             `json:"nulls,omitzero"`
	Plain  map[string]string `json:"plain,omitzero"`
	Inside []*withNulls      `json:"inside,omitzero"`
}

func TestDecode_NullIsAValueWhereATypeAsksForIt(t *testing.T) {
	t.Parallel()
	var got withNulls
	if err := strictjson.Decode([]byte(`{"inside":[{"nulls":{"a":null,"b":"x"}}]}`), &got); err != nil {
		t.Fatal(err)
	}
	found := got.Inside[0].Nulls
	if a, there := found["a"]; !there || a != nil || *found["b"] != "x" {
		t.Errorf("decoded %v, want a null and b of x", found)
	}
	var alone nulls
	if err := strictjson.Decode([]byte(`{"a":null}`), &alone); err != nil || len(alone) != 1 {
		t.Errorf("Decode = %v, %v, want a", alone, err)
	}
}

func TestDecode_NullIsRefusedBesideWhereATypeAsksForIt(t *testing.T) {
	t.Parallel()
	for data, pointer := range map[string]string{
		`null`:                              "",
		`{"nulls":null}`:                    "/nulls",
		`{"nulls":{"a":[null]}}`:            "/nulls/a/0",
		`{"nulls":{"a":{"b":null}}}`:        "/nulls/a/b",
		`{"Nulls":{"a":null}}`:              "/Nulls/a",
		`{"plain":{"a":null}}`:              "/plain/a",
		`{"inside":[null]}`:                 "/inside/0",
		`{"other":{"nulls":{"a":null}}}`:    "/other/nulls/a",
		`{"inside":[{"plain":{"a":null}}]}`: "/inside/0/plain/a",
	} {
		err := strictjson.Decode([]byte(data), new(withNulls))
		var e *strictjson.Error
		if !errors.As(err, &e) || e.Pointer != pointer || e.Detail != "is null; leave it out instead" {
			t.Errorf("Decode(%s) = %v, want null refused at %q", data, err, pointer)
		}
	}
}
