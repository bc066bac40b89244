package table

import (
	"fmt"
	"strings"
	"testing"

	"specialroutes.example/gateway/internal/config"
)

func mustNew(t testing.TB, routes ...config.Route) *Table {
	t.Helper()
	tab, err := New(routes)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func name(r *Route) string {
	if r == nil {
		return ""
	}
	return r.Name
}

func TestMatch(t *testing.T) {
	t.Parallel()
	tab := mustNew(t,
		config.Route{Prefix: "/api/organization", Service: "a"},
		config.Route{Prefix: "/api", Service: "b"},
		config.Route{Prefix: "/api/organization/v1/deep", Service: "c"},
		config.Route{Prefix: "/a%2Fb", Service: "d"},
		config.Route{Prefix: "/slash/", Service: "e"},
		config.Route{Prefix: "//double", Service: "f"},
		config.Route{Host: "Shop.example", Prefix: "/", Service: "g"},
		config.Route{Host: "shop.example", Prefix: "/api", Service: "h"},
		config.Route{Host: "::1", Prefix: "/api", Service: "i"},
	)
	tests := []struct{ host, path, want string }{
		{"x", "/api", "/api"},
		{"x", "/api/", "/api"},
		{"x", "/api/organization", "/api/organization"},
		{"x", "/api/organization/", "/api/organization"},
		{"x", "/api/organization//x", "/api/organization"},
		{"x", "/api/organizations", "/api"},
		{"x", "/api/organization%2Fx", "/api"},
		{"x", "/api/organization/v1/deep/er", "/api/organization/v1/deep"},
		{"x", "/api/organization/v1/deeper", "/api/organization"},
		{"x", "/apis", ""},
		{"x", "/", ""},
		{"x", "//api", ""},
		{"x", "/API", ""},
		{"x", "/%61pi/x", ""},
		{"x", "/api%2Fx", ""},
		{"x", "/a%2Fb/c", "/a%2Fb"},
		{"x", "/a%2fb/c", ""},
		{"x", "/slash", "/slash"},
		{"x", "/slash/x", "/slash"},
		{"x", "//double/x", "//double"},
		{"shop.example", "/anything", "shop.example/"},
		{"SHOP.example:8080", "/api/x", "shop.example/api"},
		{"shop.example.", "/anything", "shop.example/"},
		{"shop.example.:8080", "/anything", "shop.example/"},
		{"shop.example..", "/anything", ""},
		{"shop.example.org", "/anything", ""},
		{"", "/api", "/api"},
	}
	for _, tt := range tests {
		if got := name(tab.Match(tt.host, tt.path)); got != tt.want {
			t.Errorf("Match(%q, %q) = %q, want %q", tt.host, tt.path, got, tt.want)
		}
	}
}

// Row 41: a prefix ends at a segment's border.
func TestMatchOnlyOnASegmentBorder(t *testing.T) {
	t.Parallel()
	tab := mustNew(t, config.Route{Prefix: "/admin", Service: "a"})
	for path, want := range map[string]string{"/administrator": "", "/admin": "/admin", "/admin/": "/admin", "/admin;x": ""} {
		if got := name(tab.Match("a", path)); got != want {
			t.Errorf("Match(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestAHostWithoutThePathFallsToAnyHost(t *testing.T) {
	t.Parallel()
	tab := mustNew(t, config.Route{Host: "a", Prefix: "/x", Service: "a"}, config.Route{Prefix: "/", Service: "b"})
	if got := name(tab.Match("a", "/y")); got != "/" {
		t.Errorf("Match(a, /y) = %q, want the route of any host", got)
	}
}

func TestForwardedStartsWithASlash(t *testing.T) {
	t.Parallel()
	strip := mustNew(t, config.Route{Prefix: "/api/x", Service: "a"}).Routes()[0]
	keep := mustNew(t, config.Route{Prefix: "/api/x", StripPrefix: new(false), Service: "a"}).Routes()[0]
	root := mustNew(t, config.Route{Prefix: "/", Service: "a"}).Routes()[0]
	tests := []struct {
		route      *Route
		path, want string
	}{
		{strip, "/api/x", "/"},
		{strip, "/api/x/", "/"},
		{strip, "/api/x//", "//"},
		{strip, "/api/x/%2F{", "/%2F{"},
		{keep, "/api/x", "/api/x"},
		{keep, "/api/x/y", "/api/x/y"},
		{root, "/", "/"},
		{root, "//a", "//a"},
	}
	for _, tt := range tests {
		if got := tt.route.Forwarded(tt.path); got != tt.want {
			t.Errorf("%s: Forwarded(%q) = %q, want %q", tt.route.Name, tt.path, got, tt.want)
		}
	}
}

func TestNewRefusesWhatCannotBeTold(t *testing.T) {
	t.Parallel()
	for _, routes := range [][]config.Route{
		{{Prefix: "api", Service: "a"}},
		{{Prefix: "", Service: "a"}},
		{{Prefix: "/api", Service: "a"}, {Prefix: "/api/", Service: "b"}},
		{{Host: "A", Prefix: "/api", Service: "a"}, {Host: "a", Prefix: "/api", Service: "b"}},
	} {
		if _, err := New(routes); err == nil {
			t.Errorf("New(%+v) gives no error", routes)
		}
	}
}

// A path of nothing but slashes costs no more steps than the deepest prefix has.
func TestMatchIsBoundedByTheTableNotByThePath(t *testing.T) {
	tab := mustNew(t, config.Route{Prefix: "/a/b", Service: "a"})
	path := strings.Repeat("/", 64<<10)
	if allocs := testing.AllocsPerRun(10, func() { tab.Match("x", path) }); allocs != 0 {
		t.Errorf("Match allocates %v times", allocs)
	}
	if got := tab.anyHost.reach(path); got != 2 {
		t.Errorf("reach = %d, want 2", got)
	}
}

// Row 95: the cost of a match does not grow with the table.
func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{10, 60_000} {
		var routes []config.Route
		for i := range n {
			routes = append(routes, config.Route{Prefix: fmt.Sprintf("/api/service%d", i), Service: "a"})
		}
		tab := mustNew(b, routes...)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				tab.Match("x", "/api/service7/v1/organizations/1")
			}
		})
	}
}
