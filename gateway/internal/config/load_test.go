package config_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/config"
)

// write puts text into a file and returns its name.
func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

const oneRoute = "routes: [{prefix: /a, service: a}]\n"

// load returns the settings that a file alone makes.
func load(t *testing.T, text string) (*config.Config, error) {
	t.Helper()
	return config.Load([]string{"--config", write(t, text)}, nil)
}

func mustLoad(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := load(t, text)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return c
}

func TestLoadReadsEveryKindOfSetting(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, `
id: gw-1
listen: 127.0.0.1:0
admin: "[::1]:0"
exposeRoute: false
clientLabels: trusted
trustedProxies:
  - 10.0.0.0/8
  - fd00::/8
sensitiveHeaders: [Cookie, Set-Cookie]
limits: {headerBytes: 16KiB, headerFields: 50, bodyBytes: 1GiB}
timeouts:
  connect: 500ms
  response: 2.5s
  total: 0s
routes:
  - prefix: /api/organization
    service: organizationservice
  - host: Example.org
    prefix: /
    service: web
    stripPrefix: false
    preserveHost: true
    sensitiveHeaders: []
    timeouts: {response: 1m, total: 2m}
instances:
  organizationservice:
    - address: 127.0.0.1:8085
      labels:
        version: 1.10
        stable: yes
    - {id: second, address: "[::1]:8086"}
  web: []
records:
  url: [http://a:8910, https://b/base]
  tokenFile: /run/token
  file: /var/lib/gateway/records.json
upstream: {idleTimeout: 20s, maxIdlePerTarget: 7, allowLinkLocal: true}
zoneLabel: az
activeLimit: 200
drain: {delay: 0s, limit: 1m}
log: {level: debug, access: false}
`)
	want := config.Default()
	want.ID, want.Listen, want.Admin = "gw-1", "127.0.0.1:0", "[::1]:0"
	want.ExposeRoute, want.ClientLabels = false, config.ClientLabelsTrusted
	want.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	want.SensitiveHeaders = []string{"Cookie", "Set-Cookie"}
	want.Limits = config.Limits{HeaderBytes: 16 << 10, HeaderFields: 50, BodyBytes: 1 << 30}
	want.Timeouts.Connect, want.Timeouts.Response = 500*time.Millisecond, 2500*time.Millisecond
	web := want.Timeouts
	web.Response, web.Total = time.Minute, 2*time.Minute
	want.Routes = []config.Route{
		{Prefix: "/api/organization", Service: "organizationservice", SensitiveHeaders: want.SensitiveHeaders, Timeouts: want.Timeouts},
		{
			Host: "Example.org", Prefix: "/", Service: "web", StripPrefix: new(false), PreserveHost: true,
			SensitiveHeaders: []string{}, Timeouts: web,
			TimeoutsSet: config.RouteTimeouts{Response: new(time.Minute), Total: new(2 * time.Minute)},
		},
	}
	want.Instances = map[string][]config.Instance{
		"organizationservice": {
			{ID: "127.0.0.1:8085", Address: "127.0.0.1:8085", Labels: map[string]string{"version": "1.10", "stable": "yes"}},
			{ID: "second", Address: "[::1]:8086"},
		},
		"web": {},
	}
	want.Records = config.Records{URLs: []string{"http://a:8910", "https://b/base"}, TokenFile: "/run/token", File: "/var/lib/gateway/records.json"}
	want.Upstream = config.Upstream{IdleTimeout: 20 * time.Second, MaxIdlePerTarget: 7, AllowLinkLocal: true}
	want.ZoneLabel, want.ActiveLimit = "az", 200
	want.Drain = config.Drain{Limit: time.Minute}
	want.Log = config.Log{Level: slog.LevelDebug}
	if !reflect.DeepEqual(*c, want) {
		t.Errorf("Load:\n got %+v\nwant %+v", *c, want)
	}
}

func TestAbsentSettingsHaveTheirDefaults(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, oneRoute)
	want := config.Default()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want.ID = host
	want.Routes = []config.Route{{Prefix: "/a", Service: "a", Timeouts: want.Timeouts}}
	if !reflect.DeepEqual(*c, want) {
		t.Errorf("Load:\n got %+v\nwant %+v", *c, want)
	}
	if !c.Routes[0].Strips() {
		t.Error("a route that does not say stripPrefix keeps its prefix, want it cut")
	}
}

