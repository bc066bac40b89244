package store_test

import (
	"strings"
	"testing"

	"specialroutes.example/specialroutes/internal/store"
)

func TestParseCursorReadsWhatStringWrote(t *testing.T) {
	for _, c := range []store.Cursor{
		{},
		{Revision: 0, Nonce: "k3f9"},
		{Revision: 42, Nonce: "0"},
		{Revision: 1<<63 - 1, Nonce: strings.Repeat("z", 64)},
	} {
		got, err := store.ParseCursor(c.String())
		if err != nil || got != c {
			t.Errorf("ParseCursor(%q) = %v, %v, want %v", c.String(), got, err, c)
		}
	}
}

func TestParseCursorRefusesEverythingElse(t *testing.T) {
	for _, s := range []string{
		"42", "42.", ".k3f9", "-1.a", "+1.a", "01.a", "1.A", "1.a.b", " 1.a", "1.a ", "1.a\x00",
		"9223372036854775808.a", "1e3.a", "1." + strings.Repeat("z", 65), `"1.a"`,
	} {
		if c, err := store.ParseCursor(s); err == nil {
			t.Errorf("ParseCursor(%q) = %v, want an error", s, c)
		}
	}
}

func TestETagStandsInQuotationMarks(t *testing.T) {
	s := store.Stored{Revision: 42, Nonce: "k3f9"}
	if got, want := s.ETag(), `"42.k3f9"`; got != want {
		t.Errorf("ETag() = %s, want %s", got, want)
	}
}
