package records

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"specialroutes.example/gateway/internal/records/recordstest"
	"specialroutes.example/services/routing"
)

const endpoint = "http://127.0.0.1:8087"

// model is what a snapshot should hold, kept in the plainest way.
type model struct {
	cursor string
	good   map[string]string // service → the record in force
	bad    map[string]string // service → the version that is set aside
}

func (m *model) apply(full bool, cursor string, items map[string]string, deleted []string) {
	before := maps.Clone(m.good)
	if full {
		clear(m.good)
		clear(m.bad)
	}
	for _, service := range deleted {
		delete(m.good, service)
		delete(m.bad, service)
	}
	for service, record := range items {
		delete(m.bad, service)
		if strings.Contains(record, "surprise") {
			m.bad[service] = record
			if full && before[service] != "" {
				m.good[service] = before[service]
			}
		} else {
			m.good[service] = record
		}
	}
	m.cursor = cursor
}

func (m *model) check(t *rapid.T, s *Snapshot) {
	good, bad := make(map[string]string), make(map[string]string)
	for _, st := range s.States() {
		if st.Record != nil {
			good[st.Service] = string(st.Record)
		}
		if st.SetAside != nil {
			bad[st.Service] = string(st.SetAside.Record)
		}
	}
	if !maps.Equal(good, m.good) || !maps.Equal(bad, m.bad) || s.Cursor() != m.cursor {
		t.Fatalf("snapshot: at %s %v, set aside %v\nmodel: at %s %v, set aside %v", s.Cursor(), good, bad, m.cursor, m.good, m.bad)
	}
	if s.SetAside() != len(m.bad) || s.Len() != len(m.good) {
		t.Fatalf("snapshot: %d in force and %d set aside, want %d and %d", s.Len(), s.SetAside(), len(m.good), len(m.bad))
	}
	for service, record := range m.good {
		if service != routing.Wildcard && (s.Route(service) == nil || s.Route(service).Variants() != strings.Count(record, `"name"`)) {
			t.Fatalf("Route(%s) is not that of %s", service, record)
		}
	}
}

// drawRecord is a record of the service, good or bad.
func drawRecord(t *rapid.T, service string) string {
	switch {
	case rapid.IntRange(0, 3).Draw(t, "kind") == 0:
		return fmt.Sprintf(`{"service":%q,"active":true,"surprise":%d}`, service, rapid.IntRange(0, 2).Draw(t, "bad"))
	case service == routing.Wildcard:
		return fmt.Sprintf(`{"service":"*","active":true,"onUnavailable":%q}`, rapid.SampledFrom([]string{"default", "fail"}).Draw(t, "onUnavailable"))
	default:
		return recordstest.BookRecord(service, rapid.IntRange(0, 10).Draw(t, "stay"), endpoint)
	}
}

func TestAnySequenceOfAnswersEndsAsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := model{good: make(map[string]string), bad: make(map[string]string)}
		var s *Snapshot
		names := []string{"a", "b", "c", "d", routing.Wildcard}
		for n := range rapid.IntRange(1, 12).Draw(t, "answers") {
			full := n == 0 || rapid.IntRange(0, 4).Draw(t, "full") == 0
			items := make(map[string]string)
			var texts, deleted []string
			for _, service := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 5, rapid.ID).Draw(t, "written") {
				items[service] = drawRecord(t, service)
				texts = append(texts, recordstest.Item(service, n, items[service]))
			}
			if !full {
				for _, service := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 2, rapid.ID).Draw(t, "deleted") {
					if _, written := items[service]; !written {
						deleted = append(deleted, service)
					}
				}
			}
			cursor := fmt.Sprintf("%d.%c", rapid.IntRange(0, 99).Draw(t, "revision"), 'a'+n)
			text := recordstest.Changed(cursor, texts, deleted...)
			if full {
				text = recordstest.Full(cursor, texts...)
			}
			e, err := decodeEnvelope([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			s = compiler{}.apply(s, e, time.Unix(int64(n), 0))
			m.apply(full, cursor, items, deleted)
			m.check(t, s)
			// What the file keeps is the same again.
			m.check(t, compiler{}.apply(nil, fileEnvelope(s, time.Unix(7, 0)), time.Unix(9, 0)))
		}
	})
}

