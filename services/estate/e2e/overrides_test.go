package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"specialroutes.example/services/override"
)

// The lines of a key file: the first signs. The foreign one is in no file.
const (
	presentKey = "present 0123456789abcdef0123456789abcdef0123456789abcdef"
	pastKey    = "past fedcba9876543210fedcba9876543210fedcba9876543210"
	foreignKey = "present 00000000000000000000000000000000ffffffffffffffff"
)

// keyFile writes a key file.
func keyFile(t testing.TB, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// signed makes an override with a key, as of a moment: one that has expired was
// once made.
func signed(t testing.TB, key, service, variant string, expires time.Duration) string {
	t.Helper()
	keys, err := override.ParseKeys([]byte(key + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	made := now
	if expires <= 0 {
		made = now.Add(expires - time.Hour)
	}
	if expires > override.MaxLife {
		made = now.Add(expires - override.MaxLife)
	}
	token, err := keys.Sign(override.Token{Service: service, Variant: variant, Expires: now.Add(expires)}, made)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// overrideLab is a lab whose gateway knows two keys.
func overrideLab(t testing.TB, o labOptions) *lab {
	t.Helper()
	config := map[string]string{"overrideKeys": fmt.Sprintf("%q", keyFile(t, presentKey, pastKey))}
	for name, text := range o.config {
		config[name] = text
	}
	o.config = config
	return newLab(t, o)
}

func (l *lab) invalidOverrides(t testing.TB) float64 {
	t.Helper()
	return samples(t, l.admin+"/metrics", func(name, _ string) bool { return name == "gateway_invalid_overrides_total" })
}

func TestASignedOverrideIsObeyed(t *testing.T) {
	t.Parallel()
	l := overrideLab(t, labOptions{})
	token := signed(t, presentKey, labService, "new", time.Hour)
	forOther := signed(t, presentKey, "other-service", "new", time.Hour)
	toOld := signed(t, presentKey, labService, "old", time.Hour)
	l.set(t, l.record(1, 0))
	for name, test := range map[string]struct {
		h       headers
		variant string
	}{
		"in the header":                       {headers{{"Route-Override", token}}, "new"},
		"in the header in another case":       {headers{{"route-override", token}}, "new"},
		"in the cookie":                       {headers{{"Cookie", "a=b; route-override=" + token}}, "new"},
		"by a key that still verifies":        {headers{{"Route-Override", signed(t, pastKey, labService, "new", time.Hour)}}, "new"},
		"after one for another service":       {headers{{"Route-Override", forOther + ", " + token}}, "new"},
		"before one for another service":      {headers{{"Route-Override", token + "," + forOther}}, "new"},
		"in a second line":                    {headers{{"Route-Override", forOther}, {"Route-Override", token}}, "new"},
		"the first of two":                    {headers{{"Route-Override", token + ", " + toOld}}, "new"},
		"the header before the cookie":        {headers{{"Route-Override", toOld}, {"Cookie", "route-override=" + token}}, "old"},
		"as long as it may last":              {headers{{"Route-Override", signed(t, presentKey, labService, "new", 29*24*time.Hour)}}, "new"},
		"that wants what would have come":     {headers{{"Route-Override", toOld}}, "old"},
		"to the default of a one-sided split": {headers{{"Cookie", "route-override=" + toOld}}, "old"},
	} {
		t.Run(name, func(t *testing.T) {
			got := l.get(t, "/x", test.h...)
			wantRouted(t, got, test.variant, "override")
			if v := got.header.Values("X-Route-Override-Invalid"); len(v) != 0 {
				t.Errorf("X-Route-Override-Invalid = %q, but all of them hold", v)
			}
		})
	}
	t.Run("of another service it travels on and changes nothing", func(t *testing.T) {
		l.old.reset()
		got := l.get(t, "/x", [2]string{"Route-Override", forOther}, [2]string{"Cookie", "a=b; route-override=" + forOther})
		wantRouted(t, got, "old", "draw")
		saw := l.old.only(t)
		if v := saw.header.Get("Route-Override"); v != forOther {
			t.Errorf("Route-Override at the upstream = %q, want it as it came", v)
		}
		if v := saw.header.Get("Cookie"); v != "a=b; route-override="+forOther {
			t.Errorf("Cookie at the upstream = %q", v)
		}
	})
}

func TestAnOverrideThatDoesNotHoldIsRemovedCountedAndNamed(t *testing.T) {
	t.Parallel()
	l := overrideLab(t, labOptions{})
	l.set(t, l.record(1, 0))
	token := signed(t, presentKey, labService, "new", time.Hour)
	before, logged := l.invalidOverrides(t), map[string]string{} // correlation ID → why
	text, signature := token[:strings.LastIndexByte(token, '.')+1], token[strings.LastIndexByte(token, '.')+1:]
	for _, test := range []struct{ name, token, why string }{
		{"forged with a signature of zeros", text + strings.Repeat("A", len(signature)), "forged"},
		{"forged with another's signature", text + signed(t, presentKey, labService, "old", time.Hour)[len(text):], "forged"},
		{"foreign, by a key of the same name", signed(t, foreignKey, labService, "new", time.Hour), "forged"},
		{"foreign, by a key of another name", signed(t, "x"+foreignKey, labService, "new", time.Hour), "unknown-key"},
		{"with another variant written into it", strings.Replace(signed(t, presentKey, labService, "old", time.Hour), ".old.", ".new.", 1), "forged"},
		{"with another service written into it", strings.Replace(signed(t, presentKey, "other-service", "new", time.Hour), "other-service", labService, 1), "forged"},
		{"with its time moved on", strings.Replace(token, ".present.", "0.present.", 1), "forged"},
		{"expired a second ago", signed(t, presentKey, labService, "new", -time.Second), "expired"},
		{"expired long ago", signed(t, presentKey, labService, "new", -1000*time.Hour), "expired"},
		{"longer than 30 days", signed(t, presentKey, labService, "new", 31*24*time.Hour), "too-far"},
		{"to a variant that is none", signed(t, presentKey, labService, "newer", time.Hour), "unknown-variant"},
		{"of another version", "v2" + strings.TrimPrefix(token, "v1"), "malformed"},
		{"without its signature", strings.TrimSuffix(text, "."), "malformed"},
		{"with an empty signature", text, "malformed"},
		{"a word", "new", "malformed"},
		{"the variant alone", "v1." + labService + ".new", "malformed"},
		{"4 KiB of rubbish", strings.Repeat("x", 4<<10), "malformed"},
		{"dots", strings.Repeat(".", 500), "malformed"},
	} {
		for place, h := range map[string]headers{
			"in the header": {{"Route-Override", test.token}},
			"in the cookie": {{"Cookie", "a=b; route-override=" + test.token + "; c=d"}},
		} {
			t.Run(test.name+" "+place, func(t *testing.T) {
				l.old.reset()
				id := strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(test.name + " " + place)
				logged[id] = test.why
				got := l.get(t, "/x", append(h, [2]string{correlationHeader, id})...)
				wantRouted(t, got, "old", "draw")
				if v := got.header.Values("X-Route-Override-Invalid"); len(v) != 1 || v[0] != test.why {
					t.Errorf("X-Route-Override-Invalid = %q, want %q", v, test.why)
				}
				saw := l.old.only(t)
				if v := saw.header.Values("Route-Override"); len(v) != 0 {
					t.Errorf("Route-Override = %q at the upstream, want it removed", v)
				}
				if v := saw.header.Get("Cookie"); place == "in the cookie" && v != "a=b; c=d" {
					t.Errorf("Cookie = %q at the upstream, want the other two", v)
				}
			})
		}
	}
	for id, why := range logged {
		if line := l.accessLine(t, id); line["overrideInvalid"] != why {
			t.Errorf("%s: overrideInvalid = %v in the log, want %q", id, line["overrideInvalid"], why)
		}
	}
	poll(t, 5*time.Second, "all of them are counted", func() error {
		if n := l.invalidOverrides(t) - before; n != float64(len(logged)) {
			return fmt.Errorf("counted %v, want %d", n, len(logged))
		}
		return nil
	})
	if out := l.gateway.out.String(); strings.Contains(out, signature) || strings.Contains(out, strings.Repeat("x", 300)) {
		t.Error("the gateway's log tells what the client sent")
	}
	t.Run("a valid one beside it is obeyed and travels on", func(t *testing.T) {
		l.new.reset()
		got := l.get(t, "/x", [2]string{"Route-Override", "rubbish, " + token})
		wantRouted(t, got, "new", "override")
		if v := got.header.Get("X-Route-Override-Invalid"); v != "malformed" {
			t.Errorf("X-Route-Override-Invalid = %q", v)
		}
		if v := l.new.only(t).header.Get("Route-Override"); v != token {
			t.Errorf("Route-Override at the upstream = %q, want the valid one alone", v)
		}
	})
}

func TestWithoutAKeyFileNoOverrideHolds(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	l.set(t, l.record(1, 0))
	got := l.get(t, "/x", [2]string{"Route-Override", signed(t, presentKey, labService, "new", time.Hour)})
	wantRouted(t, got, "old", "draw")
	if v := l.old.only(t).header.Values("Route-Override"); len(v) != 0 {
		t.Errorf("Route-Override = %q at the upstream, though nobody could check it", v)
	}
}

func TestAnOverrideToAVariantThatIsUnavailableIs503AndNeverGivesWay(t *testing.T) {
	t.Parallel()
	l := overrideLab(t, labOptions{})
	for name, place := range map[string]string{
		"nothing listens there":     `"endpoint":"http://` + shared.ports.free(t) + `"`,
		"no instance has the label": `"selector":{"version":"none"}`,
	} {
		for _, onUnavailable := range []string{"default", "fail"} {
			t.Run(name+", "+onUnavailable, func(t *testing.T) {
				l.set(t, recordOf(labService, []string{`{"name":"old","weight":1}`, `{"name":"new","weight":1,` + place + `}`},
					fmt.Sprintf(`"onUnavailable":%q`, onUnavailable)))
				l.old.reset()
				got := l.get(t, "/x", [2]string{"Route-Override", signed(t, presentKey, labService, "new", time.Hour)})
				wantProblem(t, got, 503)
				if r := routeOf(got); r != (routed{"new", "override"}) {
					t.Errorf("the answer says %+v, want new by the override", r)
				}
				l.old.wantNone(t)
			})
		}
	}
}

func TestAnOverrideDoesNotWakeARecordThatIsSwitchedOff(t *testing.T) {
	t.Parallel()
	l := overrideLab(t, labOptions{})
	token := [2]string{"Route-Override", signed(t, presentKey, labService, "new", time.Hour)}
	l.set(t, strings.Replace(l.record(1, 1), `"active":true`, `"active":false`, 1))
	wantRouted(t, l.get(t, "/x", token), "old", "inactive")
	if got := call(t, "DELETE", l.full(labService), nil, nil); got.status != 200 {
		t.Fatalf("DELETE: status %d: %s", got.status, got.body)
	}
	l.inForce(t)
	wantRouted(t, l.get(t, "/x", token), "default", "no-record")
}

func TestAnOverrideReachesAVariantOfWeight0(t *testing.T) {
	t.Parallel()
	l := overrideLab(t, labOptions{new: newUpstream(t, "new", echo)})
	l.set(t, l.spread([]string{`"sticky":{"by":"query","name":"u"}`}, 1, 0, 0))
	for _, variant := range []string{"v1", "v2"} {
		got := l.get(t, "/x", [2]string{"Route-Override", signed(t, presentKey, labService, variant, time.Hour)})
		wantRouted(t, got, variant, "override")
		if string(got.body) != "/"+variant+"/x" {
			t.Errorf("answered by %q", got.body)
		}
	}
	l.new.reset()
	each(t, 200, func(i int) (string, error) { return variantOf(fmt.Sprintf("%s/x?u=%d", l.base, i)) })
	l.new.wantNone(t)
}