func TestRegistrationIsOffByDefaultAndSetByEverySource(t *testing.T) {
	t.Parallel()
	if got := mustLoad(t, oneRoute).Registration; got.Agent != "" || got.Service != "gatewayservice" {
		t.Errorf("by default Registration = %+v, want no agent and the documented name", got)
	}
	file := write(t, oneRoute+"registration: {agent: 'consul:8500', id: gw-1, labels: [version=1.10, zone=a]}\n")
	c, err := config.Load([]string{"--config", file, "--registration-address=10.0.0.7"}, []string{"GATEWAY_REGISTRATION_SERVICE=edge"})
	if err != nil {
		t.Fatal(err)
	}
	want := config.Registration{Agent: "consul:8500", Service: "edge", ID: "gw-1", Address: "10.0.0.7", Labels: []string{"version=1.10", "zone=a"}}
	if !reflect.DeepEqual(c.Registration, want) {
		t.Errorf("Registration = %+v, want %+v", c.Registration, want)
	}
}

func TestConsulIsOffByDefaultAndSetByEverySource(t *testing.T) {
	t.Parallel()
	if got, want := mustLoad(t, oneRoute).Registry, (config.Registry{Consul: config.Consul{MaxStale: 10 * time.Second}}); got != want {
		t.Errorf("Registry = %+v, want %+v", got, want)
	}
	file := write(t, oneRoute+"registry:\n  consul: {address: 'https://consul.example:8501', tokenFile: /t, caFile: /ca, datacenter: dc1, stale: true, maxStale: 3s}\n")
	c, err := config.Load([]string{"--config", file, "--registry-consul-datacenter=dc3"}, []string{"GATEWAY_REGISTRY_CONSUL_ADDRESS=consul:8500"})
	if err != nil {
		t.Fatal(err)
	}
	want := config.Consul{Address: "consul:8500", TokenFile: "/t", CAFile: "/ca", Datacenter: "dc3", Stale: true, MaxStale: 3 * time.Second}
	if c.Registry.Consul != want {
		t.Errorf("Consul = %+v, want %+v", c.Registry.Consul, want)
	}
}

func TestFlagsWinOverEnvironmentOverFile(t *testing.T) {
	t.Parallel()
	file := write(t, oneRoute+"id: file\nlisten: :1\nadmin: :2\ndrain: {delay: 1s}\nrecords: {url: http://file}\n")
	env := []string{
		"GATEWAY_CONFIG=" + file, "GATEWAY_ID=environment", "GATEWAY_LISTEN=:3", "GATEWAY_ADMIN=", "GATEWAY_DRAIN_DELAY=2s",
		"GATEWAY_RECORDS_URL=http://a, http://b", "GATEWAY_SERVICE_HOST=set by an orchestrator", "OTHER=x",
	}
	c, err := config.Load([]string{"--id=flag", "--upstream-max-idle-per-target", "9", "-log-access=false"}, env)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%s %s %s %s %s %d %t", c.ID, c.Listen, c.Admin, c.Drain.Delay, c.Records.URLs, c.Upstream.MaxIdlePerTarget, c.Log.Access)
	if want := "flag :3 :2 2s [http://a http://b] 9 false"; got != want {
		t.Errorf("Load: got %s, want %s", got, want)
	}
}

