package override_test

import (
	"strings"
	"testing"
	"time"

	"specialroutes.example/services/override"
)

// FuzzVerify holds Verify to this: what it takes is, letter for letter, what Sign
// makes of what it says. So no text but those that were signed is ever taken.
func FuzzVerify(f *testing.F) {
	keys := keysOf(f, "a "+secretA+"\nb "+secretB)
	other := keysOf(f, "b "+secretB)
	good := sign(f, keys, wanted, now)
	for _, seed := range []string{
		"", good, good + "=", good[:len(good)-1], sign(f, other, wanted, now),
		strings.Replace(good, "new", "old", 1), strings.Replace(good, ".a.", ".b.", 1), ".....", "v1.a.b.1.a." + strings.Repeat("A", 43),
	} {
		f.Add(seed, now.Unix())
	}
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		at := time.Unix(seconds, 0)
		got, err := keys.Verify(text, at)
		if err != nil {
			if got != (override.Token{}) {
				t.Errorf("Verify(%q) = %+v beside %v", text, got, err)
			}
			return
		}
		first, errFirst := keys.Sign(got, at)
		second, errSecond := other.Sign(got, at)
		if errFirst != nil || errSecond != nil || text != first && text != second {
			t.Errorf("Verify takes %q, but Sign makes %q (%v) and %q (%v) of it", text, first, errFirst, second, errSecond)
		}
	})
}

// FuzzParseKeys holds ParseKeys to this: it never fails but with an error, and what
// it takes can sign and verify.
func FuzzParseKeys(f *testing.F) {
	for _, seed := range []string{"", "a " + secretA, "# x\n\na " + secretA + "\r\nb " + secretB, "a b c", "a\x00 " + secretA} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, contents []byte) {
		keys, err := override.ParseKeys(contents)
		if err != nil {
			return
		}
		text, err := keys.Sign(wanted, now)
		if err != nil {
			t.Fatalf("keys that were taken do not sign: %v", err)
		}
		if got, err := keys.Verify(text, now); err != nil || got != wanted {
			t.Errorf("Verify(%q) = %+v, %v", text, got, err)
		}
	})
}
