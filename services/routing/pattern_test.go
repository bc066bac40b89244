package routing_test

import (
	"fmt"
	"strings"
	"testing"

	"specialroutes.example/services/routing"
	"specialroutes.example/services/routing/routingtest"
)

// withRegexes is a record with n rules that hold the same regex over the path.
func withRegexes(n int, regex string) *routing.Record {
	r := routingtest.Weighted("a", 1, 1)
	for i := range n {
		r.Rules = append(r.Rules, routing.Rule{
			Name: fmt.Sprintf("r%d", i), Variant: new(r.Variants[1].Name),
			Match: []routing.Match{{On: routing.OnPath, Regex: new(regex)}},
		})
	}
	return r
}

func TestValidate_RegexesOfARecordAreBoundedTogether(t *testing.T) {
	t.Parallel()
	if errs := withRegexes(64, `.*/(admin|internal)/.*|.*\.(png|jpe?g|css|js)`).Validate(); errs != nil {
		t.Errorf("64 ordinary regexes: %v", errs)
	}
	for _, regex := range []string{`[a-z]{990}[a-z]{900}[a-z]{500}x`, `(?i)\PL{600}\PL{600}x`} {
		errs := withRegexes(64, regex).Validate()
		if len(errs) != 1 || !strings.HasSuffix(errs[0].Pointer, "/match/0/regex") {
			t.Errorf("64 of %s: %v, want one refusal of a regex", regex, errs)
		}
	}
}

func TestDecide_RegexIsTriedOnlyOnValuesOfABoundedLength(t *testing.T) {
	t.Parallel()
	rt := routingtest.Compile(t, withRegexes(1, `/a*`))
	for size, want := range map[int]routing.Kind{4096: routing.KindRule, 4097: routing.KindDraw} {
		req := &routing.Request{Method: "GET", Path: "/" + strings.Repeat("a", size-1)}
		if got := rt.Decide(req, routingtest.Always(1)); got.Kind != want {
			t.Errorf("a path of %d bytes: %v, want %v", size, got.Kind, want)
		}
	}
}