// answer applies one envelope.
func answer(t testing.TB, s *Snapshot, text string) *Snapshot {
	t.Helper()
	e, err := decodeEnvelope([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return compiler{}.apply(s, e, time.Unix(1, 0))
}

func TestApplyChangesNothingOfTheSnapshotBefore(t *testing.T) {
	t.Parallel()
	book := func(service string, revision int) string { return recordstest.Book(service, revision, 5, endpoint) }
	before := answer(t, nil, recordstest.Full("1.a", book("a", 1), book("b", 1)))
	route := before.Route("b")
	after := answer(t, before, recordstest.Changed("2.a", []string{book("c", 2)}, "a"))
	if before.Len() != 2 || before.Route("a") == nil || before.Cursor() != "1.a" {
		t.Errorf("the snapshot before has changed: %v", before.States())
	}
	if after.Route("b") != route {
		t.Error("an untouched record was compiled again")
	}
	if again := answer(t, after, recordstest.Full("9.b", book("b", 1), book("c", 2))); again.Route("b") != route {
		t.Error("a record that is equal in a full answer was compiled again")
	}
}

func TestTheWildcardRecordIsUnderAllOthers(t *testing.T) {
	t.Parallel()
	wildcard := func(value string) string {
		return recordstest.Item("*", 1, fmt.Sprintf(`{"service":"*","active":true,"onUnavailable":%q}`, value))
	}
	own := recordstest.Item("own", 1, strings.Replace(recordstest.BookRecord("own", 5, endpoint), `"active"`, `"onUnavailable":"default","labelRules":[],"active"`, 1))
	// The record comes before the one that it stands on.
	s := answer(t, nil, recordstest.Full("1.a", recordstest.Book("a", 1, 5, endpoint), own, wildcard("fail")))
	check := func(s *Snapshot, want map[string]string) {
		t.Helper()
		for _, service := range slices.Sorted(maps.Keys(want)) {
			if got := s.Route(service).OnUnavailable(); got != want[service] {
				t.Errorf("%s: onUnavailable: got %s, want %s", service, got, want[service])
			}
		}
	}
	check(s, map[string]string{"a": "fail", "own": "default", "without a record": "fail"})
	route := s.Route("own")
	s = answer(t, s, recordstest.Changed("2.a", []string{wildcard("default")}))
	check(s, map[string]string{"a": "default", "own": "default", "without a record": "default"})
	s = answer(t, s, recordstest.Changed("3.a", []string{wildcard("fail"), recordstest.Book("b", 3, 5, endpoint)}))
	check(s, map[string]string{"a": "fail", "b": "fail", "own": "default", "without a record": "fail"})
	// A bad one keeps the last good one in force.
	s = answer(t, s, recordstest.Changed("4.a", []string{recordstest.Item("*", 4, `{"service":"*","active":true,"onUnavailable":"never"}`)}))
	check(s, map[string]string{"a": "fail", "own": "default", "without a record": "fail"})
	if s.SetAside() != 1 {
		t.Errorf("SetAside: got %d, want 1", s.SetAside())
	}
	s = answer(t, s, recordstest.Changed("5.a", nil, "*"))
	check(s, map[string]string{"a": "default", "own": "default", "without a record": "default"})
	if s.Route("own") != route {
		t.Error("a record that takes nothing from the wildcard record was compiled again")
	}
}

func TestTheRoutingHeadersAreThoseOfAllRecords(t *testing.T) {
	t.Parallel()
	record := func(service string, revision int, headers ...string) string {
		var rules []string
		for _, h := range headers {
			rules = append(rules, fmt.Sprintf(`{"header":%q,"label":"l","mode":"exact"}`, h))
		}
		return recordstest.Item(service, revision, fmt.Sprintf(`{"service":%q,"active":false,"labelRules":[%s]}`, service, strings.Join(rules, ",")))
	}
	check := func(s *Snapshot, want ...string) {
		t.Helper()
		if got := s.RoutingHeaders(); !slices.Equal(got, want) {
			t.Errorf("RoutingHeaders = %q, want %q", got, want)
		}
	}
	check(nil)
	s := answer(t, nil, recordstest.Full("1.a", record("a", 1, "version", "app"), record("b", 1, "x-lane", "Version"), record("*", 1, "zone")))
	check(s, "App", "Version", "X-Lane", "Zone")
	s = answer(t, s, recordstest.Changed("2.a", []string{record("a", 2, "stage")}))
	check(s, "Stage", "Version", "X-Lane", "Zone")
	s = answer(t, s, recordstest.Changed("3.a", nil, "*", "b"))
	check(s, "Stage")
}

func TestAVersionThatANewerGatewayUnderstandsComesIntoForceFromTheFile(t *testing.T) {
	t.Parallel()
	s := answer(t, nil, recordstest.Full("1.a", recordstest.Book("a", 1, 5, endpoint)))
	e := fileEnvelope(s, time.Unix(1, 0))
	// The older gateway set this version aside; this one has no quarrel with it.
	e.SetAside = append(e.SetAside, jsontext.Value(recordstest.Book("a", 2, 7, endpoint)))
	s = compiler{}.apply(nil, e, time.Unix(2, 0))
	if st := s.States(); len(st) != 1 || st[0].Revision != 2 || st[0].SetAside != nil {
		t.Errorf("States: got %+v, want a@2 in force", st)
	}
}

func TestBackoffDoublesToItsBoundWithHalfOfItRandom(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		n      int
		random float64
		want   time.Duration
	}{
		{0, 0, 100 * time.Millisecond},
		{0, 0.5, 150 * time.Millisecond},
		{1, 0, 200 * time.Millisecond},
		{3, 0, 800 * time.Millisecond},
		{4, 0, time.Second},
		{4, 0.5, 1500 * time.Millisecond},
		{1 << 40, 0, time.Second},
	} {
		f := Follower{o: Options{Random: func() float64 { return test.random }}.withDefaults()}
		if got := f.backoff(test.n); got != test.want {
			t.Errorf("backoff(%d) with %v: got %s, want %s", test.n, test.random, got, test.want)
		}
	}
}

// FuzzAnswer looks for an answer that panics, or that takes a good record away
// without naming it.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		recordstest.Full("1.a", recordstest.Book("a", 1, 5, endpoint)),
		recordstest.Changed("2.a", []string{recordstest.Item("kept", 2, `{"service":"kept","active":1}`)}, "b"),
		recordstest.Changed("2.a", []string{recordstest.Item("*", 2, `{"service":"*","active":true}`)}),
		`{"cursor":"3.a","records":[{"service":"kept","revision":3,"record":null}]}`,
		`{"cursor":"3.a","full":true,"records":[7,{},{"service":"kept"}],"deleted":["kept"]}`,
	} {
		f.Add([]byte(seed))
	}
	before := answer(f, nil, recordstest.Full("1.a", recordstest.Book("kept", 1, 5, endpoint)))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := decodeEnvelope(text)
		if err != nil {
			return
		}
		s := compiler{}.apply(before, e, time.Unix(1, 0))
		named := slices.Contains(e.Deleted, "kept") || e.Full
		if s.Route("kept") == s.others && !named {
			t.Errorf("the record is gone after %s", text)
		}
		again := compiler{}.apply(nil, fileEnvelope(s, time.Unix(2, 0)), time.Unix(2, 0))
		if again.Len() != s.Len() {
			t.Errorf("the file keeps %d records of %d after %s", again.Len(), s.Len(), text)
		}
	})
}

