package storetest

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"specialroutes.example/services/routing"
	"specialroutes.example/specialroutes/internal/store"
)

// records: what was written is what is read.
var records = map[string]func(t *testing.T, db Database){
	"an empty database has nothing but its place":          emptyDatabase,
	"a record is read as it was written":                   readsWhatWasWritten,
	"integers keep all their digits":                       keepsIntegers,
	"texts that look like SQL, and other scripts, survive": keepsTexts,
	"a text that a database cannot keep is refused":        refusesNUL,
	"records are listed by the bytes of their names":       listsByBytes,
	"a record survives closing and opening":                survivesReopening,
	"a context that is over ends every method":             endsWithContext,
	"a closed store says that it is not available":         closedStore,
}

func emptyDatabase(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	_, err := s.Get(t.Context(), "nobody")
	wantError(t, err, store.ErrNotFound)
	if l := list(t, s); len(l) != 0 {
		t.Errorf("List() = %v, want nothing", l)
	}
	if l := historyOf(t, s, "nobody"); len(l) != 0 {
		t.Errorf("History() = %v, want nothing", l)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping() = %v", err)
	}
	h := head(t, s)
	if h.Revision != 0 || h.IsZero() {
		t.Errorf("Head() = %v, want revision 0 and a nonce", h)
	}
	if back, err := store.ParseCursor(h.String()); err != nil || back != h {
		t.Errorf("ParseCursor(%q) = %v, %v", h, back, err)
	}
	if got, want := changesAfter(t, s, store.Cursor{}), (store.Changes{Cursor: h, Full: true}); !reflect.DeepEqual(got, want) {
		t.Errorf("Changes of nothing = %+v, want %+v", got, want)
	}
	if got, want := changesAfter(t, s, h), (store.Changes{Cursor: h}); !reflect.DeepEqual(got, want) {
		t.Errorf("Changes of the head = %+v, want %+v", got, want)
	}
}

// everything is a record that uses all there is.
func everything() *routing.Record {
	r := Record("organizationservice", 3)
	r.Variants = append(r.Variants, routing.Variant{
		Name: "beta", Weight: new(int64(1)), Selector: map[string]string{"version": "1.0.0"},
	})
	r.Rules = []routing.Rule{
		{Name: "testers", Variant: new("beta"), Match: []routing.Match{
			{On: "header", Name: new("tmx-user-id"), In: []string{"u-17", "u-42"}},
			{On: "client", CIDR: new("192.0.2.0/24")},
		}},
		{Name: "half", Weights: map[string]int64{"default": 1, "alternate": 1}, Match: []routing.Match{
			{On: "path", Prefix: new("/v1/")},
		}},
	}
	r.Sticky = &routing.Sticky{By: "header", Name: new("tmx-user-id"), Salt: new("pepper"), Missing: new("draw")}
	r.OnUnavailable = new("fail")
	r.LabelRules = []routing.LabelRule{}
	r.Owner = new("organization team")
	r.Ends = new("2026-12-31")
	return r
}

func readsWhatWasWritten(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	want := everything()
	written := write(t, s, want.Service, put(want))
	got, err := s.Get(t.Context(), want.Service)
	if err != nil {
		t.Fatal(err)
	}
	for name, stored := range map[string]store.Stored{"Write": written, "Get": got, "List": list(t, s)[0]} {
		if !reflect.DeepEqual(stored.Record, want) || stored.Broken != "" {
			t.Errorf("%s gives the record %+v (%s), want %+v", name, stored.Record, stored.Broken, want)
		}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if !sameJSON(t, stored.Raw, text) {
			t.Errorf("%s gives %s, want %s", name, stored.Raw, text)
		}
		if stored.Service != want.Service || stored.Cursor() != head(t, s) || stored.Revision != 1 {
			t.Errorf("%s gives %s at %v, want %s at %v", name, stored.Service, stored.Cursor(), want.Service, head(t, s))
		}
	}
}

func keepsIntegers(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	r := Record("big", 0)
	r.Variants[0].Weight, r.Variants[1].Weight = new(int64(1)), new(int64(1<<31-2))
	write(t, s, "big", put(r))
	got, err := s.Get(t.Context(), "big")
	if err != nil || !reflect.DeepEqual(got.Record, r) {
		t.Errorf("Get = %s, %v, want weights 1 and 2147483646", got.Raw, err)
	}
}

func keepsTexts(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	texts := []string{
		`$1`, `$tag$`, `'; --`, `'; DROP TABLE routes; --`, `?1 :a @a`, `\'`, `%s_%`, `"quoted" \ back`, `\u0000 as six characters`, `\\u0000`,
		"é 漢字 \U0001F680", "<a>&amp;", "line\nand\ttab", "\u2028", "e\u0301 is not é", " ",
	}
	r := Record("texts", 5)
	r.Owner = &texts[2]
	r.Rules = []routing.Rule{{Name: "all", Variant: new("alternate"), Match: []routing.Match{
		{On: "query", Name: new("q"), In: texts},
	}}}
	for _, text := range texts {
		who := store.Author{Who: text, Why: text}
		if _, err := s.Write(t.Context(), "texts", who, put(r)); err != nil {
			t.Fatal(err)
		}
		if entry := historyOf(t, s, "texts")[0]; entry.Author != who {
			t.Errorf("history says %+v, want %+v", entry.Author, who)
		}
		_, err := s.Get(t.Context(), text)
		wantError(t, err, store.ErrNotFound)
		keepsTextOfGateway(t, s, text)
	}
	for _, got := range list(t, s) {
		if !reflect.DeepEqual(got.Record, r) {
			t.Errorf("List has %s (%s), want the texts %q", got.Raw, got.Broken, texts)
		}
	}
	keepsTextsOfLabels(t, s, texts)
}

