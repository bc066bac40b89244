package forward

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestFieldsAreWrittenOnOneLineEach(t *testing.T) {
	t.Parallel()
	for _, h := range []http.Header{
		{},
		{"A": {"b", ""}, "C": {"d"}, "Content-Length": {"1\r\n"}, "Transfer-Encoding": {"x"}, "Connection": {"y"}},
		{"A": {"b\nX: y"}, "C": {"d"}},
		{"A": {"b\rX: y", "e"}},
		{"A": {"b"}, "C": {"d\r\n\r\n"}},
	} {
		var want []string
		for name, values := range h {
			for _, v := range values {
				if !ofFraming(name) {
					want = append(want, name+": "+strings.NewReplacer("\r", " ", "\n", " ").Replace(v))
				}
			}
		}
		slices.Sort(want)
		written, ok := strings.CutPrefix(string(appendFields([]byte("before\r\n"), h)), "before\r\n")
		got := strings.Split(written, "\r\n")
		last := got[len(got)-1]
		got = got[:len(got)-1]
		slices.Sort(got)
		if !ok || last != "" || !slices.Equal(got, want) {
			t.Errorf("appendFields(%q) = %q, want the lines %q", h, written, want)
		}
	}
}
