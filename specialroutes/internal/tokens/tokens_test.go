package tokens_test

import (
	"strings"
	"testing"

	"specialroutes.example/specialroutes/internal/tokens"
)

const (
	secretA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" // 32 bytes
	secretB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func TestFindGivesTheTokenOfTheSecret(t *testing.T) {
	t.Parallel()
	set, err := tokens.Parse([]byte("# a comment\n\n  gateways " + secretA + " read *\r\n" +
		"orga-team\t" + secretB + "  write  organization,org-\n"))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		secret      string
		name        string // "" for none
		read, write bool
		covers      []string
		not         []string
	}{
		{secret: secretA, name: "gateways", read: true, covers: []string{"organization", "licensing", "*"}},
		{secret: secretB, name: "orga-team", read: true, write: true,
			covers: []string{"organization", "organizationservice", "org-x"}, not: []string{"org", "licensing", "*", "xorganization", ""}},
		{secret: secretA[:31]},
		{secret: secretA + "a"},
		{secret: strings.ToUpper(secretA)},
		{secret: ""},
		{secret: "gateways"},
	}
	for _, test := range tests {
		token, ok := set.Find(test.secret)
		if ok != (test.name != "") || token.Name != test.name {
			t.Errorf("Find(%q) = %q, %v, want %q", test.secret, token.Name, ok, test.name)
		}
		if token.Allows(tokens.Read) != test.read || token.Allows(tokens.Write) != test.write {
			t.Errorf("%q allows read %v, write %v, want %v, %v",
				test.name, token.Allows(tokens.Read), token.Allows(tokens.Write), test.read, test.write)
		}
		for _, s := range test.covers {
			if !token.Covers(s) {
				t.Errorf("%q does not cover %q", test.name, s)
			}
		}
		for _, s := range test.not {
			if token.Covers(s) {
				t.Errorf("%q covers %q", test.name, s)
			}
		}
	}
}

func TestParseNamesTheLineAndNotTheSecret(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, file, want string }{
		{"nothing", "", "no token"},
		{"comments only", "# x\n\n", "no token"},
		{"a short secret", "a " + secretA[:31] + " read *", "line 1: secret: want at least 32 bytes"},
		{"a secret of other letters", "a " + secretA + "é read *", "line 1: secret: want visible"},
		{"an unknown scope", "\na " + secretA + " admin *", "line 2: scope"},
		{"no services", "a " + secretA + " read", "line 1: want 4 columns"},
		{"a space in the services", "a " + secretA + " read x, y", "line 1: want 4 columns"},
		{"an empty prefix", "a " + secretA + " read x,", "line 1: services"},
		{"a star among others", "a " + secretA + " read x,*", "line 1: services"},
		{"a bad name", "-a " + secretA + " read *", "line 1: name"},
		{"a name twice", "a " + secretA + " read *\na " + secretB + " read *", "line 2: the name"},
		{"a secret twice", "a " + secretA + " read *\nb " + secretA + " read *", "line 2: the secret"},
		{"two mistakes", "a " + secretA + " x *\nb " + secretB + " y *", "line 2: scope"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := tokens.Parse([]byte(test.file))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("Parse(%q) = %v, want %q", test.file, err, test.want)
			}
			if strings.Contains(err.Error(), secretA[:8]) {
				t.Errorf("Parse(%q) tells the secret: %v", test.file, err)
			}
		})
	}
}

func TestEverybodyMayWhatTheScopeSays(t *testing.T) {
	t.Parallel()
	e := tokens.Everybody(tokens.Read)
	if !e.Allows(tokens.Read) || e.Allows(tokens.Write) || !e.All() || !e.Covers("*") {
		t.Errorf("Everybody(Read) = %+v", e)
	}
	if (tokens.Token{}).Allows(tokens.Read) {
		t.Error("the zero token may read")
	}
}