func keepsTextOfGateway(t *testing.T, s store.Store, text string) {
	t.Helper()
	want := store.Gateway{ID: text, Version: text, SetAside: []string{text}}
	see(t, s, want)
	got := heard(t, s, time.Minute)
	if !slices.ContainsFunc(got, func(g store.Gateway) bool { return reflect.DeepEqual(g, want) }) {
		t.Errorf("the gateways are %+v, want %+v among them", got, want)
	}
}

// keepsTextsOfLabels writes texts as values, and as names and IDs where they may be
// those.
func keepsTextsOfLabels(t *testing.T, s store.Store, texts []string) {
	t.Helper()
	for _, text := range texts {
		of, name := store.Instance{Service: "texts", ID: text}, text
		if !routing.ValidInstance(text) {
			of.ID, name = "org-1", "zone"
		}
		if strings.ContainsAny(text, "\n\t\u2028") { // no label has control characters
			continue
		}
		writeLabels(t, s, of, putLabels(name, text))
		got, err := s.GetLabels(t.Context(), of)
		if err != nil || got.Broken != "" || got.Changes[name] == nil || *got.Changes[name] != text {
			t.Errorf("labels of %q: %s (%s), %v; want %q", of.ID, got.Raw, got.Broken, err, text)
		}
		if h := labelsHistoryOf(t, s, of); len(h) == 0 || !strings.Contains(string(h[0].After), `"labels"`) {
			t.Errorf("the history of %q is %+v", of.ID, h)
		}
	}
}

func refusesNUL(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	before := head(t, s)
	nul := Record("nul", 5)
	nul.Owner = new("a\x00b")
	for name, try := range map[string]struct {
		service string
		author  store.Author
		record  *routing.Record
	}{
		"in the record":  {"nul", author, nul},
		"in the service": {"n\x00ul", author, Record("n\x00ul", 5)},
		"in the name":    {"nul", store.Author{Who: "a\x00"}, Record("nul", 5)},
		"in the reason":  {"nul", store.Author{Why: "a\x00"}, Record("nul", 5)},
		"not UTF-8":      {"nul", store.Author{Why: "\xff"}, Record("nul", 5)},
	} {
		if _, err := s.Write(t.Context(), try.service, try.author, put(try.record)); err == nil {
			t.Errorf("%s: no error", name)
		} else {
			wantError(t, err, store.ErrInvalid)
		}
	}
	for _, service := range []string{"a\x00", "\xff"} {
		_, err := s.Get(t.Context(), service)
		wantError(t, err, store.ErrNotFound)
		if l, err := s.History(t.Context(), service, 0, 0); len(l) != 0 || err != nil {
			t.Errorf("History(%q) = %v, %v, want nothing", service, l, err)
		}
	}
	if h := head(t, s); h != before {
		t.Errorf("the head moved from %v to %v", before, h)
	}
}

func listsByBytes(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	// Where the database sorts by a language's rules, "-" does not count and "ab"
	// comes before "a-c".
	want := []string{"*", "a", "a-c", "a0", "ab", "b"}
	for _, service := range []string{"ab", "b", "a-c", "a", "a0"} {
		write(t, s, service, put(Record(service, 5)))
	}
	write(t, s, "*", put(&routing.Record{Service: "*", Active: new(true), OnUnavailable: new("fail")}))
	if got := names(list(t, s)); !slices.Equal(got, want) {
		t.Errorf("List() = %v, want %v", got, want)
	}
	var pages []string
	after := ""
	for range len(want) {
		page, err := s.List(t.Context(), after, 4)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		pages = append(pages, names(page)...)
		after = page[len(page)-1].Service
	}
	if !slices.Equal(pages, want) {
		t.Errorf("pages of four give %v, want %v", pages, want)
	}
}

func survivesReopening(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	written := write(t, s, "kept", put(Record("kept", 4)))
	before := head(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = db.Open(t, store.Sources{})
	got, err := s.Get(t.Context(), "kept")
	if err != nil || !reflect.DeepEqual(got.Record, written.Record) || got.ETag() != written.ETag() {
		t.Errorf("Get = %+v, %v, want %+v", got, err, written)
	}
	if h := head(t, s); h != before {
		t.Errorf("Head() = %v, want %v", h, before)
	}
}

func endsWithContext(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	write(t, s, "there", put(Record("there", 5)))
	ctx := cancelled(t)
	for name, call := range map[string]func() error{
		"Get":     func() error { _, err := s.Get(ctx, "there"); return err },
		"List":    func() error { _, err := s.List(ctx, "", 0); return err },
		"Write":   func() error { _, err := s.Write(ctx, "there", author, remove); return err },
		"Head":    func() error { _, err := s.Head(ctx); return err },
		"Changes": func() error { _, err := s.Changes(ctx, store.Cursor{}); return err },
		"History": func() error { _, err := s.History(ctx, "there", 0, 0); return err },
		"Prune":   func() error { _, err := s.Prune(ctx, store.Prune{}); return err },
		"Ping":    func() error { return s.Ping(ctx) },
	} {
		if err := call(); err == nil {
			t.Errorf("%s with a context that is over gave no error", name)
		} else {
			wantError(t, err, ctx.Err())
		}
	}
	if _, err := s.Get(t.Context(), "there"); err != nil {
		t.Errorf("afterwards Get = %v", err)
	}
}

func closedStore(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Get(t.Context(), "any")
	wantError(t, err, store.ErrUnavailable)
	_, err = s.Write(t.Context(), "any", author, put(Record("any", 5)))
	wantError(t, err, store.ErrUnavailable)
}
