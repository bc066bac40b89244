package routing_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"specialroutes.example/services/routing"
	"specialroutes.example/services/strictjson"
)

// full has every member of a record.
const full = `{
  "service": "organizationservice", "active": true,
  "variants": [
    {"name": "old", "weight": 5},
    {"name": "new", "weight": 0, "endpoint": "http://orgservice-new:8087/base"},
    {"name": "other", "weight": 1, "service": "orgservice-new", "selector": {"version": "2", "app": "a"}}
  ],
  "default": "old",
  "rules": [
    {"name": "testers", "match": [
      {"on": "header", "name": "tmx-user-id", "in": ["u-17", "u-42"]},
      {"on": "cookie", "name": "canary", "present": false},
      {"on": "query", "name": "q", "regex": "a+"},
      {"on": "path", "prefix": "/v1"},
      {"on": "client", "cidr": "10.0.0.0/8"}], "variant": "new"},
    {"name": "split", "match": [{"on": "method", "in": ["GET"]}], "weights": {"old": 1, "new": 0}}
  ],
  "sticky": {"by": "gateway-cookie", "salt": "", "missing": "draw", "maxAge": 60},
  "onUnavailable": "fail",
  "labelRules": [
    {"header": "version", "label": "version", "mode": "lenient", "fallback": "none", "guard": []},
    {"header": "zone", "label": "zone", "mode": "symmetric", "guard": ["10.0.0.0/16"]}
  ],
  "owner": "organization team", "ends": "2026-12-31"
}`

func decode(t testing.TB, document string) *routing.Record {
	t.Helper()
	var r routing.Record
	if err := strictjson.Decode([]byte(document), &r); err != nil {
		t.Fatal(err)
	}
	return &r
}

// What is read and written again has the members that were there, empty ones too.
func TestRecord_JSONRoundTrip(t *testing.T) {
	t.Parallel()
	for _, document := range []string{
		full,
		`{"service": "s", "active": false}`,
		`{"service": "*", "active": true, "labelRules": []}`,
		`{"service": "s", "active": true, "rules": [], "owner": "x", "sticky": {"by": "client"}}`,
	} {
		r := decode(t, document)
		if errs := r.Validate(); errs != nil {
			t.Errorf("%s: %v", document, errs)
		}
		for name, record := range map[string]*routing.Record{"record": r, "clone": r.Clone()} {
			data, err := json.Marshal(record)
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(document), &want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("the %s is written as %s, want %s", name, data, document)
			}
		}
	}
}

func TestRecord_CloneSharesNothing(t *testing.T) {
	t.Parallel()
	r := decode(t, full)
	if path := shared(reflect.ValueOf(r), reflect.ValueOf(r.Clone()), "record"); path != "" {
		t.Errorf("the clone shares %s", path)
	}
}

// shared returns the path of the first pointer, slice or map that two values of
// the same shape have in common, "" when there is none.
func shared(a, b reflect.Value, path string) string {
	switch a.Kind() {
	case reflect.Pointer, reflect.Map:
		if a.IsNil() {
			return path + ", which the test leaves nil"
		}
		if a.Pointer() == b.Pointer() {
			return path
		}
		if a.Kind() == reflect.Pointer {
			return shared(a.Elem(), b.Elem(), path)
		}
	case reflect.Slice:
		if a.Len() > 0 && a.Pointer() == b.Pointer() {
			return path
		}
		for i := range a.Len() {
			if s := sharedHere(a.Index(i), b.Index(i), path); s != "" {
				return s
			}
		}
	case reflect.Struct:
		for i := range a.NumField() {
			if s := sharedHere(a.Field(i), b.Field(i), path+"."+a.Type().Field(i).Name); s != "" {
				return s
			}
		}
	}
	return ""
}

// sharedHere leaves out what is absent.
func sharedHere(a, b reflect.Value, path string) string {
	if (a.Kind() == reflect.Pointer || a.Kind() == reflect.Map) && a.IsNil() {
		return ""
	}
	return shared(a, b, path)
}
