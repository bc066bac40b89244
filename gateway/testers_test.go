package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/records/recordstest"
	"specialroutes.example/services/override"
)

// call asks a gateway with header lines, given as names and values in turn.
func (g *gateway) call(t *testing.T, headers ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, g.data+"/api/org/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res
}

// keyLine is a line of a key file.
func keyLine(id string) string { return id + " " + strings.Repeat(id, override.MinSecret) + "\n" }

// signed returns an override of org, signed with the key of an id.
func signed(t *testing.T, id, variant string) string {
	t.Helper()
	keys, err := override.ParseKeys([]byte(keyLine(id)))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	token, err := keys.Sign(override.Token{Service: "org", Variant: variant, Expires: now.Add(time.Hour)}, now)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestOverrideKeysAreReadAnewWhenTheyChange(t *testing.T) {
	t.Parallel()
	feed, before, after := recordstest.NewFeed(t), upstream(t, "OLD"), upstream(t, "NEW")
	feed.Put("org", recordstest.BookRecord("org", 10, after.URL))
	file := filepath.Join(t.TempDir(), "keys")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(keyLine("a"))
	g := start(t, settings(feed.URL, before, fmt.Sprintf("overrideKeys: %q\n", file))).open(t)
	eventually(t, "the record is in force", func() bool { return g.call(t).Header.Get("X-Route-Reason") == "draw" })
	told := func(id string) string {
		head := g.call(t, "Route-Override", signed(t, id, "alternate")).Header
		return strings.TrimSpace(head.Get("X-Route-Reason") + " " + head.Get("X-Route-Override-Invalid"))
	}
	if a, b := told("a"), told("b"); a != "override" || b != "draw unknown-key" {
		t.Errorf("with the first file: a is %q, b %q", a, b)
	}
	write(keyLine("b"))
	eventually(t, "the new key is taken", func() bool { return told("b") == "override" })
	if a := told("a"); a != "draw unknown-key" {
		t.Errorf("a key that was taken out is %q", a)
	}
	write("b short\n")
	eventually(t, "the bad file is noticed", func() bool {
		return told("b") == "override" && strings.Contains(g.stderr.String(), "line 1: secret: want at least 32 bytes")
	})
	_, _, metrics := get(t, g.admin+"/metrics")
	if !regexp.MustCompile(`(?m)^gateway_invalid_overrides_total [1-9]`).MatchString(metrics) {
		t.Error("/metrics counts no invalid override")
	}
	if strings.Contains(g.stderr.String(), strings.Repeat("b", 32)) {
		t.Error("the log tells a secret")
	}
}

func TestABadFileOfOverrideKeysStopsTheStart(t *testing.T) {
	t.Parallel()
	feed, before := recordstest.NewFeed(t), upstream(t, "OLD")
	dir := t.TempDir()
	short := filepath.Join(dir, "short")
	if err := os.WriteFile(short, []byte("# keys\na short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		short:                        "override keys: " + short + ": line 2: secret: want at least 32 bytes",
		filepath.Join(dir, "nobody"): "nobody: no such file",
	} {
		config := filepath.Join(t.TempDir(), "gateway.yaml")
		if err := os.WriteFile(config, []byte(settings(feed.URL, before, fmt.Sprintf("overrideKeys: %q\n", file))), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"check", "serve"} {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			out, err := exec.CommandContext(ctx, binary(t), command, "--config", config).CombinedOutput()
			cancel()
			if err == nil || !strings.Contains(string(out), want) {
				t.Errorf("%s: %v\n%s\nwant %q", command, err, out, want)
			}
		}
	}
}

// sticking is a record of two variants, half each, that sticks as told.
func sticking(endpoint, sticky string) string {
	return fmt.Sprintf(`{"service":"org","active":true,"default":"old","variants":[{"name":"old","weight":1},`+
		`{"name":"new","weight":1,"endpoint":%q}],"sticky":%s}`, endpoint, sticky)
}

// A key that one gateway has issued leads to the same variant at any other, one that
// was started later too: they share nothing but the record.
func TestGatewaysAgreeOnAKey(t *testing.T) {
	t.Parallel()
	feed, before, after := recordstest.NewFeed(t), upstream(t, "OLD"), upstream(t, "NEW")
	feed.Put("org", sticking(after.URL, `{"by":"gateway-cookie"}`))
	var gateways []*gateway
	for range 3 {
		g := start(t, settings(feed.URL, before, "")).open(t)
		eventually(t, "the record is in force", func() bool { return g.call(t).Header.Get("X-Route-Reason") == "sticky" })
		gateways = append(gateways, g)
	}
	seen := map[string]int{}
	for range 30 {
		first := gateways[0].call(t)
		cookies := first.Cookies()
		if len(cookies) != 1 || !regexp.MustCompile(`^sr-key=[A-Za-z0-9_-]{22}; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax$`).MatchString(cookies[0].Raw) {
			t.Fatalf("cookies %q, want a key", first.Header["Set-Cookie"])
		}
		variant := first.Header.Get("X-Route-Variant")
		seen[variant]++
		for i, g := range gateways {
			again := g.call(t, "Cookie", "theme=dark; sr-key="+cookies[0].Value)
			if got := again.Header.Get("X-Route-Variant"); got != variant || len(again.Cookies()) > 0 {
				t.Fatalf("gateway %d: %s with cookies %v for a key of %s", i, got, again.Cookies(), variant)
			}
		}
	}
	if seen["old"] == 0 || seen["new"] == 0 {
		t.Errorf("30 keys lead to %v, want both variants", seen)
	}
}

// A key that cannot be one is missing: no refusal, no 5xx, and nothing of it in the log.
func TestAKeyThatIsTooLongIsMissing(t *testing.T) {
	t.Parallel()
	feed, before, after := recordstest.NewFeed(t), upstream(t, "OLD"), upstream(t, "NEW")
	g := start(t, settings(feed.URL, before, "")).open(t)
	long, rubbish := strings.Repeat("k", 600), strings.Repeat("r", 4096)
	for _, test := range []struct{ sticky, key, reason string }{
		{`{"by":"cookie","name":"user","missing":"default"}`, strings.Repeat("k", 512), "sticky"},
		{`{"by":"cookie","name":"user","missing":"draw"}`, long, "draw"},
		{`{"by":"cookie","name":"user","missing":"draw"}`, rubbish, "draw"},
		{`{"by":"gateway-cookie"}`, rubbish, "sticky"}, // a new key is issued
	} {
		feed.Put("org", sticking(after.URL, test.sticky))
		eventually(t, test.sticky, func() bool {
			res := g.call(t, "Cookie", "user="+test.key+"; sr-key="+test.key)
			return res.StatusCode == http.StatusOK && res.Header.Get("X-Route-Reason") == test.reason
		})
	}
	if res := g.call(t, "Cookie", "sr-key="+rubbish); len(res.Cookies()) != 1 {
		t.Errorf("rubbish in the place of a key is answered with cookies %v, want a new key", res.Cookies())
	}
	if strings.Contains(g.stdout.String(), "rrrr") || strings.Contains(g.stderr.String(), "rrrr") {
		t.Error("the rubbish is in the log")
	}
}
