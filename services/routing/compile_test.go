package routing_test

import (
	"errors"
	"go/parser"
	"go/token"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"specialroutes.example/services/routing"
	"specialroutes.example/services/routing/routingtest"
)

func TestCompile_NoRecord(t *testing.T) {
	t.Parallel()
	rt, err := routing.Compile(nil, nil)
	if rt != nil || err != nil {
		t.Fatalf("Compile(nil, nil) = %v, %v", rt, err)
	}
	if got := rt.Variant(rt.DefaultVariant()); !reflect.DeepEqual(*got, routing.Target{Name: "default"}) {
		t.Errorf("the variant of a nil Route = %+v", *got)
	}
	if rt.Variants() != 1 || rt.OnUnavailable() != "default" || rt.LabelRules() != nil || rt.Vary() != nil ||
		rt.Headers() != nil || rt.KeyMaxAge() != 0 || rt.ByKey("u") != 0 {
		t.Error("a nil Route is not a service without a record")
	}
	if d := rt.Decide(&routing.Request{}, routingtest.NoDraw(t)); d != (routing.Decision{}) || d.Reason() != "no-record" {
		t.Errorf("Decide of a nil Route = %+v", d)
	}
}

// The wildcard record gives label rules and onUnavailable, each only where the
// record has none.
func TestCompile_InheritsFieldByField(t *testing.T) {
	t.Parallel()
	base := decode(t, `{"service": "*", "active": true, "onUnavailable": "fail",
		"labelRules": [{"header": "zone", "label": "lane", "mode": "symmetric"}]}`)
	own := decode(t, `{"service": "s", "active": false, "labelRules": [{"header": "version", "label": "v", "mode": "lenient", "fallback": "any"}]}`)
	tests := []struct {
		name          string
		record, base  *routing.Record
		onUnavailable string
		headers       []string
	}{
		{"a record without them", routingtest.Weighted("s", 1), base, "fail", []string{"Zone"}},
		{"a record with label rules", own, base, "fail", []string{"Version"}},
		{"a record with no label rules in labelRules", decode(t, `{"service": "s", "active": true, "labelRules": []}`), base, "fail", nil},
		{"a record with onUnavailable", decode(t, `{"service": "s", "active": true, "onUnavailable": "default"}`), base, "default", []string{"Zone"}},
		{"a record without a wildcard", routingtest.Weighted("s", 1), nil, "default", nil},
		{"no record", nil, base, "fail", []string{"Zone"}},
		{"the wildcard itself", base, nil, "fail", []string{"Zone"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rt, err := routing.Compile(tt.record, tt.base)
			if err != nil {
				t.Fatal(err)
			}
			var headers []string
			for _, l := range rt.LabelRules() {
				headers = append(headers, l.Header)
			}
			if rt.OnUnavailable() != tt.onUnavailable || !slices.Equal(headers, tt.headers) {
				t.Errorf("onUnavailable %q, label headers %q; want %q, %q", rt.OnUnavailable(), headers, tt.onUnavailable, tt.headers)
			}
			if !slices.Equal(rt.Vary(), tt.headers) || !slices.Equal(rt.Headers(), tt.headers) {
				t.Errorf("Vary %q, Headers %q, want %q", rt.Vary(), rt.Headers(), tt.headers)
			}
			noRecord := tt.record == nil || tt.record.Service == "*"
			if d := rt.Decide(&routing.Request{}, routingtest.Always(1)); (d.Kind == routing.KindNoRecord) != noRecord {
				t.Errorf("Decide = %+v", d)
			}
		})
	}
}

func TestCompile_WildcardAtFault(t *testing.T) {
	t.Parallel()
	r := routingtest.Weighted("s", 1)
	var v routing.ValidationError
	if _, err := routing.Compile(r, decode(t, `{"service": "*", "active": true, "owner": "x"}`)); !errors.As(err, &v) || !strings.Contains(err.Error(), "record *") {
		t.Errorf("Compile with an invalid wildcard = %v", err)
	}
	if _, err := routing.Compile(r, r); err == nil {
		t.Error("Compile takes any record for the wildcard")
	}
}

func TestCompile_Places(t *testing.T) {
	t.Parallel()
	rt := routingtest.Compile(t, decode(t, withVariants(`
		{"name": "a", "weight": 1},
		{"name": "endpoint", "weight": 2, "endpoint": "http://h/base"},
		{"name": "selected", "weight": 3, "selector": {"version": "2", "app": "x"}},
		{"name": "also-selected", "weight": 4, "selector": {"version": "3"}},
		{"name": "elsewhere", "weight": 5, "service": "other"},
		{"name": "selected-elsewhere", "weight": 6, "service": "third", "selector": {"version": "2"}}`)))
	two := []routing.Label{{Key: "app", Value: "x"}, {Key: "version", Value: "2"}}
	three := []routing.Label{{Key: "version", Value: "3"}}
	want := []routing.Target{
		{Name: "a", Weight: 1, Except: [][]routing.Label{two, three}},
		{Name: "endpoint", Weight: 2, Endpoint: "http://h/base", URL: &routing.BaseURL{Scheme: "http", Authority: "h", Address: "h:80", Host: "h", Path: "/base"}},
		{Name: "selected", Weight: 3, Selector: two},
		{Name: "also-selected", Weight: 4, Selector: three},
		{Name: "elsewhere", Weight: 5, Service: "other"},
		{Name: "selected-elsewhere", Weight: 6, Service: "third", Selector: []routing.Label{{Key: "version", Value: "2"}}},
	}
	if rt.Variants() != len(want) {
		t.Fatalf("%d variants, want %d", rt.Variants(), len(want))
	}
	for i := range want {
		if got := *rt.Variant(i); !reflect.DeepEqual(got, want[i]) {
			t.Errorf("variant %d = %+v, want %+v", i, got, want[i])
		}
		if j, ok := rt.VariantNamed(want[i].Name); !ok || j != i {
			t.Errorf("VariantNamed(%s) = %d, %v", want[i].Name, j, ok)
		}
	}
	if _, ok := rt.VariantNamed("b"); ok {
		t.Error("VariantNamed finds a variant that is not there")
	}
}

