package rawpath

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

func TestParseKeepsEveryByte(t *testing.T) {
	t.Parallel()
	tests := []struct {
		uri  string
		want Target
	}{
		{"/", Target{Path: "/"}},
		{"/a/b?x=1", Target{Path: "/a/b", Query: "x=1", HasQuery: true}},
		{"/a?", Target{Path: "/a", HasQuery: true}},
		{"/a??", Target{Path: "/a", Query: "?", HasQuery: true}},
		{"//evil.com/", Target{Path: "//evil.com/"}},
		{"/a%2Fb%3Bc;d", Target{Path: "/a%2Fb%3Bc;d"}},
		{`/{a}|"<>^` + "`", Target{Path: `/{a}|"<>^` + "`"}},
		{"/a?b#c\x80%zz;", Target{Path: "/a", Query: "b#c\x80%zz;", HasQuery: true}},
		{"http://host/a%2Fb?q", Target{Path: "/a%2Fb", Query: "q", HasQuery: true, Authority: "host"}},
		{"HTTPS://host:1", Target{Path: "/", Authority: "host:1"}},
		{"http://host?q", Target{Path: "/", Query: "q", HasQuery: true, Authority: "host"}},
	}
	for _, tt := range tests {
		got, err := Parse(tt.uri)
		if err != nil || got != tt.want {
			t.Errorf("Parse(%q) = %+v, %v, want %+v", tt.uri, got, err, tt.want)
		}
	}
}

func TestParseRefusesOtherForms(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]error{
		"":                ErrForm,
		"a/b":             ErrForm,
		"host:443":        ErrForm,
		"ftp://host/a":    ErrForm,
		"http://":         ErrForm,
		"http:///a":       ErrForm,
		"http://u@host/a": ErrForm,
		"*":               ErrAsterisk,
		"http://host#a":   ErrFragment,
		"http://host/a#b": ErrFragment,
	} {
		if _, err := Parse(uri); !errors.Is(err, want) {
			t.Errorf("Parse(%q) = %v, want %v", uri, err, want)
		}
	}
}

// Rows 30, 34, 36 and 38 of the list of inputs that break gateways, as far as
// the path goes.
func TestCheck(t *testing.T) {
	t.Parallel()
	tests := map[string]error{
		"/": nil, "//": nil, "/a//b": nil, "/a%2Fb": nil, "/a%2fb": nil, "/%3B": nil,
		"/a;..": nil, "/a;../b": nil, "/...": nil, "/.a": nil, "/a.": nil, "/..a": nil,
		"/%2e%2e%2e": nil, "/%252e%252e/x": nil, "/%252e": nil, "/..%3b": nil,
		"/%ff": nil, "/%C3%A9": nil, "/a%20b": nil, "/%3f%23": nil, "/~!$&'()*+,=:@": nil,
		"/;": nil, "/;a=b": nil, "/%0d%0a": nil,

		"/.": ErrDots, "/..": ErrDots, "/./": ErrDots, "/../": ErrDots, "/a/..": ErrDots,
		"/pub/../admin": ErrDots, "/pub/%2e%2e/admin": ErrDots, "/pub/.%2E/admin": ErrDots,
		"/pub/..;/admin": ErrDots, "/./admin": ErrDots, "/..;a=b": ErrDots, "/.;": ErrDots,
		"/a%2F..": ErrDots, "/a%2f..%2Fb": ErrDots, "/..%2Fb": ErrDots, "/a;b%2f..": ErrDots,
		"/a;b/..": ErrDots, "/%2e": ErrDots, "/%2e;x": ErrDots,

		"/%": ErrTriplet, "/%a": ErrTriplet, "/%zz": ErrTriplet, "/%0g": ErrTriplet, "/a%2": ErrTriplet,
		"/a\x80b": ErrByte, "/a b": ErrByte, "/\x00": ErrByte, "/\x7f": ErrByte, "/\t": ErrByte,
		"/a#b": ErrFragment, "/#": ErrFragment,
		`/a\b`: ErrBackslash, `/a\..\b`: ErrBackslash, "/%5c": ErrBackslash, "/%5C..": ErrBackslash,
		"/%00": ErrNUL, "/a%00b": ErrNUL,
	}
	for path, want := range tests {
		if got := Check(path); !errors.Is(got, want) || (want == nil && got != nil) {
			t.Errorf("Check(%q) = %v, want %v", path, got, want)
		}
	}
}

var dotSegment = regexp.MustCompile(`^\.{1,2}$`)

// refused says the same as Check, the slow way: decode what a careless reader
// would decode, split where he would split, look at each segment.
func refused(path string) bool {
	for i := range len(path) {
		if c := path[i]; c < 0x21 || c > 0x7e || c == '#' || c == '\\' {
			return true
		}
	}
	if _, err := url.PathUnescape(path); err != nil {
		return true
	}
	path = regexp.MustCompile("(?i)%2f").ReplaceAllString(path, "/")
	for part := range strings.SplitSeq(path, "/") {
		name, _, _ := strings.Cut(part, ";")
		name, _ = url.PathUnescape(name)
		if dotSegment.MatchString(name) {
			return true
		}
	}
	low := strings.ToLower(path)
	decoded, _ := url.PathUnescape(low)
	return strings.ContainsAny(decoded, "\x00\\")
}

func FuzzCheck(f *testing.F) {
	for _, seed := range []string{"/", "/a/../b", "/%2e%2E;x/%2F", "/a;b%2f..", "/%5c", "/%00", "/%", "/\x80", "/..%3b/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if got, want := Check(path) != nil, refused(path); got != want {
			t.Errorf("Check(%q) refuses: %v, want %v", path, got, want)
		}
	})
}