func TestTheEnvironmentReplacesRoutesAndInstancesWhole(t *testing.T) {
	t.Parallel()
	file := write(t, oneRoute+"instances: {a: [{address: a:1}], b: [{address: b:1}]}\n")
	c, err := config.Load(nil, []string{
		"GATEWAY_CONFIG=" + file,
		"GATEWAY_ROUTES=[{prefix: /x, service: x}]",
		"GATEWAY_INSTANCES=x:\n  - address: x:1\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Routes) != 1 || c.Routes[0].Service != "x" || len(c.Instances) != 1 || c.Instances["x"][0].ID != "x:1" {
		t.Errorf("Load: routes %+v, instances %+v; want those of the environment only", c.Routes, c.Instances)
	}
}

func TestMistakesNameLineAndField(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		want       []string // "LINE: PATH: part of the detail"
	}{
		{"unknown", oneRoute + "lisen: :1\n", []string{"2: lisen: unknown setting"}},
		{"unknown inside", oneRoute + "drain:\n  delay: 1s\n  limits: 2s\n", []string{"4: drain.limits: unknown setting"}},
		{"differently cased", oneRoute + "exposeroute: true\n", []string{"2: exposeroute: unknown setting; it is written exposeRoute"}},
		{"duplicate", oneRoute + "listen: :1\nadmin: :2\nlisten: :3\n", []string{"4: listen: given twice, first in line 2"}},
		{"null", oneRoute + "listen:\nid: ~\n", []string{"2: listen: has no value", "3: id: has no value"}},
		{"not a bool", oneRoute + "exposeRoute: yes\n", []string{"2: exposeRoute: \"yes\" is neither true nor false"}},
		{"not an integer", oneRoute + "limits:\n  headerFields: 1.5\n", []string{"3: limits.headerFields: \"1.5\" is not a whole number"}},
		{"duration without a unit", oneRoute + "drain: {delay: 5}\n", []string{"2: drain.delay: \"5\" is not a duration"}},
		{"size", oneRoute + "limits: {headerBytes: 64KB, bodyBytes: 9999999999GiB}\n", []string{"2: limits.headerBytes: \"64KB\" is not a size", "2: limits.bodyBytes: \"9999999999GiB\" is too large"}},
		{"cidr", oneRoute + "trustedProxies:\n- 10.0.0.1\n- 10.0.0.1/8\n", []string{"3: trustedProxies[0]: \"10.0.0.1\" is not a CIDR", "4: trustedProxies[1]: 10.0.0.1/8 has bits below its mask; the network is 10.0.0.0/8"}},
		{"an IPv4 network as IPv6", oneRoute + "trustedProxies: ['::ffff:10.0.0.0/104']\n", []string{"2: trustedProxies[0]: ::ffff:10.0.0.0/104 is an IPv4 network written as IPv6; write the IPv4 one"}},
		{"level", oneRoute + "log: {level: loud}\n", []string{"2: log.level: \"loud\" is none of"}},
		{"scalar for list", "routes: 5\n", []string{"1: routes: must be a list"}},
		{"scalar for mapping", "routes: [5]\n", []string{"1: routes[0]: must be a mapping"}},
		{"mapping for scalar", oneRoute + "id: {a: b}\n", []string{"2: id: must be a plain value"}},
		{"list for mapping", oneRoute + "log:\n  - level\n", []string{"3: log: must be a mapping"}},
		{"the whole a list", "- a\n", []string{"1: : must be a mapping"}},
		{"anchor", oneRoute + "id: &x a\nlisten: *x\n", []string{"2: id: anchors", "3: listen: anchors"}},
		{"merge", oneRoute + "log:\n  <<: {level: debug}\n", []string{"3: log"}},
		{"two documents", oneRoute + "---\nid: b\n", []string{"3: : a second document"}},
		{"syntax", oneRoute + "id: \"x\nlisten: [\n", []string{"2: : "}},
		{"no routes", "id: a\n", []string{"1: routes: at least one"}},
		{"empty file", "", []string{"0: routes: at least one"}},
		{"only a comment", "# nothing\n", []string{"0: routes: at least one"}},
		{"id", oneRoute + "id: a b\n", []string{"2: id: "}},
		{"addresses", oneRoute + "listen: 5555\nadmin: a:99999\n", []string{"2: listen: ", "3: admin: "}},
		{"one address for two", oneRoute + "listen: :1\nadmin: :1\n", []string{"3: admin: must differ"}},
		{"labels of whom", oneRoute + "clientLabels: some\n", []string{"2: clientLabels: "}},
		{"headers", oneRoute + "sensitiveHeaders:\n  - Coo kie\n  - host\n", []string{"3: sensitiveHeaders[0]: ", "4: sensitiveHeaders[1]: "}},
		{
			"a route's parts",
			"routes:\n- prefix: a\n  service: A\n  host: a:80\n- service: b\n- prefix: /a/../b\n  service: b\n- prefix: /a?b\n  service: b\n- prefix: /ä\n  service: b\n",
			[]string{"4: routes[0].host: ", "2: routes[0].prefix: ", "3: routes[0].service: ", "5: routes[1].prefix: ", "6: routes[2].prefix: ", "8: routes[3].prefix: ", "10: routes[4].prefix: "},
		},
		{"a route twice", "routes:\n- {prefix: /a, service: a, host: X}\n- {prefix: /a/, service: b, host: x}\n", []string{"3: routes[1]: the same"}},
		{"timeouts", oneRoute + "timeouts:\n  connect: 0s\n  response: -1s\n  keepAlive: 0s\n", []string{"3: timeouts.connect: ", "4: timeouts.response: ", "5: timeouts.keepAlive: "}},
		{"a route's timeouts", "routes:\n- prefix: /a\n  service: a\n  timeouts:\n    connect: 0s\n    header: 1s\n", []string{"6: routes[0].timeouts.header: unknown", "5: routes[0].timeouts.connect: "}},
		{"limits", oneRoute + "limits: {headerBytes: 0, headerFields: 0, bodyBytes: -1}\n", []string{"2: limits.headerBytes: ", "2: limits.headerFields: ", "2: limits.bodyBytes: "}},
		{"upstream", oneRoute + "upstream:\n  idleTimeout: 0s\n  maxIdlePerTarget: 0\n", []string{"4: upstream.maxIdlePerTarget: ", "3: upstream.idleTimeout: "}},
		{"connections of clients", oneRoute + "maxConnections: -1\ntls: {certFile: a}\n", []string{"3: tls: ", "2: maxConnections: "}},
		{"choice of instances", oneRoute + "zoneLabel: a=b\nactiveLimit: -1\n", []string{"3: activeLimit: ", "2: zoneLabel: "}},
		{"drain", oneRoute + "drain: {delay: -1s, limit: -1s}\n", []string{"2: drain.delay: ", "2: drain.limit: "}},
		{"no source of records", oneRoute + "records: {url: []}\n", []string{"2: records.url: at least one"}},
		{
			"sources of records",
			oneRoute + "records:\n  url:\n  - ftp://a\n  - http://\n  - http://a?x\n  - http://u@a\n  - http://a:0\n  - ':'\n",
			[]string{"4: records.url[0]: ", "5: records.url[1]: ", "6: records.url[2]: ", "7: records.url[3]: ", "8: records.url[4]: ", "9: records.url[5]: "},
		},
		{
			"consul", oneRoute + "instances: {a: [{address: a:1}]}\nregistry:\n  consul:\n    address: ftp://a\n    maxStale: 0s\n",
			[]string{"6: registry.consul.maxStale: ", "5: registry.consul.address: ", "2: instances: must be empty"},
		},
		{"consul's path", oneRoute + "registry: {consul: {address: 'a:1/b'}}\n", []string{"2: registry.consul.address: "}},
		{"consul's port", oneRoute + "registry: {consul: {address: 'a:99999'}}\n", []string{"2: registry.consul.address: "}},
		{
			"registration", oneRoute + "registration:\n  agent: ftp://a\n  service: ''\n  labels: [version]\n",
			[]string{"4: registration.service: ", "5: registration.labels: ", "3: registration.agent: "},
		},
		{"registration without an agent", oneRoute + "registration: {address: a}\n", []string{"2: registration.agent: is required"}},
		{"consul without an address", oneRoute + "registry: {consul: {stale: true}}\n", []string{"2: registry.consul.address: is required"}},
		{
			"instances", oneRoute + "instances:\n  A:\n  - address: a:1\n  b:\n  - address: b\n  - {address: c:1, id: x}\n  - {address: d:1, id: x, labels: {'': v}}\n",
			[]string{"4: instances.A: ", "6: instances.b[0].address: ", "8: instances.b[2].id: ", "8: instances.b[2].labels: "},
		},
		{
			"labels", oneRoute + "instances: {b: [{address: 'h:1', labels: {'a=b': v, zone: '" + strings.Repeat("z", 256) + "', ok: 1.10}}]}\n",
			[]string{`2: instances.b[0].labels: "a=b" must have a name without "="; "zone" must have at most 255 bytes`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			checkMistakes(t, test.text, test.want)
		})
	}
}

