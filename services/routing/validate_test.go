package routing_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"specialroutes.example/services/routing"
	"specialroutes.example/services/routing/routingtest"
)

// many returns n elements, each made by element of its index, between commas.
func many(n int, element string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.ReplaceAll(element, "#", fmt.Sprint(i))
	}
	return strings.Join(parts, ",")
}

// valid is a record into which the tests put one member more.
const valid = `{"service": "s", "active": true, "variants": [{"name": "a", "weight": 1}, {"name": "b", "weight": 1}], "default": "a", %s}`

func withRule(match string) string {
	return fmt.Sprintf(valid, `"rules": [{"name": "r", "match": [`+match+`], "variant": "b"}]`)
}

func withVariants(list string) string {
	return `{"service": "s", "active": true, "default": "a", "variants": [` + list + `]}`
}

func withLabelRule(rule string) string { return fmt.Sprintf(valid, `"labelRules": [`+rule+`]`) }

func TestValidate_Refuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, record string
		want         []string // each "pointer" or "pointer: part of the detail"
	}{
		{"nothing at all", `{}`, []string{"/service: missing", "/active: missing"}},
		{"a service name with a capital", `{"service": "Org", "active": true}`, []string{"/service"}},
		{"a service name with a dot", `{"service": "api.", "active": true}`, []string{"/service"}},
		{"a service name with another alphabet's a", `{"service": "аpi", "active": true}`, []string{"/service"}},
		{"a service name with a hyphen at the end", `{"service": "a-", "active": true}`, []string{"/service"}},
		{"a service name of 64", `{"service": "` + strings.Repeat("a", 64) + `", "active": true}`, []string{"/service"}},

		{"variants without default", `{"service": "s", "active": true, "variants": [{"name": "a", "weight": 1}]}`, []string{"/default: both or neither"}},
		{"default without variants", `{"service": "s", "active": true, "default": "a"}`, []string{"/variants: both or neither"}},
		{"an empty default", `{"service": "s", "active": true, "default": "", "variants": [{"name": "a", "weight": 1}]}`, []string{"/default: not the name"}},
		{"an unknown default", `{"service": "s", "active": true, "default": "c", "variants": [{"name": "a", "weight": 1}]}`, []string{"/default: not the name"}},
		{"no variant in variants", withVariants(``), []string{"/variants: 1 to 16", "/default"}},
		{"17 variants", withVariants(`{"name": "a", "weight": 1},` + many(16, `{"name": "v#", "weight": 1}`)), []string{"/variants: 1 to 16"}},
		{"a variant name twice", withVariants(`{"name": "a", "weight": 1}, {"name": "a", "weight": 1}`), []string{"/variants/1/name: earlier"}},
		{"a variant without a name", withVariants(`{"name": "a", "weight": 1}, {"weight": 1}`), []string{"/variants/1/name: missing"}},
		{"no weight", withVariants(`{"name": "a"}`), []string{"/variants/0/weight: missing"}},
		{"a weight below 0", withVariants(`{"name": "a", "weight": -1}`), []string{"/variants/0/weight"}},
		{"a weight above the sum", withVariants(`{"name": "a", "weight": 2147483648}`), []string{"/variants/0/weight"}},
		{"weights above the sum", withVariants(`{"name": "a", "weight": 2147483647}, {"name": "b", "weight": 1}`), []string{"/variants: 2147483648"}},
		{"all weights 0", withVariants(`{"name": "a", "weight": 0}, {"name": "b", "weight": 0}`), []string{"/variants: all 0"}},
		{"a lone weight 0", withVariants(`{"name": "a", "weight": 0}`), []string{"/variants: all 0"}},
		{"an empty endpoint", withVariants(`{"name": "a", "weight": 1, "endpoint": ""}`), []string{"/variants/0/endpoint"}},
		{"an endpoint with a service", withVariants(`{"name": "a", "weight": 1, "endpoint": "http://h", "service": "x"}`), []string{"/variants/0/endpoint: alone"}},
		{"an endpoint with a selector", withVariants(`{"name": "a", "weight": 1, "endpoint": "http://h", "selector": {"v": "1"}}`), []string{"/variants/0/endpoint: alone"}},
		{"an empty service of a variant", withVariants(`{"name": "a", "weight": 1, "service": ""}`), []string{"/variants/0/service"}},
		{"the record's own service", withVariants(`{"name": "a", "weight": 1, "service": "s"}`), []string{"/variants/0/service: own"}},
		{"an empty selector", withVariants(`{"name": "a", "weight": 1, "selector": {}}`), []string{"/variants/0/selector"}},
		{"a blank label", withVariants(`{"name": "a", "weight": 1, "selector": {"v": " "}}`), []string{"/variants/0/selector/v"}},
		{"a label name with a slash", withVariants(`{"name": "a", "weight": 1, "selector": {"a/b~c": ""}}`), []string{"/variants/0/selector/a~1b~0c"}},
		{"17 labels", withVariants(`{"name": "a", "weight": 1, "selector": {` + many(17, `"l#": "1"`) + `}}`), []string{"/variants/0/selector: 16"}},
		{"equal selectors", withVariants(`{"name": "a", "weight": 1, "selector": {"v": "1"}}, {"name": "b", "weight": 1, "selector": {"v": "1"}}`), []string{"/variants/1/selector: variants/0"}},
		{"selectors with no label in common", withVariants(`{"name": "a", "weight": 1, "selector": {"v": "1"}}, {"name": "b", "weight": 1, "selector": {"w": "1"}}`), []string{"/variants/1/selector: variants/0"}},
		{"a selector within another", withVariants(`{"name": "a", "weight": 1, "selector": {"v": "1", "w": "1"}}, {"name": "b", "weight": 1, "selector": {"v": "1"}}`), []string{"/variants/1/selector"}},
		{"overlapping selectors of another service", withVariants(`{"name": "a", "weight": 1, "service": "x", "selector": {"v": "1"}}, {"name": "b", "weight": 1, "service": "x", "selector": {"w": "1"}}`), []string{"/variants/1/selector"}},

		{"65 rules", fmt.Sprintf(valid, `"rules": [`+many(65, `{"name": "r#", "match": [{"on": "path", "prefix": "/"}], "variant": "b"}`)+`]`), []string{"/rules: 64"}},
		{"a rule name twice", fmt.Sprintf(valid, `"rules": [`+many(2, `{"name": "r", "match": [{"on": "path", "prefix": "/"}], "variant": "b"}`)+`]`), []string{"/rules/1/name: earlier"}},
		{"a rule without anything", fmt.Sprintf(valid, `"rules": [{}]`), []string{"/rules/0/name", "/rules/0/match", "/rules/0: variant or weights"}},
		{"a rule without matches", withRule(``), []string{"/rules/0/match: 1 to 16"}},
		{"17 matches", withRule(many(17, `{"on": "path", "prefix": "/#"}`)), []string{"/rules/0/match: 1 to 16"}},
		{"a rule to a missing variant", fmt.Sprintf(valid, `"rules": [{"name": "r", "match": [{"on": "path", "prefix": "/"}], "variant": "c"}]`), []string{"/rules/0/variant"}},
		{"a rule to an empty variant", fmt.Sprintf(valid, `"rules": [{"name": "r", "match": [{"on": "path", "prefix": "/"}], "variant": ""}]`), []string{"/rules/0/variant"}},
		{"a rule to variant and weights", fmt.Sprintf(valid, `"rules": [{"name": "r", "match": [{"on": "path", "prefix": "/"}], "variant": "a", "weights": {"b": 1}}]`), []string{"/rules/0: not both"}},
		{"a rule with weights of a missing variant", fmt.Sprintf(valid, `"rules": [{"name": "r", "match": [{"on": "path", "prefix": "/"}], "weights": {"c": 1}}]`), []string{"/rules/0/weights/c"}},
		{"a rule with weights of all 0", fmt.Sprintf(valid, `"rules": [{"name": "r", "match": [{"on": "path", "prefix": "/"}], "weights": {"a": 0}}]`), []string{"/rules/0/weights: all 0"}},
		{"a rule without weights in weights", fmt.Sprintf(valid, `"rules": [{"name": "r", "match": [{"on": "path", "prefix": "/"}], "weights": {}}]`), []string{"/rules/0/weights: all 0"}},
		{"a rule with a weight below 0", fmt.Sprintf(valid, `"rules": [{"name": "r", "match": [{"on": "path", "prefix": "/"}], "weights": {"a": -1, "b": 1}}]`), []string{"/rules/0/weights/a"}},
		{"a rule with weights above the sum", fmt.Sprintf(valid, `"rules": [{"name": "r", "match": [{"on": "path", "prefix": "/"}], "weights": {"a": 2147483647, "b": 1}}]`), []string{"/rules/0/weights: 2147483648"}},
		{"a rule of a record without variants", `{"service": "s", "active": true, "rules": [{"name": "r", "match": [{"on": "path", "prefix": "/"}], "variant": "a"}]}`, []string{"/rules/0/variant"}},

		{"a match of nothing", withRule(`{"prefix": "/"}`), []string{"/rules/0/match/0/on: missing"}},
		{"an unknown kind of match", withRule(`{"on": "body", "prefix": "/"}`), []string{"/rules/0/match/0/on: header, cookie"}},
		{"a kind in another case", withRule(`{"on": "Path", "prefix": "/"}`), []string{"/rules/0/match/0/on"}},
		{"a match without a test", withRule(`{"on": "path"}`), []string{"/rules/0/match/0: a test"}},
		{"a match with two tests", withRule(`{"on": "path", "prefix": "/", "in": ["/"]}`), []string{"/rules/0/match/0: in and prefix"}},
		{"an empty test beside another", withRule(`{"on": "path", "prefix": "", "in": ["/"]}`), []string{"/rules/0/match/0: in and prefix", "/rules/0/match/0/prefix"}},
		{"a header without a name", withRule(`{"on": "header", "in": ["a"]}`), []string{"/rules/0/match/0/name: missing"}},
		{"a header with an empty name", withRule(`{"on": "header", "name": "", "in": ["a"]}`), []string{"/rules/0/match/0/name"}},
		{"a header name with a space", withRule(`{"on": "header", "name": "x y", "in": ["a"]}`), []string{"/rules/0/match/0/name"}},
		{"a header name beyond ASCII", withRule(`{"on": "header", "name": "größe", "in": ["a"]}`), []string{"/rules/0/match/0/name"}},
		{"the header Cookie", withRule(`{"on": "header", "name": "cookie", "in": ["a"]}`), []string{"/rules/0/match/0/name"}},
		{"the header Host", withRule(`{"on": "header", "name": "Host", "in": ["a"]}`), []string{"/rules/0/match/0/name"}},
		{"a header of the gateway", withRule(`{"on": "header", "name": "X-Route-Variant", "in": ["a"]}`), []string{"/rules/0/match/0/name"}},
		{"a forwarding header", withRule(`{"on": "header", "name": "x-forwarded-for", "in": ["a"]}`), []string{"/rules/0/match/0/name"}},
		{"the correlation ID", withRule(`{"on": "header", "name": "TMX-Correlation-ID", "present": true}`), []string{"/rules/0/match/0/name: gateway makes"}},
		{"a header that the gateway takes away, spelt otherwise", withRule(`{"on": "header", "name": "tmx_correlation.id", "present": true}`), []string{"/rules/0/match/0/name: gateway makes"}},
		{"a header of a proxy's", withRule(`{"on": "header", "name": "Proxy-Authorization", "present": true}`), []string{"/rules/0/match/0/name: connection"}},
		{"a header that is taken for the path", withRule(`{"on": "header", "name": "X-Original-URL", "prefix": "/"}`), []string{"/rules/0/match/0/name: takes away"}},
		{"the cookie of overrides", withRule(`{"on": "cookie", "name": "route-override", "present": true}`), []string{"/rules/0/match/0/name: takes away"}},
		{"the gateway's cookie", withRule(`{"on": "cookie", "name": "sr-key", "present": true}`), []string{"/rules/0/match/0/name: gateway-cookie"}},
		{"a cookie name with a semicolon", withRule(`{"on": "cookie", "name": "a;b", "in": ["a"]}`), []string{"/rules/0/match/0/name"}},
		{"a path with a name", withRule(`{"on": "path", "name": "x", "in": ["/"]}`), []string{"/rules/0/match/0/name: not for path"}},
		{"an empty list of values", withRule(`{"on": "path", "in": []}`), []string{"/rules/0/match/0/in: 1 to 1000"}},
		{"1001 values", withRule(`{"on": "path", "in": [` + many(1001, `"/#"`) + `]}`), []string{"/rules/0/match/0/in: 1 to 1000"}},
		{"a value of 1025 bytes", withRule(`{"on": "path", "in": ["/", "` + strings.Repeat("x", 1025) + `"]}`), []string{"/rules/0/match/0/in/1"}},
		{"a blank value of a header", withRule(`{"on": "header", "name": "x", "in": [" "]}`), []string{"/rules/0/match/0/in/0: present"}},
		{"an empty prefix", withRule(`{"on": "path", "prefix": ""}`), []string{"/rules/0/match/0/prefix"}},
		{"a regex that does not compile", withRule(`{"on": "path", "regex": "a(b"}`), []string{"/rules/0/match/0/regex: missing closing )"}},
		{"a regex that leaves its brackets", withRule(`{"on": "path", "regex": "a)|(b"}`), []string{"/rules/0/match/0/regex: unexpected )"}},
		{"a regex that looks ahead", withRule(`{"on": "path", "regex": "a(?=b)"}`), []string{"/rules/0/match/0/regex"}},
		{"an empty regex", withRule(`{"on": "path", "regex": ""}`), []string{"/rules/0/match/0/regex"}},
		{"a regex of 1025 bytes", withRule(`{"on": "path", "regex": "` + strings.Repeat("x", 1025) + `"}`), []string{"/rules/0/match/0/regex: 1024"}},
		{"a regex that repeats too much", withRule(`{"on": "path", "regex": "(a{500}){2}(b{1000}){1}(c{1000}){1}(d{1000}){1}(e{1000}){1}"}`), []string{"/rules/0/match/0/regex: smaller"}},
		{"a range of a header", withRule(`{"on": "header", "name": "x", "cidr": "10.0.0.0/8"}`), []string{"/rules/0/match/0/cidr: client only"}},
		{"a range that is none", withRule(`{"on": "client", "cidr": "10.0.0.0"}`), []string{"/rules/0/match/0/cidr"}},
		{"an empty range", withRule(`{"on": "client", "cidr": ""}`), []string{"/rules/0/match/0/cidr"}},
		{"a client with a prefix", withRule(`{"on": "client", "prefix": "10."}`), []string{"/rules/0/match/0/prefix: cidr"}},
		{"a client with a regex", withRule(`{"on": "client", "regex": "10"}`), []string{"/rules/0/match/0/regex: cidr"}},
		{"a client that is no address", withRule(`{"on": "client", "in": ["localhost"]}`), []string{"/rules/0/match/0/in/0"}},

		{"no path", withRule(`{"on": "path", "present": false}`), []string{"/rules/0/match/0/present: every request has a path"}},
		{"no method", withRule(`{"on": "method", "present": false}`), []string{"/rules/0/match/0/present: every request has a method"}},

		{"sticky by nothing", fmt.Sprintf(valid, `"sticky": {}`), []string{"/sticky/by: missing"}},
		{"sticky by what is not known", fmt.Sprintf(valid, `"sticky": {"by": "path"}`), []string{"/sticky/by"}},
		{"sticky by a header without a name", fmt.Sprintf(valid, `"sticky": {"by": "header"}`), []string{"/sticky/name: missing"}},
		{"sticky by client with a name", fmt.Sprintf(valid, `"sticky": {"by": "client", "name": "x"}`), []string{"/sticky/name: not for client"}},
		{"sticky by the gateway's cookie with a name", fmt.Sprintf(valid, `"sticky": {"by": "gateway-cookie", "name": "x"}`), []string{"/sticky/name"}},
		{"sticky by the correlation ID", fmt.Sprintf(valid, `"sticky": {"by": "header", "name": "tmx-correlation-id"}`), []string{"/sticky/name: gateway makes"}},
		{"sticky by the cookie of overrides", fmt.Sprintf(valid, `"sticky": {"by": "cookie", "name": "route-override"}`), []string{"/sticky/name: takes away"}},
		{"sticky by the gateway's cookie as another", fmt.Sprintf(valid, `"sticky": {"by": "cookie", "name": "sr-key"}`), []string{"/sticky/name: gateway-cookie"}},
		{"a salt of 256 bytes", fmt.Sprintf(valid, `"sticky": {"by": "client", "salt": "`+strings.Repeat("s", 256)+`"}`), []string{"/sticky/salt"}},
		{"a salt with a NUL", fmt.Sprintf(valid, `"sticky": {"by": "client", "salt": "a\u0000b"}`), []string{"/sticky/salt"}},
		{"an empty missing", fmt.Sprintf(valid, `"sticky": {"by": "client", "missing": ""}`), []string{"/sticky/missing"}},
		{"an unknown missing", fmt.Sprintf(valid, `"sticky": {"by": "client", "missing": "fail"}`), []string{"/sticky/missing"}},
		{"a missing that cannot be", fmt.Sprintf(valid, `"sticky": {"by": "gateway-cookie", "missing": "default"}`), []string{"/sticky/missing"}},
		{"an age of what is no cookie", fmt.Sprintf(valid, `"sticky": {"by": "client", "maxAge": 60}`), []string{"/sticky/maxAge"}},
		{"an age of 0", fmt.Sprintf(valid, `"sticky": {"by": "gateway-cookie", "maxAge": 0}`), []string{"/sticky/maxAge"}},
		{"an age above 400 days", fmt.Sprintf(valid, `"sticky": {"by": "gateway-cookie", "maxAge": 34560001}`), []string{"/sticky/maxAge"}},

		{"an unknown onUnavailable", fmt.Sprintf(valid, `"onUnavailable": "503"`), []string{"/onUnavailable: default or fail"}},
		{"an empty onUnavailable", fmt.Sprintf(valid, `"onUnavailable": ""`), []string{"/onUnavailable"}},
		{"17 label rules", withLabelRule(many(17, `{"header": "h#", "label": "l", "mode": "exact"}`)), []string{"/labelRules: 16"}},
		{"a label rule without anything", withLabelRule(`{}`), []string{"/labelRules/0/header", "/labelRules/0/label", "/labelRules/0/mode"}},
		{"a label rule's unknown mode", withLabelRule(`{"header": "h", "label": "l", "mode": "loose"}`), []string{"/labelRules/0/mode: exact, symmetric or lenient"}},
		{"a label rule's unknown fallback", withLabelRule(`{"header": "h", "label": "l", "mode": "exact", "fallback": "all"}`), []string{"/labelRules/0/fallback"}},
		{"a label rule's empty fallback", withLabelRule(`{"header": "h", "label": "l", "mode": "exact", "fallback": ""}`), []string{"/labelRules/0/fallback"}},
		{"a label rule's header that is none", withLabelRule(`{"header": "h:", "label": "l", "mode": "exact"}`), []string{"/labelRules/0/header"}},
		{"a label rule of the correlation ID", withLabelRule(`{"header": "tmx-correlation-id", "label": "l", "mode": "exact"}`), []string{"/labelRules/0/header: gateway makes"}},
		{"a label rule's guard that is no range", withLabelRule(`{"header": "h", "label": "l", "mode": "exact", "guard": ["10.0.0.0/8", "10.0"]}`), []string{"/labelRules/0/guard/1"}},
		{"a label rule twice", withLabelRule(many(2, `{"header": "h", "label": "l", "mode": "exact"}`)), []string{"/labelRules/1: earlier"}},

		{"an empty owner", fmt.Sprintf(valid, `"owner": ""`), []string{"/owner"}},
		{"an end that is no date", fmt.Sprintf(valid, `"ends": "2026-02-30"`), []string{"/ends"}},
		{"an end with a time", fmt.Sprintf(valid, `"ends": "2026-02-03T00:00:00Z"`), []string{"/ends"}},

		{"a wildcard without active", `{"service": "*"}`, []string{"/active"}},
		{"a wildcard with all that it must not hold", `{"service": "*", "active": true, "variants": [], "default": "", "rules": [], "sticky": {"by": "client"}, "owner": "x", "ends": "2026-12-31", "onUnavailable": "x", "labelRules": [{"header": "h", "label": "l", "mode": "x"}]}`,
			[]string{"/variants", "/default", "/rules", "/sticky", "/owner", "/ends", "/onUnavailable", "/labelRules/0/mode"}},
		{"all at once, in the order of the document", `{"service": "S", "variants": [{"name": "a"}, {"name": "B", "weight": -1}], "default": "x", "rules": [{"name": "r", "match": [], "variant": "x"}], "sticky": {"by": "x"}, "onUnavailable": "x", "labelRules": [{"header": "h", "label": "l", "mode": "x"}], "owner": "", "ends": "x"}`,
			[]string{"/service", "/active", "/variants/1/name", "/variants/0/weight", "/variants/1/weight", "/default", "/rules/0/match", "/rules/0/variant", "/sticky/by", "/onUnavailable", "/labelRules/0/mode", "/owner", "/ends"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := decode(t, tt.record)
			errs := r.Validate()
			if len(errs) != len(tt.want) {
				t.Fatalf("Validate = %d errors, want %d: %v", len(errs), len(tt.want), errs)
			}
			for i, want := range tt.want {
				pointer, detail, _ := strings.Cut(want, ": ")
				if errs[i].Pointer != pointer || !strings.Contains(errs[i].Detail, detail) {
					t.Errorf("error %d = %q %q, want %q with %q", i, errs[i].Pointer, errs[i].Detail, pointer, detail)
				}
			}
			var v routing.ValidationError
			if _, err := routing.Compile(r, nil); !errors.As(err, &v) || !reflect.DeepEqual(v, errs) {
				t.Errorf("Compile = %v, want the errors of Validate", err)
			}
		})
	}
}

