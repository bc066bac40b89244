package strictjson

import (
	"reflect"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// NullValues is implemented by map types whose values may be null, because null says
// something there that leaving the member out does not. The values must be pointers;
// null makes them nil. Everywhere else null is refused.
type NullValues interface{ NullValues() }

var nullValues = reflect.TypeFor[NullValues]()

// takesNull says whether null at a place in a document is a value of a NullValues,
// when the document is decoded into a value of type t.
func takesNull(t reflect.Type, place jsontext.Pointer) bool {
	var in reflect.Type // what holds the value at the place
	for name := range place.Tokens() {
		for t != nil && t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t == nil {
			return false
		}
		in = t
		t = memberType(t, name)
	}
	return t != nil && in != nil && in.Kind() == reflect.Map && in.Implements(nullValues)
}

// memberType returns the type of what is called name in a value of type t, nil when
// there is nothing of the name.
func memberType(t reflect.Type, name string) reflect.Type {
	switch t.Kind() {
	case reflect.Map, reflect.Slice, reflect.Array:
		return t.Elem()
	case reflect.Struct:
		for i := range t.NumField() {
			known, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if known == name {
				return t.Field(i).Type
			}
		}
	}
	return nil
}
