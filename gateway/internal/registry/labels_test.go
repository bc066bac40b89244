package registry

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestLabelsThatCannotBeUsedAreLeftOutAndTold(t *testing.T) {
	t.Parallel()
	for name, label := range map[string][2]string{
		"a control character in the value": {"v", "a\x07"},
		"a line end in the name":           {"a\nb", "v"},
		"a C1 control character":           {"v", "\u0085"},
		"= in the name":                    {"a=b", "v"},
		"a name of 64 bytes":               {strings.Repeat("n", 64), "v"},
		"a value of 256 bytes":             {"v", strings.Repeat("v", 256)},
		"no name":                          {"", "v"},
	} {
		s := NewSnapshot(map[string][]Instance{"a": {{
			ID: "x", Address: "h:1", Labels: map[string]string{label[0]: label[1], "zone": "a"}, FromMeta: []string{label[0], "zone"},
		}}})
		i := s.Instances("a")[0]
		if !maps.Equal(i.Labels, map[string]string{"zone": "a"}) || !slices.Equal(i.FromMeta, []string{"zone"}) {
			t.Errorf("%s: labels = %q, from the meta %q", name, i.Labels, i.FromMeta)
		}
		if len(i.Warnings) != 1 || !strings.Contains(i.Warnings[0], "is left out") {
			t.Errorf("%s: warnings = %q", name, i.Warnings)
		}
	}
	s := NewSnapshot(map[string][]Instance{"a": {{
		ID: "x", Address: "h:1", Labels: map[string]string{strings.Repeat("n", 63): strings.Repeat("v", 255), "é": "ü", "tag": ""},
	}}})
	if i := s.Instances("a")[0]; len(i.Labels) != 3 || len(i.Warnings) != 0 {
		t.Errorf("usable labels: %q, warnings %q", i.Labels, i.Warnings)
	}
}

// Of more than 64, those of the meta are kept, and then those first in order.
func TestTooManyLabelsAreLeftOut(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"zz-meta": "1"}
	for n := range 70 {
		labels[fmt.Sprintf("tag-%02d", n)] = "1"
	}
	given := []Instance{{ID: "x", Address: "h:1", Labels: labels, FromMeta: []string{"zz-meta"}}}
	s := NewSnapshot(map[string][]Instance{"a": given})
	i := s.Instances("a")[0]
	if len(i.Labels) != 64 || i.Labels["zz-meta"] == "" || i.Labels["tag-62"] == "" || i.Labels["tag-63"] != "" {
		t.Errorf("%d labels: %v", len(i.Labels), i.Labels)
	}
	if len(i.Warnings) != 7 || !strings.Contains(i.Warnings[0], `"tag-63" is left out: there are more than 64`) {
		t.Errorf("warnings = %q", i.Warnings)
	}
	if s.With("a", given) != s {
		t.Error("equal data give another snapshot")
	}
	for n := range 100 {
		labels[fmt.Sprintf("tag-1%02d", n)] = "1"
	}
	if w := NewSnapshot(map[string][]Instance{"a": given}).Instances("a")[0].Warnings; len(w) != 17 || w[16] != "and 91 more" {
		t.Errorf("warnings of very many = %q", w)
	}
}

func TestWhatIsKnownIsTheSameAfterTheFile(t *testing.T) {
	t.Parallel()
	known := []Known{
		{Service: "a", Instances: []Instance{
			{ID: "x", Service: "a", Address: "h:1", Labels: map[string]string{"v": "1"}, FromMeta: []string{"v"}, Warnings: []string{"odd"}},
			{ID: "y\x00\"", Service: "a", Address: ""},
		}},
		{Service: "none"},
	}
	text, err := MarshalKnown(known)
	if err != nil {
		t.Fatal(err)
	}
	got, err := UnmarshalKnown([]byte(strings.Replace(string(text), `{"service"`, `{"news":[1],"service"`, 1)))
	if err != nil || fmt.Sprint(got) != fmt.Sprint(known) {
		t.Errorf("got %v, %v\nwant %v", got, err, known)
	}
	if _, err := UnmarshalKnown([]byte(`{"services":1}`)); err == nil {
		t.Error("an object is taken for a list")
	}
}
