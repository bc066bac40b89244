package records

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"specialroutes.example/gateway/internal/records/recordstest"
)

var labelsNow = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// members are the labels and the end of a change that sets version.
func members(version string, ends time.Time) string {
	return fmt.Sprintf(`"labels":{"version":%q},"ends":%q`, version, ends.Format(time.RFC3339))
}

// told lists the changes of labels of a snapshot, as org/1=2.0@5 or, set aside,
// org/1!6.
func told(s *Snapshot) []string {
	all := []string{}
	for _, st := range s.LabelStates() {
		if st.Changes != nil {
			version := s.Overlays().Services()[st.Service][st.ID].Labels["version"]
			all = append(all, fmt.Sprintf("%s/%s=%s@%d", st.Service, st.ID, *version, st.Revision))
		}
		if st.SetAside != nil {
			all = append(all, fmt.Sprintf("%s/%s!%d", st.Service, st.ID, st.SetAside.Revision))
		}
	}
	return all
}

func applyLabels(t testing.TB, s *Snapshot, full bool, labels []string, deleted ...string) *Snapshot {
	t.Helper()
	e, err := decodeEnvelope([]byte(recordstest.Envelope("1.a", full, nil, nil, labels, deleted)))
	if err != nil {
		t.Fatal(err)
	}
	return compiler{}.apply(s, e, labelsNow)
}

func tells(t testing.TB, s *Snapshot, want ...string) {
	t.Helper()
	if got := told(s); !slices.Equal(got, want) {
		t.Errorf("changes of labels = %v, want %v", got, want)
	}
}

func TestABadChangeOfLabelsIsSetAsideAlone(t *testing.T) {
	t.Parallel()
	ends := labelsNow.Add(time.Hour)
	good := func(revision int) string { return recordstest.LabelItem("org", "1", revision, members("2.0", ends)) }
	for name, text := range map[string]string{
		"control characters":  recordstest.LabelItem("org", "2", 7, `"labels":{"version":"\u0007"},"ends":"2026-12-02T00:00:00Z"`),
		"= in a name":         recordstest.LabelItem("org", "2", 7, `"labels":{"a=b":"c"},"ends":"2026-12-02T00:00:00Z"`),
		"a name too long":     recordstest.LabelItem("org", "2", 7, `"labels":{"`+strings.Repeat("n", 64)+`":"c"},"ends":"2026-12-02T00:00:00Z"`),
		"a value too long":    recordstest.LabelItem("org", "2", 7, `"labels":{"a":"`+strings.Repeat("n", 256)+`"},"ends":"2026-12-02T00:00:00Z"`),
		"a name twice":        recordstest.LabelItem("org", "2", 7, `"labels":{"a":"b","a":"c"},"ends":"2026-12-02T00:00:00Z"`),
		"a number":            recordstest.LabelItem("org", "2", 7, `"labels":{"a":1},"ends":"2026-12-02T00:00:00Z"`),
		"no labels":           recordstest.LabelItem("org", "2", 7, `"ends":"2026-12-02T00:00:00Z"`),
		"no end":              recordstest.LabelItem("org", "2", 7, `"labels":{"a":"b"}`),
		"an end that is none": recordstest.LabelItem("org", "2", 7, `"labels":{"a":"b"},"ends":"soon"`),
	} {
		s := applyLabels(t, nil, true, []string{recordstest.LabelItem("org", "2", 3, members("1.0", ends)), good(4)})
		s = applyLabels(t, s, false, []string{text, good(8)})
		if got := told(s); !slices.Equal(got, []string{"org/1=2.0@8", "org/2=1.0@3", "org/2!7"}) {
			t.Errorf("%s: %v", name, got)
		}
		// The last good version stays also under a full answer, and in the file.
		s = applyLabels(t, s, true, []string{text})
		again := compiler{}.apply(nil, fileEnvelope(s, labelsNow), labelsNow)
		tells(t, s, "org/2=1.0@3", "org/2!7")
		tells(t, again, "org/2=1.0@3", "org/2!7")
		if inForce, aside := again.overlayCounts(); inForce != 1 || aside != 1 {
			t.Errorf("%s: counted %d in force and %d set aside", name, inForce, aside)
		}
	}
}

func TestItemsOfLabelsThatNameNothingCostNothingElse(t *testing.T) {
	t.Parallel()
	ends := labelsNow.Add(time.Hour)
	s := applyLabels(t, nil, true, []string{
		`"surprise"`, `{}`, `{"service":"org","id":"a b","revision":1,` + members("1", ends) + `}`,
		`{"service":"Org!","id":"1","revision":1,` + members("1", ends) + `}`, `{"service":"org","id":"3",` + members("1", ends) + `}`,
		recordstest.LabelItem("org", "1", 4, members("2.0", ends)+`,"news":"of a later version"`),
	}, `"surprise"`, `{"service":"nobody","id":"x"}`)
	if got := s.Overlays().Services()["org"]; len(got) != 1 || *got["1"].Labels["version"] != "2.0" {
		t.Errorf("in force: %v", got)
	}
	if s.labels.setAside != 4 { // two name nothing at all
		t.Errorf("%d are set aside, want 4: %v", s.labels.setAside, told(s))
	}
}