func checkMistakes(t *testing.T, text string, want []string) {
	t.Helper()
	_, err := load(t, text)
	var invalid *config.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("Load: got error %v, want an InvalidError", err)
	}
	for i, m := range invalid.Mistakes {
		got := fmt.Sprintf("%d: %s: %s", m.Line, m.Path, m.Detail)
		if i >= len(want) || !strings.HasPrefix(got, want[i]) {
			t.Errorf("mistake %d: got %q, want one of %q", i, got, want)
		}
	}
	if len(invalid.Mistakes) < len(want) {
		t.Errorf("got %d mistakes, want %d: %v", len(invalid.Mistakes), len(want), err)
	}
}

// The YAML library takes minutes for some of these.
func TestWhatIsNestedTooDeepIsRefusedUnread(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"lists in brackets":   strings.Repeat("[", 100_000),
		"brackets over lines": strings.Repeat("{a:\n", 100_000),
		"lists in lists":      strings.Repeat("- ", 50_000),
		"complex keys":        strings.Repeat("? ", 50_000),
		"keys in keys":        strings.Repeat("a: ", 30_000),
	} {
		if _, err := load(t, oneRoute+text); err == nil || !strings.Contains(err.Error(), ": is nested more than 64 deep") {
			t.Errorf("%s: %.200v, want it refused for its nesting", name, err)
		}
	}
	mustLoad(t, oneRoute+"# "+strings.Repeat("[", 1000)+"\ninstances: {a: [{address: 'h:1', id: '[', labels: {a: b}}, {address: 'h:2'}]}\n")
}

