package e2e_test

import (
	"strings"
	"testing"
	"time"
)

// The decision's order: active, override, rules in order, sticky, draw. Each test
// holds two neighbours against each other: both have an answer, the answers
// differ, and the first one counts.

func TestActiveComesBeforeAnOverride(t *testing.T) {
	t.Parallel()
	l := overrideLab(t, labOptions{})
	token := [2]string{"Route-Override", signed(t, presentKey, labService, "new", time.Hour)}
	l.set(t, l.record(1, 0))
	wantRouted(t, l.get(t, "/x", token), "new", "override")
	l.set(t, strings.Replace(l.record(1, 0), `"active":true`, `"active":false`, 1))
	wantRouted(t, l.get(t, "/x", token), "old", "inactive")
}

func TestAnOverrideComesBeforeTheRules(t *testing.T) {
	t.Parallel()
	l := overrideLab(t, labOptions{new: newUpstream(t, "new", echo)})
	l.set(t, l.spread([]string{rulesOf(ruleTo("all", "v1", `{"on":"path","prefix":"/"}`))}, 1, 0, 0))
	wantRouted(t, l.get(t, "/x"), "v1", "rule:all")
	wantRouted(t, l.get(t, "/x", [2]string{"Route-Override", signed(t, presentKey, labService, "v2", time.Hour)}), "v2", "override")
}

func TestARuleComesBeforeTheNext(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{new: newUpstream(t, "new", echo)})
	first := ruleTo("first", "v1", `{"on":"query","name":"a","present":true}`)
	second := ruleTo("second", "v2", `{"on":"query","name":"b","present":true}`)
	l.set(t, l.spread([]string{rulesOf(first, second)}, 1, 0, 0))
	wantRouted(t, l.get(t, "/x?b=1&a=1"), "v1", "rule:first")
	wantRouted(t, l.get(t, "/x?b=1"), "v2", "rule:second")
	l.set(t, l.spread([]string{rulesOf(second, first)}, 1, 0, 0))
	wantRouted(t, l.get(t, "/x?b=1&a=1"), "v2", "rule:second")
	wantRouted(t, l.get(t, "/x?a=1"), "v1", "rule:first")
}

func TestARuleComesBeforeSticky(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{new: newUpstream(t, "new", echo)})
	l.set(t, l.spread([]string{
		rulesOf(ruleTo("testers", "v1", `{"on":"query","name":"tester","in":["yes"]}`)), `"sticky":{"by":"query","name":"u"}`,
	}, 0, 0, 1))
	wantRouted(t, l.get(t, "/x?u=u-17"), "v2", "sticky")
	wantRouted(t, l.get(t, "/x?u=u-17&tester=yes"), "v1", "rule:testers")
	wantRouted(t, l.get(t, "/x?u=u-17&tester=no"), "v2", "sticky")
}

func TestStickyComesBeforeTheDraw(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	l.set(t, l.record(1, 1, `"sticky":{"by":"query","name":"u"}`))
	// Fifty draws of one half that agree would be one chance in 2^49.
	for _, user := range []string{"u-17", "u-42", "u-1", "u-2"} {
		want := routeOf(l.get(t, "/x?u="+user)).variant
		for range 50 {
			wantRouted(t, l.get(t, "/x?u="+user), want, "sticky")
		}
	}
	counted := tally(t, l.base+"/x", 50)
	if counted["old"] == 0 || counted["new"] == 0 {
		t.Errorf("without a key: %v, want draws", counted)
	}
	if r := routeOf(l.get(t, "/x")); r.reason != "draw" {
		t.Errorf("without a key the reason is %q, want draw", r.reason)
	}
}
