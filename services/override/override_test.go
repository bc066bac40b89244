package override_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"specialroutes.example/services/override"
)

const (
	secretA = "pRZl0Qw3mN7y5tV8kX2cB4hJ6fD9sA1gLuEiOoPzTxM="
	secretB = "m4Xc8vB2nZ6kL0pQ5wE9rT3yU7iO1aSdFgHjKlMnBvC="
)

// now is the moment of all tests; expiry is an hour later.
var (
	now    = time.Unix(1795996400, 0)
	expiry = time.Unix(1796000000, 0)
	wanted = override.Token{Service: "organizationservice", Variant: "new", Expires: expiry}
)

func keysOf(t testing.TB, file string) *override.Keys {
	t.Helper()
	keys, err := override.ParseKeys([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// sign signs a token that must be in order.
func sign(t testing.TB, keys *override.Keys, want override.Token, at time.Time) string {
	t.Helper()
	text, err := keys.Sign(want, at)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The signature was made with openssl:
//
//	printf %s v1.organizationservice.new.1796000000.2026-11 | openssl dgst -sha256 -hmac $SECRET -binary | basenc --base64url
func TestSignMakesTheTextOfTheFormat(t *testing.T) {
	t.Parallel()
	keys := keysOf(t, "2026-11 "+secretA+"\n2026-10 "+secretB+"\n")
	const want = "v1.organizationservice.new.1796000000.2026-11.uB1VIH2Ggr6BcjR-yL279rzCzUL6q3m57oeGawflHrM"
	if got := sign(t, keys, wanted, now); got != want {
		t.Errorf("Sign = %q, want %q", got, want)
	}
	if got, err := keys.Verify(want, now); err != nil || got != wanted {
		t.Errorf("Verify = %+v, %v, want %+v", got, err, wanted)
	}
}

func TestVerifyTakesTheTokensOfAllKeys(t *testing.T) {
	t.Parallel()
	old, both := keysOf(t, "old "+secretA), keysOf(t, "new "+secretB+"\nold "+secretA)
	for _, text := range []string{sign(t, old, wanted, now), sign(t, both, wanted, now)} {
		if _, err := both.Verify(text, now); err != nil {
			t.Errorf("Verify(%q) = %v", text, err)
		}
	}
	if _, err := old.Verify(sign(t, both, wanted, now), now); !errors.Is(err, override.ErrUnknownKey) {
		t.Errorf("a token of the first key, where it is not known, = %v, want %v", err, override.ErrUnknownKey)
	}
}

func TestVerifySaysWhyATokenDoesNotHold(t *testing.T) {
	t.Parallel()
	keys := keysOf(t, "a "+secretA+"\nb "+secretB)
	good := sign(t, keys, wanted, now)
	signed, signature := good[:strings.LastIndexByte(good, '.')], good[strings.LastIndexByte(good, '.')+1:]
	with := func(part int, text string) string {
		parts := strings.Split(good, ".")
		parts[part] = text
		return strings.Join(parts, ".")
	}
	tests := []struct {
		name, token string
		at          time.Time
		want        error
	}{
		{"as it was made", good, now, nil},
		{"a moment before its end", good, expiry.Add(-1), nil},
		{"at its end", good, expiry, override.ErrExpired},
		{"long after its end", good, expiry.AddDate(10, 0, 0), override.ErrExpired},
		{"30 days before its end", good, expiry.Add(-override.MaxLife), nil},
		{"more than 30 days before its end", good, expiry.Add(-override.MaxLife - 1), override.ErrTooFar},
		{"for another service", with(1, "licensingservice"), now, override.ErrForged},
		{"for another variant", with(2, "old"), now, override.ErrForged},
		{"for longer", with(3, "1796003600"), now, override.ErrForged},
		{"expired and forged", with(3, "1796003601"), expiry.AddDate(1, 0, 0), override.ErrForged},
		{"by another key of the file", with(4, "b"), now, override.ErrForged},
		{"by a key that is not in the file", with(4, "c"), now, override.ErrUnknownKey},
		{"by the key without its id", with(4, ""), now, override.ErrUnknownKey},
		{"another signature", signed + "." + strings.Repeat("A", 43), now, override.ErrForged},
		{"the same bytes in other letters", signed + "." + signature[:42] + next(signature[42]), now, override.ErrForged},
		{"standard base64", signed + "." + strings.Repeat("+/", 21) + "+", now, override.ErrForged},
		{"padding", good + "=", now, override.ErrMalformed},
		{"a signature cut short", good[:len(good)-1], now, override.ErrMalformed},
		{"no signature", signed, now, override.ErrMalformed},
		{"an empty signature", signed + ".", now, override.ErrMalformed},
		{"another version", with(0, "v2"), now, override.ErrMalformed},
		{"no service", with(1, ""), now, override.ErrMalformed},
		{"a service of other letters", with(1, "Organizationservice"), now, override.ErrMalformed},
		{"all services", with(1, "*"), now, override.ErrMalformed},
		{"a variant that is too long", with(2, strings.Repeat("n", 64)), now, override.ErrMalformed},
		{"a hyphen at the end", with(2, "new-"), now, override.ErrMalformed},
		{"no expiry", with(3, ""), now, override.ErrMalformed},
		{"an expiry with a sign", with(3, "+1796000000"), now, override.ErrMalformed},
		{"a negative expiry", with(3, "-1796000000"), now, override.ErrMalformed},
		{"an expiry with a zero in front", with(3, "01796000000"), now, override.ErrMalformed},
		{"an expiry in words", with(3, "tomorrow"), now, override.ErrMalformed},
		{"an expiry beyond all numbers", with(3, strings.Repeat("9", 30)), now, override.ErrMalformed},
		{"one part more", "v1." + good, now, override.ErrMalformed},
		{"white space", " " + good, now, override.ErrMalformed},
		{"nothing", "", now, override.ErrMalformed},
		{"dots", ".....", now, override.ErrMalformed},
		{"4 KiB of rubbish", strings.Repeat("x.", 2048), now, override.ErrMalformed},
		{"a letter outside ASCII", with(1, "örganization"), now, override.ErrMalformed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := keys.Verify(test.token, test.at)
			if !errors.Is(err, test.want) {
				t.Fatalf("Verify(%q) = %v, want %v", test.token, err, test.want)
			}
			if err == nil && got != wanted || err != nil && got != (override.Token{}) {
				t.Errorf("Verify(%q) = %+v, %v", test.token, got, err)
			}
		})
	}
}

// next returns the letter after c in the alphabet of base64url. The last letter of a
// signature has two bits that stand for nothing, so the next one is the same bytes.
func next(c byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(alphabet[strings.IndexByte(alphabet, c)+1])
}

func TestTheLongestTokenIsTaken(t *testing.T) {
	t.Parallel()
	keys := keysOf(t, strings.Repeat("k", 32)+" "+secretA)
	far := time.Unix(99999999999, 0)
	longest := override.Token{Service: strings.Repeat("s", 63), Variant: strings.Repeat("v", 63), Expires: far}
	text := sign(t, keys, longest, far.Add(-time.Hour))
	if len(text) != override.MaxLength {
		t.Errorf("a token of the longest parts has %d bytes, MaxLength is %d", len(text), override.MaxLength)
	}
	if got, err := keys.Verify(text, far.Add(-time.Hour)); err != nil || got != longest {
		t.Errorf("Verify(%q) = %+v, %v", text, got, err)
	}
}

func TestSignRefusesWhatVerifyWould(t *testing.T) {
	t.Parallel()
	keys := keysOf(t, "a "+secretA)
	tests := []struct {
		name  string
		token override.Token
		want  string
	}{
		{"no service", override.Token{Variant: "new", Expires: expiry}, "the service"},
		{"a bad service", override.Token{Service: "a.b", Variant: "new", Expires: expiry}, "the service"},
		{"no variant", override.Token{Service: "s", Expires: expiry}, "the variant"},
		{"a bad variant", override.Token{Service: "s", Variant: "New", Expires: expiry}, "the variant"},
		{"no expiry", override.Token{Service: "s", Variant: "new"}, "in the future"},
		{"now", override.Token{Service: "s", Variant: "new", Expires: now}, "in the future"},
		{"within the second", override.Token{Service: "s", Variant: "new", Expires: now.Add(time.Second - 1)}, "in the future"},
		{"after 30 days", override.Token{Service: "s", Variant: "new", Expires: now.Add(override.MaxLife + time.Second)}, "at most 30 days"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			text, err := keys.Sign(test.token, now)
			if err == nil || !strings.Contains(err.Error(), test.want) || text != "" {
				t.Errorf("Sign(%+v) = %q, %v, want %q", test.token, text, err, test.want)
			}
		})
	}
	text := sign(t, keys, override.Token{Service: "s", Variant: "new", Expires: now.Add(override.MaxLife + time.Second/2)}, now)
	if _, err := keys.Verify(text, now); err != nil {
		t.Errorf("a token of 30 days = %v", err)
	}
}

func TestParseKeysNamesTheLineAndNotTheSecret(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, file, want string }{
		{"nothing", "", "no key in the file"},
		{"comments only", "# a " + secretA + "\n\n", "no key in the file"},
		{"one column", secretA, "line 1: want 2 columns (id, secret), have 1"},
		{"three columns", "a " + secretA + " x", "line 1: want 2 columns (id, secret), have 3"},
		{"a comment behind", "a " + secretA + " # mine", "line 1: want 2 columns"},
		{"a dot in the id", "\n\na.b " + secretA, "line 3: id"},
		{"a long id", strings.Repeat("a", 33) + " " + secretA, "line 1: id"},
		{"a short secret", "a " + secretA[:31], "line 1: secret: want at least 32 bytes, have 31"},
		{"a secret of other letters", "a " + secretA + "é", "line 1: secret: want visible ASCII"},
		{"an id twice", "a " + secretA + "\na " + secretB, "line 2: the id was given before"},
		{"a secret twice", "a " + secretA + "\nb " + secretA, "line 2: the secret was given before"},
		{"two mistakes", "a x\n# ok\nb y", "line 3: secret"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			keys, err := override.ParseKeys([]byte(test.file))
			if err == nil || !strings.Contains(err.Error(), test.want) || keys != nil {
				t.Fatalf("ParseKeys(%q) = %v, %v, want %q", test.file, keys, err, test.want)
			}
			if strings.Contains(err.Error(), secretA[:8]) {
				t.Errorf("ParseKeys(%q) tells the secret: %v", test.file, err)
			}
		})
	}
}

func TestParseKeysSkipsCommentsAndTakesAnyLineEnd(t *testing.T) {
	t.Parallel()
	keys := keysOf(t, "# the keys\n\n  a\t"+secretA+"  \r\n#b "+secretB+"\nc "+secretB)
	if got := sign(t, keys, wanted, now); !strings.Contains(got, ".a.") {
		t.Errorf("Sign = %q, want it signed with the first key", got)
	}
	for _, form := range []string{"%v", "%+v", "%s"} {
		if got := fmt.Sprintf(form, keys); got != "2 override keys" {
			t.Errorf("%s of the keys = %q", form, got)
		}
	}
}