// What is told must be names, and little enough that the question is answered.
func TestInstancesWhoseLabelsAreSetAsideAreNamed(t *testing.T) {
	t.Parallel()
	bad := func(service, id string) string {
		return recordstest.LabelItem(service, id, 7, `"labels":{"a=b":"c"},"ends":"2026-12-02T00:00:00Z"`)
	}
	good := recordstest.LabelItem("org", "good", 7, members("2.0", labelsNow.Add(time.Hour)))
	s := applyLabels(t, nil, true, []string{bad("org", "b/1,%"), bad("org", "a"), bad("Org!", "a"), bad("org", "a b"), good})
	if got, want := s.setAsideInstances(50, 1000), []string{"org/a", "org/b%2F1%2C%25"}; !slices.Equal(got, want) {
		t.Errorf("named: %q, want %q", got, want)
	}
	if got := s.setAsideInstances(1, 1000); !slices.Equal(got, []string{"org/a"}) {
		t.Errorf("of two at most one: %q", got)
	}
	if got := s.setAsideInstances(50, 10); !slices.Equal(got, []string{"org/a"}) {
		t.Errorf("in 10 bytes: %q", got)
	}
	if got := (*Snapshot)(nil).setAsideInstances(1, 1); got != nil {
		t.Errorf("without records: %q", got)
	}
}

func TestAFullAnswerReplacesChangesOfLabelsAndOneWithoutThemDoesNot(t *testing.T) {
	t.Parallel()
	ends := labelsNow.Add(time.Hour)
	before := applyLabels(t, nil, true, []string{recordstest.LabelItem("org", "1", 4, members("2.0", ends))})
	e, err := decodeEnvelope([]byte(`{"cursor":"2.b","full":true,"records":[],"deleted":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	s := compiler{}.apply(before, e, labelsNow)
	tells(t, s, "org/1=2.0@4")
	if s.Overlays() != before.Overlays() {
		t.Error("what is equal is another value")
	}
	tells(t, applyLabels(t, s, true, nil))
	if got := applyLabels(t, s, true, nil).Overlays(); got != nil {
		t.Errorf("Overlays() = %v, want nil", got)
	}
	tells(t, applyLabels(t, s, false, nil, `{"service":"org","id":"1"}`))
}

func TestChangesOfLabelsAreDroppedADayAfterTheirEnd(t *testing.T) {
	t.Parallel()
	s := applyLabels(t, nil, true, []string{
		recordstest.LabelItem("org", "1", 4, members("1", labelsNow.Add(-endedFor))),
		recordstest.LabelItem("org", "2", 5, members("2", labelsNow.Add(-endedFor-time.Second))),
	})
	tells(t, s, "org/1=1@4")
}

func TestOnlyServicesWithNewsHaveOtherMapsOfLabels(t *testing.T) {
	t.Parallel()
	ends := labelsNow.Add(time.Hour)
	before := applyLabels(t, nil, true, []string{
		recordstest.LabelItem("org", "1", 4, members("1", ends)), recordstest.LabelItem("lic", "1", 5, members("1", ends)),
	})
	after := applyLabels(t, before, false, []string{recordstest.LabelItem("org", "1", 6, members("2", ends))})
	was, is := before.Overlays().Services(), after.Overlays().Services()
	if was["lic"]["1"] != is["lic"]["1"] || was["org"]["1"] == is["org"]["1"] {
		t.Error("a change of one service is not one of that service alone")
	}
}

func TestAnySequenceOfChangesOfLabelsEndsAsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model := make(map[string]string)
		var s *Snapshot
		for n := range rapid.IntRange(1, 12).Draw(t, "answers") {
			full := n == 0 || rapid.IntRange(0, 4).Draw(t, "full") == 0
			if full {
				clear(model)
			}
			var labels, deleted []string
			for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"1", "2", "3", "4"}), 0, 4, rapid.ID).Draw(t, "ids") {
				if rapid.Bool().Draw(t, "delete") && !full {
					deleted = append(deleted, fmt.Sprintf(`{"service":"org","id":%q}`, id))
					delete(model, id)
					continue
				}
				version := rapid.StringMatching(`[a-c]`).Draw(t, "version")
				labels = append(labels, recordstest.LabelItem("org", id, n, members(version, labelsNow.Add(time.Hour))))
				model[id] = fmt.Sprintf("org/%s=%s@%d", id, version, n)
			}
			e, err := decodeEnvelope([]byte(recordstest.Envelope("1.a", full, nil, nil, labels, deleted)))
			if err != nil {
				t.Fatal(err)
			}
			s = compiler{}.apply(s, e, labelsNow)
			want := slices.Sorted(maps.Values(model))
			again := compiler{}.apply(nil, fileEnvelope(s, labelsNow), labelsNow)
			if !slices.Equal(told(s), want) || !slices.Equal(told(again), want) {
				t.Fatalf("changes = %v, from the file %v, want %v", told(s), told(again), want)
			}
		}
	})
}
