package cli_test

import (
	"strings"
	"testing"
	"time"

	"specialroutes.example/services/override"
)

const keyFile = "# of the tests\n2026-11 pRZl0Qw3mN7y5tV8kX2cB4hJ6fD9sA1gLuEiOoPzTxM=\nold m4Xc8vB2nZ6kL0pQ5wE9rT3yU7iO1aSdFgHjKlMnBvC=\n"

func TestOverrideSignsWhatGatewaysTake(t *testing.T) {
	t.Parallel()
	keys, err := override.ParseKeys([]byte(keyFile))
	if err != nil {
		t.Fatal(err)
	}
	file := writeFile(t, keyFile)
	before := time.Now().Truncate(time.Second)
	o := command{t: t}.run("override", "--service", "organizationservice", "--variant", "new", "--for", "90m", "--keys", file).expect(t, 0)
	if strings.Count(o.stdout, "\n") != 1 || o.stderr != "" {
		t.Errorf("prints %q and %q, want one line", o.stdout, o.stderr)
	}
	got, err := keys.Verify(strings.TrimSuffix(o.stdout, "\n"), time.Now())
	if err != nil || got.Service != "organizationservice" || got.Variant != "new" {
		t.Errorf("Verify(%q) = %+v, %v", o.stdout, got, err)
	}
	if life := got.Expires.Sub(before); life < 90*time.Minute || life > 91*time.Minute {
		t.Errorf("it holds for %v, want 90 minutes", life)
	}

	var all struct {
		Token, Service, Variant, Header, Cookie string
		Expires                                 time.Time
	}
	command{t: t, env: []string{"SPECIALROUTES_OVERRIDE_KEYS=" + file}}.
		run("override", "--service=s", "--variant=v", "--output=json").expect(t, 0).json(t, &all)
	got, err = keys.Verify(all.Token, time.Now())
	if err != nil || !got.Expires.Equal(all.Expires) || all.Service != "s" || all.Variant != "v" ||
		all.Header != "Route-Override: "+all.Token || all.Cookie != "route-override="+all.Token {
		t.Errorf("%+v: Verify = %+v, %v", all, got, err)
	}
}

func TestOverrideRefusesWhatGatewaysWould(t *testing.T) {
	t.Parallel()
	file := writeFile(t, keyFile)
	good := []string{"--service=s", "--variant=v", "--keys=" + file}
	tests := []struct {
		name string
		args []string
		code int
		want string
	}{
		{"no service", []string{"--variant=v", "--keys=" + file}, 2, "the service"},
		{"a bad variant", append(good, "--variant=V"), 2, "the variant"},
		{"no time", append(good, "--for=0s"), 2, "want more than nothing"},
		{"a time that is over", append(good, "--for=-1h"), 2, "want more than nothing"},
		{"more than 30 days", append(good, "--for=720h1s"), 2, "at most 30 days"},
		{"a time that is none", append(good, "--for=tomorrow"), 2, "--for"},
		{"an argument", append(good, "s"), 2, "want: specialroutes override"},
		{"another form", append(good, "--output=yaml"), 2, "want table or json"},
		{"no keys", good[:2], 2, "--keys or SPECIALROUTES_OVERRIDE_KEYS"},
		{"keys that are away", append(good, "--keys=/nowhere/keys"), 1, "/nowhere/keys: no such file"},
		{"a short secret", append(good, "--keys="+writeFile(t, "\na short")), 1, "line 2: secret: want at least 32 bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := command{t: t}.run(append([]string{"override"}, test.args...)...).expect(t, test.code).complains(t, test.want)
			if o.stdout != "" {
				t.Errorf("prints %q beside an error", o.stdout)
			}
		})
	}
}