func TestRoute_VaryAndHeaders(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		record  string
		headers []string
		cookie  bool
	}{
		{`{"service": "s", "active": true}`, nil, false},
		{withRule(`{"on": "path", "prefix": "/"}, {"on": "client", "cidr": "10.0.0.0/8"}, {"on": "query", "name": "q", "present": true}`), nil, false},
		{withRule(`{"on": "header", "name": "x-team", "present": true}, {"on": "header", "name": "X-Team", "prefix": "a"}, {"on": "header", "name": "a", "prefix": "a"}`), []string{"A", "X-Team"}, false},
		{withRule(`{"on": "cookie", "name": "c", "present": true}, {"on": "header", "name": "b", "prefix": "a"}, {"on": "header", "name": "d", "prefix": "a"}`), []string{"B", "D"}, true},
		{fmtValid(`"sticky": {"by": "gateway-cookie"}`), nil, true},
		{fmtValid(`"sticky": {"by": "cookie", "name": "c"}`), nil, true},
		{fmtValid(`"sticky": {"by": "header", "name": "tmx-user-id"}, "labelRules": [{"header": "zone", "label": "l", "mode": "exact"}]`), []string{"Tmx-User-Id", "Zone"}, false},
		{strings.Replace(fmtValid(`"sticky": {"by": "gateway-cookie"}`), "true", "false", 1), nil, true},
	} {
		rt := routingtest.Compile(t, decode(t, tt.record))
		vary := slices.Clone(tt.headers)
		if tt.cookie {
			vary = append(vary, "Cookie")
			slices.Sort(vary)
		}
		if !slices.Equal(rt.Headers(), tt.headers) || !slices.Equal(rt.Vary(), vary) {
			t.Errorf("%s: Headers %q, Vary %q; want %q, %q", tt.record, rt.Headers(), rt.Vary(), tt.headers, vary)
		}
	}
}

func fmtValid(member string) string { return strings.Replace(valid, "%s", member, 1) }

func TestCompile_KeepsNothingOfTheRecord(t *testing.T) {
	t.Parallel()
	r := decode(t, full)
	rt := routingtest.Compile(t, r)
	before := rt.Explain(benchRequest(), routingtest.Always(1))
	*r.Active, r.Rules[0].Match[0].In[0], r.Variants[2].Selector["version"] = false, "x", "9"
	r.LabelRules[1].Guard[0] = "::/0"
	if after := rt.Explain(benchRequest(), routingtest.Always(1)); !reflect.DeepEqual(before, after) {
		t.Errorf("a change of the record changes the Route: %+v, was %+v", after, before)
	}
	if got := rt.Variant(2).Selector[1].Value; got != "2" {
		t.Errorf("the selector has become %q", got)
	}
}

func TestLabelFilter_Passes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		request, instance         string
		exact, symmetric, lenient bool
	}{
		{"", "", false, true, true},
		{" ", "\t", false, true, true},
		{"x", "", false, false, true},
		{"", "x", false, false, true},
		{"x", "x", true, true, true},
		{"x", "y", false, false, false},
		{"x", "X", false, false, false},
		{"x", "x ", false, false, false},
	} {
		for mode, want := range map[routing.LabelMode]bool{
			routing.LabelExact: tt.exact, routing.LabelSymmetric: tt.symmetric, routing.LabelLenient: tt.lenient,
		} {
			f := routing.LabelFilter{Mode: mode}
			if got := f.Passes(tt.request, tt.instance); got != want {
				t.Errorf("%s, request %q, instance %q: %v, want %v", mode, tt.request, tt.instance, got, want)
			}
		}
	}
}

func TestLabelFilter_Admits(t *testing.T) {
	t.Parallel()
	rt := routingtest.Compile(t, decode(t, withLabelRule(`{"header": "zone", "label": "zone", "mode": "symmetric", "guard": ["10.0.9.9/16", "2001:db8::/32"]}`)))
	f := rt.LabelRules()[0]
	for _, tt := range []struct {
		request, instance string
		want              bool
	}{
		{"", "10.0.1.2", true}, {"", "::ffff:10.0.1.2", true}, {"", "10.1.1.2", false}, {"", "2001:db8::1%eth0", true},
		{"", "", false}, {" ", "192.168.1.1", false}, {"joe", "192.168.1.1", true}, {"joe", "", true},
	} {
		addr, _ := netip.ParseAddr(tt.instance)
		if got := f.Admits(tt.request, addr); got != tt.want {
			t.Errorf("request %q, instance %q: %v, want %v", tt.request, tt.instance, got, tt.want)
		}
	}
	if f := (routing.LabelFilter{}); !f.Admits("", netip.Addr{}) {
		t.Error("without a guard a request is kept out")
	}
}

// The centre imports nothing but the standard library, and of that no I/O, clock
// or randomness of its own.
func TestPackage_ImportsTheStandardLibraryOnly(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range f.Imports {
			path := strings.Trim(imported.Path.Value, `"`)
			first, _, _ := strings.Cut(path, "/")
			if strings.Contains(first, ".") || slices.Contains([]string{"os", "io", "net", "math/rand", "math/rand/v2", "crypto/rand"}, path) {
				t.Errorf("%s imports %s", file, path)
			}
		}
	}
}
