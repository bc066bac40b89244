package filter

import (
	"strings"
	"testing"
)

// Row 42: what is no host of anything is refused, before it reaches a log, a field or
// an upstream.
func TestValidHost(t *testing.T) {
	t.Parallel()
	for _, host := range []string{
		"a", "A.example:8080", "127.0.0.1", "[::1]", "[::1]:80", "under_score", "_a.b", "a.", "a.:80", "a-b.c-d", "xn--bcher-kva.example",
		strings.Repeat("a.", 126) + "a",
	} {
		if !validHost(host) {
			t.Errorf("validHost(%q) = false", host)
		}
	}
	for _, host := range []string{
		"", ".", "..", "a..", "a..b", ".a", "a,b", "a;b", "a=b", "-a", "a-", "a.-b", "a-.b", "a b", "a/b", "u@b", "a%20b", "a\x00b", "caf\xe9", "a:0",
		"a:99999", "a:x", "a:-1", "a:+1", ":80", ".:80", "[::1", "::1]", "[1.2.3.4]", "[fe80::1%25eth0]", "(a)", "~a", strings.Repeat("a.", 127) + "a",
	} {
		if validHost(host) {
			t.Errorf("validHost(%q) = true", host)
		}
	}
}
