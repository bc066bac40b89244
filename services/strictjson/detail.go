package strictjson

import (
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// syntaxError words an error of the JSON text itself.
func syntaxError(err error) *Error {
	var syntactic *jsontext.SyntacticError
	if !errors.As(err, &syntactic) {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return &Error{Detail: "ends too early"}
		}
		return &Error{Detail: "cannot be read: " + err.Error()}
	}
	pointer := string(syntactic.JSONPointer)
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return &Error{Pointer: pointer, Detail: "occurs twice"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{Pointer: pointer, Detail: "ends too early"}
	default:
		return &Error{Pointer: pointer, Detail: "is not JSON at byte " +
			strconv.FormatInt(syntactic.ByteOffset, 10) + ": " + syntactic.Err.Error()}
	}
}

// semanticDetail words an error of well-formed JSON that does not fit its type.
func semanticDetail(e *json.SemanticError) string {
	switch {
	case errors.Is(e.Err, json.ErrUnknownName):
		return unknownDetail(e.GoType, e.JSONPointer.LastToken())
	case errors.Is(e.Err, strconv.ErrRange):
		return "is out of range"
	case errors.Is(e.Err, strconv.ErrSyntax) && e.JSONKind == '0':
		return "must be an integer, without fraction and exponent"
	}
	want, got := goWord(e.GoType), jsonWord(e.JSONKind)
	if want == "" || got == "" || want == got {
		return "has a value that is not allowed here"
	}
	return "must be " + want + ", not " + got
}

// unknownDetail says that a member is not known, and which one may have been
// meant when only the case differs.
func unknownDetail(t reflect.Type, name string) string {
	const detail = "is not a known member"
	if t == nil || t.Kind() != reflect.Struct {
		return detail
	}
	for i := range t.NumField() {
		known, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if known != "" && strings.EqualFold(known, name) {
			return detail + "; it is spelt " + known
		}
	}
	return detail
}

// goWord names the JSON value that a Go type is read from, "" when unsure.
func goWord(t reflect.Type) string {
	if t == nil {
		return ""
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "an integer"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	default:
		return ""
	}
}

// jsonWord names a JSON value by its kind, "" when unsure.
func jsonWord(k jsontext.Kind) string {
	switch k {
	case '"':
		return "a string"
	case 't', 'f':
		return "true or false"
	case '0':
		return "a number"
	case '[':
		return "a list"
	case '{':
		return "an object"
	default:
		return ""
	}
}