func TestMistakesNameTheSourceThatSaidIt(t *testing.T) {
	t.Parallel()
	file := write(t, oneRoute+"drain: {delay: 1s}\n")
	_, err := config.Load([]string{"--config", file, "--listen=x"}, []string{"GATEWAY_DRAIN_DELAY=soon", "GATEWAY_ROUTES=- prefix: /a\n  servic: b\n"})
	if err == nil {
		t.Fatal("Load: got no error")
	}
	for _, want := range []string{
		"environment GATEWAY_DRAIN_DELAY: drain.delay: \"soon\"",
		"environment GATEWAY_ROUTES:2: routes[0].servic: unknown",
		"environment GATEWAY_ROUTES:1: routes[0].service: ",
		"flag --listen: listen: ",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("Load: got error\n%v\nwant it to contain %q", err, want)
		}
	}
}

func TestAFileThatCannotBeReadIsTheOnlyMistake(t *testing.T) {
	t.Parallel()
	_, err := config.Load([]string{"--config", "/nonexistent/gateway.yaml"}, nil)
	var invalid *config.InvalidError
	if !errors.As(err, &invalid) || len(invalid.Mistakes) != 1 || invalid.Mistakes[0].Source != "/nonexistent/gateway.yaml" {
		t.Errorf("Load: got %v, want one mistake that names the file", err)
	}
}

func TestArgumentsThatAreNoFlagsAreRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--nonsense"}, {"serve"}, {"--listen"}} {
		if _, err := config.Load(args, nil); err == nil || errors.Is(err, config.ErrHelp) {
			t.Errorf("Load(%q): got error %v, want a refusal", args, err)
		}
	}
	if _, err := config.Load([]string{"--help"}, nil); !errors.Is(err, config.ErrHelp) {
		t.Errorf("Load(--help): got error %v, want ErrHelp", err)
	}
	var usage strings.Builder
	config.Usage(&usage)
	if !strings.Contains(usage.String(), "-records-token-file") {
		t.Errorf("Usage: got %s, want every flag", usage.String())
	}
}

func TestVariablesThatAreNoSettingAreTold(t *testing.T) {
	t.Parallel()
	got := config.Unknown([]string{
		"GATEWAY_RECORD_URL=x", "GATEWAY_RECORDS_URL=x", "GATEWAY_CONFIG=x", "GATEWAY_INSTANCES=x", "OTHER=x", "GATEWAY_EMPTY=", "GATEWAY_A=x",
	})
	if want := []string{"GATEWAY_A", "GATEWAY_RECORD_URL"}; !reflect.DeepEqual(got, want) {
		t.Errorf("Unknown = %q, want %q", got, want)
	}
}

func TestTheAdminAddressIsKnownAlsoFromSettingsThatAreInvalid(t *testing.T) {
	t.Parallel()
	file := write(t, "admin: :1\nroutes: 7\nsurprise: [\n")
	half := write(t, "admin: :1\nroutes: 7\nsurprise: x\n")
	for _, test := range []struct {
		args, environ []string
		want          string
	}{
		{nil, nil, "127.0.0.1:5556"},
		{nil, []string{"GATEWAY_CONFIG=" + file}, "127.0.0.1:5556"},
		{nil, []string{"GATEWAY_CONFIG=" + half}, ":1"},
		{nil, []string{"GATEWAY_CONFIG=" + file, "GATEWAY_ADMIN=:2"}, ":2"},
		{[]string{"--admin=:3"}, []string{"GATEWAY_ADMIN=:2"}, ":3"},
		{[]string{"--nonsense"}, []string{"GATEWAY_ADMIN=:2"}, "127.0.0.1:5556"},
	} {
		if got := config.AdminAddress(test.args, test.environ); got != test.want {
			t.Errorf("AdminAddress(%q, %q) = %s, want %s", test.args, test.environ, got, test.want)
		}
	}
}

// FuzzLoad looks for a file that breaks the reading of settings.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{oneRoute, "a: &b [*b]", "? [a]\n: b", "- - -", "<<: {a: b}", "!!str a: |\n  b", "a: 'b", "%YAML 1.2\n---\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := config.Load(nil, []string{"GATEWAY_ROUTES=" + oneRoute[len("routes: "):], "GATEWAY_INSTANCES=" + text})
		if (c == nil) == (err == nil) {
			t.Errorf("Load: got %v and error %v, want one of them", c, err)
		}
	})
}
