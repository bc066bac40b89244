package problem_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"specialroutes.example/services/problem"
)

func TestWrite(t *testing.T) {
	rec := httptest.NewRecorder()
	problem.Write(rec, problem.Problem{
		Status: 422, Code: "invalid_record", Detail: "weight is missing", CorrelationID: "c-1",
		Errors:  []problem.FieldError{{Pointer: "/variants/0/weight", Detail: "is missing"}},
		Members: map[string]any{"service": "organizationservice", "status": 200},
	})
	if got := rec.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type = %q", got)
	}
	if rec.Code != 422 {
		t.Errorf("status = %d, want 422", rec.Code)
	}
	var m map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"type": "https://specialroutes.example/problems/invalid_record", "title": "Unprocessable Entity",
		"status": 422.0, "code": "invalid_record", "service": "organizationservice", "correlationId": "c-1",
	}
	for k, v := range want {
		if m[k] != v {
			t.Errorf("%s = %v, want %v", k, m[k], v)
		}
	}
	if errs, ok := m["errors"].([]any); !ok || len(errs) != 1 {
		t.Errorf("errors = %v, want one", m["errors"])
	}
}

func TestWrite_UnwritableMember(t *testing.T) {
	rec := httptest.NewRecorder()
	problem.Write(rec, problem.Problem{Status: 500, Code: "x", Members: map[string]any{"f": func() {}}})
	if rec.Code != 500 || !json.Valid(rec.Body.Bytes()) {
		t.Errorf("answer = %d %q, want 500 and a JSON document", rec.Code, rec.Body)
	}
}

func TestWrite_EchoesLittleOfWhatCame(t *testing.T) {
	long := "/" + strings.Repeat("é", 350_000)
	given := []problem.FieldError{{Pointer: long, Detail: "is not known: " + long}, {Pointer: "/" + strings.Repeat("a", 255), Detail: "x"}}
	rec := httptest.NewRecorder()
	problem.Write(rec, problem.Problem{Status: 400, Code: "bad_json", Errors: given})
	var got struct{ Errors []problem.FieldError }
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || len(got.Errors) != 2 {
		t.Fatalf("errors = %+v, %v", got, err)
	}
	for _, text := range []string{got.Errors[0].Pointer, got.Errors[0].Detail} {
		if len(text) > 1024 || !strings.HasSuffix(text, "é…") || !utf8.ValidString(text) {
			t.Errorf("%d bytes are written, ending with %q", len(text), text[len(text)-8:])
		}
	}
	if len(got.Errors[0].Pointer) > 256 || got.Errors[1] != given[1] || given[0].Pointer != long {
		t.Errorf("errors = %.1000v, want the first cut, and the other as it was given", got.Errors)
	}
}