// BenchmarkOneChangeOfTenThousand is the time from an answer with one change, over
// 10,000 records, to the snapshot that can be swapped in.
func BenchmarkOneChangeOfTenThousand(b *testing.B) {
	items := make([]string, 10_000)
	for i := range items {
		items[i] = recordstest.Book(fmt.Sprintf("service-%d", i), i, 5, endpoint)
	}
	s := answer(b, nil, recordstest.Full("1.a", items...))
	change := []byte(recordstest.Changed("2.a", []string{recordstest.Book("service-77", 10_001, 7, endpoint)}))
	b.ResetTimer()
	for b.Loop() {
		e, err := decodeEnvelope(change)
		if err != nil {
			b.Fatal(err)
		}
		compiler{}.apply(s, e, time.Unix(1, 0))
	}
}

// BenchmarkFullAnswerOfTenThousand is the same for an answer that replaces all.
func BenchmarkFullAnswerOfTenThousand(b *testing.B) {
	items := make([]string, 10_000)
	for i := range items {
		items[i] = recordstest.Book(fmt.Sprintf("service-%d", i), i, 5, endpoint)
	}
	full := []byte(recordstest.Full("1.a", items...))
	b.SetBytes(int64(len(full)))
	for b.Loop() {
		e, err := decodeEnvelope(full)
		if err != nil {
			b.Fatal(err)
		}
		compiler{}.apply(nil, e, time.Unix(1, 0))
	}
}
