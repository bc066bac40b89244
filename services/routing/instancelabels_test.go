package routing_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"specialroutes.example/services/routing"
	"specialroutes.example/services/strictjson"
)

var labelsNow = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// instanceLabels decodes a document as specialroutes does.
func instanceLabels(t *testing.T, document string) *routing.InstanceLabels {
	t.Helper()
	l := new(routing.InstanceLabels)
	if err := strictjson.Decode([]byte(document), l); err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	return l
}

func TestInstanceLabels_AllMistakesAreNamedAtOnce(t *testing.T) {
	t.Parallel()
	const ends = `"ends":"2026-12-20T12:00:00Z"`
	many := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(`"l%02d":null`, i)
		}
		return `{"labels":{` + strings.Join(list, ",") + `},` + ends + `}`
	}
	for _, test := range []struct {
		document string
		want     []string
	}{
		{`{"labels":{"zone":"alice","version":null,"spaced":"a b"},` + ends + `}`, nil},
		{many(64), nil},
		{many(65), []string{"/labels"}},
		{`{}`, []string{"/labels", "/ends"}},
		{`{"labels":{},"ends":"tomorrow"}`, []string{"/labels", "/ends"}},
		{`{"labels":{"":"a"," ":"a","a=b":"a","a/b=~":null,"tab\t":"a"},` + ends + `}`,
			[]string{"/labels/", "/labels/ ", "/labels/a~1b=~0", "/labels/a=b", "/labels/tab\t"}},
		{`{"labels":{"a":"x\u0000","b":"\u007f","c":"\u0085","ü":"é"},` + ends + `}`, []string{"/labels/a", "/labels/b", "/labels/c", "/labels/ü"}},
		{`{"labels":{"a":"","b":" ","c":" x","d":"x ","e":"\u200b","f":"\u202ex"},` + ends + `}`,
			[]string{"/labels/a", "/labels/b", "/labels/c", "/labels/d", "/labels/e", "/labels/f"}},
		{`{"labels":{"` + strings.Repeat("n", 63) + `":"` + strings.Repeat("v", 255) + `"},` + ends + `}`, nil},
		{`{"labels":{"` + strings.Repeat("n", 64) + `":"a","v":"` + strings.Repeat("v", 256) + `"},` + ends + `}`,
			[]string{"/labels/" + strings.Repeat("n", 64), "/labels/v"}},
		{`{"labels":{"a":"b"},"ends":"2026-12-01T12:00:00Z"}`, []string{"/ends"}},
		{`{"labels":{"a":"b"},"ends":"2026-12-01T12:00:00.000001Z"}`, nil},
		{`{"labels":{"a":"b"},"ends":"2026-12-31T12:00:00Z"}`, nil},
		{`{"labels":{"a":"b"},"ends":"2026-12-31T13:00:00+01:00"}`, nil},
		{`{"labels":{"a":"b"},"ends":"2026-12-20t12:00:00z"}`, nil},
		{`{"labels":{"a":"b"},"ends":"2026-12-31T12:00:01Z"}`, []string{"/ends"}},
		{`{"labels":{"a":"b"},"ends":"2026-12-20"}`, []string{"/ends"}},
		{`{"labels":{"a":"b"},"ends":"2026-12-20 12:00:00Z"}`, []string{"/ends"}},
		{`{"labels":{"a":"b"},"ends":"9999-99-99T99:99:99Z"}`, []string{"/ends"}},
	} {
		var got []string
		for _, e := range instanceLabels(t, test.document).ValidateNew(labelsNow) {
			got = append(got, e.Pointer)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%.200s: mistakes at %q, want %q", test.document, got, test.want)
		}
	}
}

func TestInstanceLabels_TheFormIsCheckedWithoutAClock(t *testing.T) {
	t.Parallel()
	l := instanceLabels(t, `{"labels":{"a":"b"},"ends":"2020-01-01T01:00:00+01:00"}`)
	if err := l.Validate().Err(); err != nil {
		t.Errorf("Validate = %v, want nothing", err)
	}
	if got, want := l.EndsAt(), time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC); got != want {
		t.Errorf("EndsAt = %v, want %v", got, want)
	}
	if err := l.ValidateNew(labelsNow).Err(); err == nil {
		t.Error("ValidateNew takes an end in the past")
	}
}

func TestInstanceLabels_ValuesThatNoRequestHasStayUsableWhereTheyAreStored(t *testing.T) {
	t.Parallel()
	l := instanceLabels(t, `{"labels":{"a":"","b":" x","c":"é"},"ends":"2026-12-20T12:00:00Z"}`)
	if err := l.Validate().Err(); err != nil {
		t.Errorf("Validate = %v, want nothing", err)
	}
	if err := l.Labels.Validate().Err(); err != nil {
		t.Errorf("Validate of the changes = %v, want nothing", err)
	}
}

func TestLabelChanges_ATextSetsOrReplacesAndNullHides(t *testing.T) {
	t.Parallel()
	changes := instanceLabels(t, `{"labels":{"zone":"alice","version":null,"none":null,"app":"x"},"ends":"2026-12-20T12:00:00Z"}`).Labels
	registered := map[string]string{"zone": "a", "version": "1", "other": "o"}
	if got, want := changes.Apply(registered), map[string]string{"zone": "alice", "app": "x", "other": "o"}; !maps.Equal(got, want) {
		t.Errorf("Apply = %v, want %v", got, want)
	}
	if registered["zone"] != "a" || len(registered) != 3 {
		t.Errorf("Apply changed what is registered to %v", registered)
	}
	if got := changes.Apply(nil); len(got) != 2 {
		t.Errorf("Apply(nil) = %v, want zone and app", got)
	}
}

func TestValidInstance(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"org-1": true, "a": true, "a/b?c#%": true, strings.Repeat("x", 255): true,
		"": false, "a b": false, "ü": false, "a\n": false, "\x7f": false, strings.Repeat("x", 256): false,
	} {
		if got := routing.ValidInstance(id); got != want {
			t.Errorf("ValidInstance(%q) = %v, want %v", id, got, want)
		}
	}
}