func TestValidate_Accepts(t *testing.T) {
	t.Parallel()
	for name, record := range map[string]string{
		"everything":                      full,
		"the least":                       `{"service": "s", "active": false}`,
		"16 variants":                     withVariants(`{"name": "a", "weight": 1},` + many(15, `{"name": "v#", "weight": 0}`)),
		"the largest sum":                 withVariants(`{"name": "a", "weight": 2147483646}, {"name": "b", "weight": 1}`),
		"64 rules":                        fmt.Sprintf(valid, `"rules": [`+many(64, `{"name": "r#", "match": [{"on": "path", "prefix": "/"}], "variant": "b"}`)+`]`),
		"16 label rules":                  withLabelRule(many(16, `{"header": "h#", "label": "l", "mode": "exact"}`)),
		"1000 values":                     withRule(`{"on": "path", "in": [` + many(1000, `"/#"`) + `]}`),
		"a regex of 1024 bytes":           withRule(`{"on": "path", "regex": "` + strings.Repeat("x", 1024) + `"}`),
		"names of 63":                     `{"service": "` + strings.Repeat("a", 63) + `", "active": true}`,
		"names of 1":                      `{"service": "9", "active": true}`,
		"no rules in rules":               fmt.Sprintf(valid, `"rules": []`),
		"400 days":                        fmt.Sprintf(valid, `"sticky": {"by": "gateway-cookie", "maxAge": 34560000}`),
		"rules without variants":          `{"service": "s", "active": true, "rules": [{"name": "r", "match": [{"on": "path", "prefix": "/"}], "variant": "default"}]}`,
		"variants in the same place":      withVariants(`{"name": "a", "weight": 1}, {"name": "b", "weight": 1}`),
		"selectors apart":                 withVariants(`{"name": "a", "weight": 1, "selector": {"v": "1", "w": "1"}}, {"name": "b", "weight": 1, "selector": {"v": "2", "w": "1"}}`),
		"equal selectors of two services": withVariants(`{"name": "a", "weight": 1, "selector": {"v": "1"}}, {"name": "b", "weight": 1, "service": "x", "selector": {"v": "1"}}`),
		"an empty value of a cookie":      withRule(`{"on": "cookie", "name": "c", "in": [""]}`),
		"a wildcard":                      `{"service": "*", "active": true, "onUnavailable": "fail", "labelRules": []}`,
		"a wildcard of nothing":           `{"service": "*", "active": false}`,
		"two labels of one header":        withLabelRule(`{"header": "h", "label": "l", "mode": "exact"}, {"header": "h", "label": "m", "mode": "exact"}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := decode(t, record)
			if errs := r.Validate(); errs != nil {
				t.Fatalf("Validate = %v", errs)
			}
			if _, err := routing.Compile(r, nil); err != nil {
				t.Errorf("Compile = %v", err)
			}
		})
	}
}

func TestValidate_NoRecord(t *testing.T) {
	t.Parallel()
	var r *routing.Record
	if errs := r.Validate(); len(errs) != 1 || errs[0].Pointer != "" {
		t.Errorf("Validate of nil = %v, want one error of the whole", errs)
	}
}

func TestValidationError_Err(t *testing.T) {
	t.Parallel()
	if err := routingtest.Weighted("s", 1).Validate().Err(); err != nil {
		t.Errorf("Err of a valid record = %v, want nil", err)
	}
	err := (&routing.Record{Service: "s"}).Validate().Err()
	if err == nil || err.Error() != "/active: is missing" {
		t.Errorf("Err = %v, want the pointer and the detail", err)
	}
}
