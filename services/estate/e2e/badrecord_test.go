package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// wholeMembers are the members of a record that uses every part of the format.
var wholeMembers = [][2]string{
	{"service", `"bad-input"`},
	{"active", `true`},
	{"variants", `[{"name":"old","weight":5},{"name":"new","weight":5,"endpoint":"http://orgservice-new:8087"}]`},
	{"default", `"old"`},
	{"rules", `[{"name":"testers","match":[{"on":"header","name":"tmx-user-id","in":["u-17"]}],"variant":"new"}]`},
	{"sticky", `{"by":"header","name":"tmx-user-id","salt":"","missing":"draw"}`},
	{"onUnavailable", `"default"`},
	{"labelRules", `[{"header":"version","label":"version","mode":"lenient","fallback":"none","guard":[]}]`},
	{"owner", `"a team"`},
	{"ends", `"2026-12-31"`},
}

// whole is that record with one member replaced, added, or with "" left out.
func whole(member, text string) string {
	members, known := slices.Clone(wholeMembers), false
	for i, m := range members {
		if m[0] == member {
			members[i][1], known = text, true
		}
	}
	if !known && member != "" {
		members = append(members, [2]string{member, text})
	}
	var parts []string
	for _, m := range members {
		if m[1] != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", m[0], m[1]))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// variantsOf is whole with these variants, of which the first is old.
func variantsOf(variants ...string) string {
	return whole("variants", "["+strings.Join(variants, ",")+"]")
}

// placed is whole with another place for the variant new.
func placed(place string) string {
	return variantsOf(`{"name":"old","weight":5}`, `{"name":"new","weight":5,`+place+`}`)
}

// matched is whole with one rule of one match.
func matched(match string) string {
	return whole("rules", `[{"name":"r","match":[`+match+`],"variant":"new"}]`)
}

// ruled is whole with one rule.
func ruled(rule string) string { return whole("rules", "["+rule+"]") }

const anyMatch = `[{"on":"method","in":["GET"]}]`

func repeated(n int, sep string, f func(i int) string) string {
	var parts []string
	for i := range n {
		parts = append(parts, f(i))
	}
	return strings.Join(parts, sep)
}

// pointersTo are the pointers to the elements from first to last of a list.
func pointersTo(list string, first, last int) []string {
	var pointers []string
	for i := first; i <= last; i++ {
		pointers = append(pointers, fmt.Sprint(list, i))
	}
	return pointers
}

// badRecords are documents that must be refused, each with the pointers of all
// its mistakes.
var badRecords = []struct {
	name, body string
	pointers   []string
}{
	// The document.
	{"no service", whole("service", ""), []string{"/service"}},
	{"another service", whole("service", `"somebody-else"`), []string{"/service"}},
	{"a service that is no name", whole("service", `"Bad_Input"`), []string{"/service"}},
	{"an empty service", whole("service", `""`), []string{"/service"}},
	{"no active", whole("active", ""), []string{"/active"}},
	{"active is a word", whole("active", `"Y"`), []string{"/active"}},
	{"active is a number", whole("active", `1`), []string{"/active"}},
	{"active is null", whole("active", `null`), []string{"/active"}},
	{"an unknown member", whole("mirror", `"x"`), []string{"/mirror"}},
	{"a member in another case", whole("Rules", `[]`), []string{"/Rules"}},
	{"a member twice", strings.TrimSuffix(whole("", ""), "}") + `,"owner":"b"}`, []string{"/owner"}},
	{"a member twice by an escape", strings.TrimSuffix(whole("", ""), "}") + `,"\u006fwner":"b"}`, []string{"/owner"}},
	{"onUnavailable of its own", whole("onUnavailable", `"panic"`), []string{"/onUnavailable"}},
	{"onUnavailable empty", whole("onUnavailable", `""`), []string{"/onUnavailable"}},
	{"onUnavailable in another case", whole("onUnavailable", `"Default"`), []string{"/onUnavailable"}},
	{"onUnavailable null", whole("onUnavailable", `null`), []string{"/onUnavailable"}},
	{"an owner that is empty", whole("owner", `""`), []string{"/owner"}},
	{"an owner of 256 bytes", whole("owner", `"`+strings.Repeat("x", 256)+`"`), []string{"/owner"}},
	{"an owner that is null", whole("owner", `null`), []string{"/owner"}},
	{"an end that is no date", whole("ends", `"tomorrow"`), []string{"/ends"}},
	{"an end that is no day", whole("ends", `"2026-02-30"`), []string{"/ends"}},
	{"an end with a time", whole("ends", `"2026-12-31T00:00:00Z"`), []string{"/ends"}},
	{"an empty end", whole("ends", `""`), []string{"/ends"}},

	// Variants, default and weights.
	{"variants without default", whole("default", ""), []string{"/default"}},
	{"default without variants", whole("variants", ""), []string{"/variants", "/rules/0/variant"}},
	{"a default that is no variant", whole("default", `"older"`), []string{"/default"}},
	{"an empty default", whole("default", `""`), []string{"/default"}},
	{"no variant at all", whole("variants", `[]`), []string{"/variants", "/default", "/rules/0/variant"}},
	{"variants null", whole("variants", `null`), []string{"/variants"}},
	{"variants that are an object", whole("variants", `{}`), []string{"/variants"}},
	{"all weights 0", variantsOf(`{"name":"old","weight":0}`, `{"name":"new","weight":0}`), []string{"/variants"}},
	{"one variant of weight 0", strings.Replace(variantsOf(`{"name":"old","weight":0}`), `"variant":"new"`, `"variant":"old"`, 1), []string{"/variants"}},
	{"a sum above 2147483647", variantsOf(`{"name":"old","weight":2147483647}`, `{"name":"new","weight":1}`), []string{"/variants"}},
	{"a weight above 2147483647", variantsOf(`{"name":"old","weight":2147483648}`, `{"name":"new","weight":0}`), []string{"/variants/0/weight"}},
	{"weights whose sum overflows", variantsOf(`{"name":"old","weight":9223372036854775807}`, `{"name":"new","weight":9223372036854775807}`), []string{"/variants/0/weight", "/variants/1/weight"}},
	{"a weight below 0", variantsOf(`{"name":"old","weight":5}`, `{"name":"new","weight":-1}`), []string{"/variants/1/weight"}},
	{"no weight", variantsOf(`{"name":"old","weight":5}`, `{"name":"new"}`), []string{"/variants/1/weight"}},
	{"a weight that is null", variantsOf(`{"name":"old","weight":5}`, `{"name":"new","weight":null}`), []string{"/variants/1/weight"}},
	{"a weight that is a text", variantsOf(`{"name":"old","weight":5}`, `{"name":"new","weight":"5"}`), []string{"/variants/1/weight"}},
	{"an empty weight", variantsOf(`{"name":"old","weight":5}`, `{"name":"new","weight":""}`), []string{"/variants/1/weight"}},
	{"a weight with a fraction", variantsOf(`{"name":"old","weight":5}`, `{"name":"new","weight":0.5}`), []string{"/variants/1/weight"}},
	{"a weight with an exponent", variantsOf(`{"name":"old","weight":5}`, `{"name":"new","weight":1e1}`), []string{"/variants/1/weight"}},
	{"a weight past 64 bits", variantsOf(`{"name":"old","weight":5}`, `{"name":"new","weight":18446744073709551621}`), []string{"/variants/1/weight"}},
	{"two variants of a name", variantsOf(`{"name":"old","weight":5}`, `{"name":"new","weight":5}`, `{"name":"new","weight":1,"service":"b"}`), []string{"/variants/2/name"}},
	{"no name", variantsOf(`{"name":"old","weight":5}`, `{"name":"new","weight":5}`, `{"weight":1}`), []string{"/variants/2/name"}},
	{"a name with a space", variantsOf(`{"name":"old","weight":5}`, `{"name":"new","weight":5}`, `{"name":"a b","weight":1}`), []string{"/variants/2/name"}},
	{"a name of 64 characters", variantsOf(`{"name":"old","weight":5}`, `{"name":"new","weight":5}`, `{"name":"`+strings.Repeat("a", 64)+`","weight":1}`), []string{"/variants/2/name"}},
	{"seventeen variants", variantsOf(`{"name":"old","weight":5}`, `{"name":"new","weight":5}`, repeated(15, ",", func(i int) string { return fmt.Sprintf(`{"name":"v%d","weight":1}`, i) })), []string{"/variants"}},
	{"an unknown member of a variant", placed(`"mirror":true`), []string{"/variants/1/mirror"}},

	// Places.
	{"an endpoint and a service", placed(`"endpoint":"http://a","service":"b"`), []string{"/variants/1/endpoint"}},
	{"an endpoint and a selector", placed(`"endpoint":"http://a","selector":{"a":"b"}`), []string{"/variants/1/endpoint"}},
	{"an endpoint that is empty", placed(`"endpoint":""`), []string{"/variants/1/endpoint"}},
	{"an endpoint of ftp", placed(`"endpoint":"ftp://a"`), []string{"/variants/1/endpoint"}},
	{"an endpoint without a scheme", placed(`"endpoint":"a:80"`), []string{"/variants/1/endpoint"}},
	{"an endpoint with a query", placed(`"endpoint":"http://a/?b"`), []string{"/variants/1/endpoint"}},
	{"an endpoint with a fragment", placed(`"endpoint":"http://a/#b"`), []string{"/variants/1/endpoint"}},
	{"an endpoint with a user", placed(`"endpoint":"http://u:p@a"`), []string{"/variants/1/endpoint"}},
	{"an endpoint with dots", placed(`"endpoint":"http://a/b/../c"`), []string{"/variants/1/endpoint"}},
	{"an endpoint with a bad triplet", placed(`"endpoint":"http://a/%zz"`), []string{"/variants/1/endpoint"}},
	{"an endpoint with a port that is none", placed(`"endpoint":"http://a:65536"`), []string{"/variants/1/endpoint"}},
	{"an endpoint of 2,049 bytes", placed(`"endpoint":"http://a/` + strings.Repeat("x", 2040) + `"`), []string{"/variants/1/endpoint"}},
	{"a metadata endpoint", placed(`"endpoint":"http://169.254.169.254/latest"`), []string{"/variants/1/endpoint"}},
	{"a metadata endpoint as a number", placed(`"endpoint":"http://2852039166/"`), []string{"/variants/1/endpoint"}},
	{"a metadata endpoint in IPv6 clothes", placed(`"endpoint":"http://[::ffff:a9fe:a9fe]/"`), []string{"/variants/1/endpoint"}},
	{"the metadata address of IPv6", placed(`"endpoint":"http://[fd00:ec2::254]/"`), []string{"/variants/1/endpoint"}},
	{"a link-local endpoint", placed(`"endpoint":"http://[fe80::1]:80"`), []string{"/variants/1/endpoint"}},
	{"a service that is no name", placed(`"service":"A"`), []string{"/variants/1/service"}},
	{"the service itself", placed(`"service":"bad-input"`), []string{"/variants/1/service"}},
	{"an empty selector", placed(`"selector":{}`), []string{"/variants/1/selector"}},
	{"a selector with a blank value", placed(`"selector":{"version":""}`), []string{"/variants/1/selector/version"}},
	{"a selector with a list", placed(`"selector":{"version":["1"]}`), []string{"/variants/1/selector/version"}},
	{"a selector with null", placed(`"selector":{"version":null}`), []string{"/variants/1/selector/version"}},
	{"equal selectors", variantsOf(`{"name":"old","weight":5}`, `{"name":"new","weight":5,"selector":{"version":"2"}}`, `{"name":"next","weight":1,"selector":{"version":"2"}}`), []string{"/variants/2/selector"}},
	{"selectors that overlap", variantsOf(`{"name":"old","weight":5}`, `{"name":"new","weight":5,"selector":{"version":"2"}}`, `{"name":"next","weight":1,"selector":{"zone":"a"}}`), []string{"/variants/2/selector"}},
	{"selectors of which one claims more", variantsOf(`{"name":"old","weight":5}`, `{"name":"new","weight":5,"selector":{"version":"2"}}`, `{"name":"next","weight":1,"selector":{"version":"2","zone":"a"}}`), []string{"/variants/2/selector"}},

	// Rules.
	{"rules that are an object", whole("rules", `{}`), []string{"/rules"}},
	{"sixty-five rules", whole("rules", "["+repeated(65, ",", func(i int) string { return fmt.Sprintf(`{"name":"r%d","match":%s,"variant":"new"}`, i, anyMatch) })+"]"), []string{"/rules"}},
	{"a rule without a name", ruled(`{"match":` + anyMatch + `,"variant":"new"}`), []string{"/rules/0/name"}},
	{"a rule whose name is none", ruled(`{"name":"R","match":` + anyMatch + `,"variant":"new"}`), []string{"/rules/0/name"}},
	{"two rules of a name", whole("rules", `[{"name":"r","match":`+anyMatch+`,"variant":"new"},{"name":"r","match":`+anyMatch+`,"variant":"old"}]`), []string{"/rules/1/name"}},
	{"a rule without a match", ruled(`{"name":"r","variant":"new"}`), []string{"/rules/0/match"}},
	{"a rule with an empty match", ruled(`{"name":"r","match":[],"variant":"new"}`), []string{"/rules/0/match"}},
	{"a rule to a variant that is missing", ruled(`{"name":"r","match":` + anyMatch + `,"variant":"newer"}`), []string{"/rules/0/variant"}},
	{"a rule to nowhere", ruled(`{"name":"r","match":` + anyMatch + `}`), []string{"/rules/0"}},
	{"a rule to a variant and to weights", ruled(`{"name":"r","match":` + anyMatch + `,"variant":"new","weights":{"new":1}}`), []string{"/rules/0"}},
	{"a rule whose weights are all 0", ruled(`{"name":"r","match":` + anyMatch + `,"weights":{"old":0,"new":0}}`), []string{"/rules/0/weights"}},
	{"a rule without a weight", ruled(`{"name":"r","match":` + anyMatch + `,"weights":{}}`), []string{"/rules/0/weights"}},
	{"a rule with a weight of a variant that is missing", ruled(`{"name":"r","match":` + anyMatch + `,"weights":{"newer":1,"new":1}}`), []string{"/rules/0/weights/newer"}},
	{"a rule with a weight below 0", ruled(`{"name":"r","match":` + anyMatch + `,"weights":{"old":1,"new":-1}}`), []string{"/rules/0/weights/new"}},
	{"a rule whose weights' sum is above 2147483647", ruled(`{"name":"r","match":` + anyMatch + `,"weights":{"old":2147483647,"new":1}}`), []string{"/rules/0/weights"}},
	{"a rule with a weight that is null", ruled(`{"name":"r","match":` + anyMatch + `,"weights":{"new":null}}`), []string{"/rules/0/weights/new"}},
	{"an unknown member of a rule", ruled(`{"name":"r","match":` + anyMatch + `,"variant":"new","percent":5}`), []string{"/rules/0/percent"}},
	{"seventeen matches", ruled(`{"name":"r","match":[` + repeated(17, ",", func(int) string { return `{"on":"method","in":["GET"]}` }) + `],"variant":"new"}`), []string{"/rules/0/match"}},

	// Matches.
	{"an unknown kind", matched(`{"on":"body","in":["a"]}`), []string{"/rules/0/match/0/on"}},
	{"a kind in another case", matched(`{"on":"Header","name":"a","in":["a"]}`), []string{"/rules/0/match/0/on"}},
	{"no kind", matched(`{"name":"a","in":["a"]}`), []string{"/rules/0/match/0/on"}},
	{"no test", matched(`{"on":"path"}`), []string{"/rules/0/match/0"}},
	{"two tests", matched(`{"on":"path","in":["/a"],"prefix":"/a"}`), []string{"/rules/0/match/0"}},
	{"an unknown test", matched(`{"on":"path","contains":"a"}`), []string{"/rules/0/match/0/contains"}},
	{"a header without a name", matched(`{"on":"header","in":["a"]}`), []string{"/rules/0/match/0/name"}},
	{"a header with an empty name", matched(`{"on":"header","name":"","in":["a"]}`), []string{"/rules/0/match/0/name"}},
	{"a header whose name is no token", matched(`{"on":"header","name":"a b","in":["a"]}`), []string{"/rules/0/match/0/name"}},
	{"the header Cookie", matched(`{"on":"header","name":"cookie","in":["a"]}`), []string{"/rules/0/match/0/name"}},
	{"the header Host", matched(`{"on":"header","name":"host","in":["a"]}`), []string{"/rules/0/match/0/name"}},
	{"a header that the gateway sets", matched(`{"on":"header","name":"X-Route-Variant","in":["a"]}`), []string{"/rules/0/match/0/name"}},
	{"the header of overrides", matched(`{"on":"header","name":"route-override","present":true}`), []string{"/rules/0/match/0/name"}},
	{"the correlation ID", matched(`{"on":"header","name":"tmx-correlation-id","present":true}`), []string{"/rules/0/match/0/name"}},
	{"a header that the gateway sets, spelt otherwise", matched(`{"on":"header","name":"x_forwarded_for","present":true}`), []string{"/rules/0/match/0/name"}},
	{"the cookie of overrides", matched(`{"on":"cookie","name":"route-override","present":true}`), []string{"/rules/0/match/0/name"}},
	{"the gateway's cookie", matched(`{"on":"cookie","name":"sr-key","present":true}`), []string{"/rules/0/match/0/name"}},
	{"a cookie without a name", matched(`{"on":"cookie","in":["a"]}`), []string{"/rules/0/match/0/name"}},
	{"a cookie whose name is none", matched(`{"on":"cookie","name":"a=b","in":["a"]}`), []string{"/rules/0/match/0/name"}},
	{"a parameter without a name", matched(`{"on":"query","in":["a"]}`), []string{"/rules/0/match/0/name"}},
	{"a path with a name", matched(`{"on":"path","name":"a","in":["/a"]}`), []string{"/rules/0/match/0/name"}},
	{"a method with a name", matched(`{"on":"method","name":"a","in":["GET"]}`), []string{"/rules/0/match/0/name"}},
	{"an empty list", matched(`{"on":"path","in":[]}`), []string{"/rules/0/match/0/in"}},
	{"a list of 1,001", matched(`{"on":"path","in":[` + repeated(1001, ",", func(i int) string { return fmt.Sprintf(`"/%d"`, i) }) + `]}`), []string{"/rules/0/match/0/in"}},
	{"a list with a number", matched(`{"on":"path","in":["/a",1]}`), []string{"/rules/0/match/0/in/1"}},
	{"a value of 1,025 bytes", matched(`{"on":"query","name":"a","in":["` + strings.Repeat("x", 1025) + `"]}`), []string{"/rules/0/match/0/in/0"}},
	{"a blank value of a header", matched(`{"on":"header","name":"a","in":[" "]}`), []string{"/rules/0/match/0/in/0"}},
	{"an empty prefix", matched(`{"on":"path","prefix":""}`), []string{"/rules/0/match/0/prefix"}},
	{"a regex that does not compile", matched(`{"on":"path","regex":"(/a"}`), []string{"/rules/0/match/0/regex"}},
	{"a regex that is not RE2", matched(`{"on":"path","regex":"(?=a)"}`), []string{"/rules/0/match/0/regex"}},
	{"an empty regex", matched(`{"on":"path","regex":""}`), []string{"/rules/0/match/0/regex"}},
	{"a regex of 1,025 bytes", matched(`{"on":"path","regex":"` + strings.Repeat("a", 1025) + `"}`), []string{"/rules/0/match/0/regex"}},
	{"a regex that repeats itself into millions", matched(`{"on":"path","regex":"((a{100}){100}){100}"}`), []string{"/rules/0/match/0/regex"}},
	{"a range of a header", matched(`{"on":"header","name":"a","cidr":"10.0.0.0/8"}`), []string{"/rules/0/match/0/cidr"}},
	{"a range that is none", matched(`{"on":"client","cidr":"10.0.0.0/33"}`), []string{"/rules/0/match/0/cidr"}},
	{"an address for a range", matched(`{"on":"client","cidr":"10.0.0.1"}`), []string{"/rules/0/match/0/cidr"}},
	{"a client that is no address", matched(`{"on":"client","in":["localhost"]}`), []string{"/rules/0/match/0/in/0"}},
	{"a client by a prefix", matched(`{"on":"client","prefix":"10."}`), []string{"/rules/0/match/0/prefix"}},
	{"a client by a regex", matched(`{"on":"client","regex":"10.*"}`), []string{"/rules/0/match/0/regex"}},
	{"present is a text", matched(`{"on":"header","name":"a","present":"true"}`), []string{"/rules/0/match/0/present"}},
	{"present is null", matched(`{"on":"header","name":"a","present":null}`), []string{"/rules/0/match/0/present"}},

	// Matches that can never hold.
	{"paths that never arrive", matched(`{"on":"path","in":["/a","a","/a b","/ä","/a?b","/a#b","/a\\b","/%zz","/%2","/%5C","/%00","/a/..","/./a","/%2e;x"]}`), pointersTo("/rules/0/match/0/in/", 1, 13)},
	{"a prefix that no path has", matched(`{"on":"path","prefix":"/v1/../"}`), []string{"/rules/0/match/0/prefix"}},
	{"a prefix without its slash", matched(`{"on":"path","prefix":"v1/"}`), []string{"/rules/0/match/0/prefix"}},
	{"a request without a path", matched(`{"on":"path","present":false}`), []string{"/rules/0/match/0/present"}},
	{"a request without a method", matched(`{"on":"method","present":false}`), []string{"/rules/0/match/0/present"}},
	{"methods that are none", matched(`{"on":"method","in":["GET","G T",""]}`), []string{"/rules/0/match/0/in/1", "/rules/0/match/0/in/2"}},
	{"a header's values that never arrive", matched(`{"on":"header","name":"a","in":["a b"," a","a ","a\tb","ä","` + strings.Repeat("x", 256) + `"]}`), pointersTo("/rules/0/match/0/in/", 1, 5)},
	{"a cookie's values that never arrive", matched(`{"on":"cookie","name":"a","in":[""," a ","a;b","a\"b","a\\b","ä"]}`), pointersTo("/rules/0/match/0/in/", 2, 5)},

	// Sticky.
	{"sticky by the correlation ID", whole("sticky", `{"by":"header","name":"tmx-correlation-id"}`), []string{"/sticky/name"}},
	{"sticky by the cookie of overrides", whole("sticky", `{"by":"cookie","name":"route-override"}`), []string{"/sticky/name"}},
	{"sticky by the gateway's cookie as another", whole("sticky", `{"by":"cookie","name":"sr-key"}`), []string{"/sticky/name"}},
	{"sticky is null", whole("sticky", `null`), []string{"/sticky"}},
	{"sticky is empty", whole("sticky", `{}`), []string{"/sticky/by"}},
	{"sticky by something unknown", whole("sticky", `{"by":"user"}`), []string{"/sticky/by"}},
	{"sticky by a header without a name", whole("sticky", `{"by":"header"}`), []string{"/sticky/name"}},
	{"sticky by a header that cannot be read", whole("sticky", `{"by":"header","name":"x-forwarded-for"}`), []string{"/sticky/name"}},
	{"sticky by a cookie whose name is none", whole("sticky", `{"by":"cookie","name":"a;b"}`), []string{"/sticky/name"}},
	{"sticky by the client with a name", whole("sticky", `{"by":"client","name":"a"}`), []string{"/sticky/name"}},
	{"sticky by the gateway's cookie with a name", whole("sticky", `{"by":"gateway-cookie","name":"a"}`), []string{"/sticky/name"}},
	{"sticky by the gateway's cookie with missing: default", whole("sticky", `{"by":"gateway-cookie","missing":"default"}`), []string{"/sticky/missing"}},
	{"sticky with a missing of its own", whole("sticky", `{"by":"client","missing":"random"}`), []string{"/sticky/missing"}},
	{"sticky with an empty missing", whole("sticky", `{"by":"client","missing":""}`), []string{"/sticky/missing"}},
	{"a salt of 256 bytes", whole("sticky", `{"by":"client","salt":"`+strings.Repeat("s", 256)+`"}`), []string{"/sticky/salt"}},
	{"a salt that is a number", whole("sticky", `{"by":"client","salt":7}`), []string{"/sticky/salt"}},
	{"a salt with NUL", whole("sticky", `{"by":"client","salt":"a\u0000b"}`), []string{"/sticky/salt"}},
	{"an age of 401 days", whole("sticky", `{"by":"gateway-cookie","maxAge":34646400}`), []string{"/sticky/maxAge"}},
	{"an age of 0", whole("sticky", `{"by":"gateway-cookie","maxAge":0}`), []string{"/sticky/maxAge"}},
	{"an age below 0", whole("sticky", `{"by":"gateway-cookie","maxAge":-1}`), []string{"/sticky/maxAge"}},
	{"an age of what is not our cookie", whole("sticky", `{"by":"cookie","name":"a","maxAge":60}`), []string{"/sticky/maxAge"}},
	{"an unknown member of sticky", whole("sticky", `{"by":"client","ttl":60}`), []string{"/sticky/ttl"}},

	// Label rules.
	{"seventeen label rules", whole("labelRules", "["+repeated(17, ",", func(i int) string { return fmt.Sprintf(`{"header":"h%d","label":"l%d","mode":"exact"}`, i, i) })+"]"), []string{"/labelRules"}},
	{"a label rule without anything", whole("labelRules", `[{}]`), []string{"/labelRules/0/header", "/labelRules/0/label", "/labelRules/0/mode"}},
	{"a label rule's header that is no token", whole("labelRules", `[{"header":"a:b","label":"a","mode":"exact"}]`), []string{"/labelRules/0/header"}},
	{"a label rule's label that is empty", whole("labelRules", `[{"header":"a","label":"","mode":"exact"}]`), []string{"/labelRules/0/label"}},
	{"a label rule of the correlation ID", whole("labelRules", `[{"header":"tmx-correlation-id","label":"a","mode":"exact"}]`), []string{"/labelRules/0/header"}},
	{"an unknown mode", whole("labelRules", `[{"header":"a","label":"a","mode":"loose"}]`), []string{"/labelRules/0/mode"}},
	{"an unknown fallback", whole("labelRules", `[{"header":"a","label":"a","mode":"exact","fallback":"all"}]`), []string{"/labelRules/0/fallback"}},
	{"a guard that is no range", whole("labelRules", `[{"header":"a","label":"a","mode":"exact","guard":["10.0.0.0/8","office"]}]`), []string{"/labelRules/0/guard/1"}},

	// Several at once, none left out.
	{"a mistake in every part", `{"service":"bad-input","default":"older","variants":[{"name":"Old","weight":-1},{"name":"new","endpoint":"ftp://a"}],` +
		`"rules":[{"name":"r","match":[{"on":"body","in":["a"]},{"on":"path","regex":"("}],"variant":"newer"}],"sticky":{"by":"user"},` +
		`"onUnavailable":"panic","labelRules":[{"header":"a","label":"a","mode":"loose"}],"ends":"soon"}`,
		[]string{
			"/active", "/default", "/variants/0/name", "/variants/0/weight", "/variants/1/weight", "/variants/1/endpoint",
			"/rules/0/match/0/on", "/rules/0/match/1/regex", "/rules/0/variant", "/sticky/by", "/onUnavailable", "/labelRules/0/mode", "/ends",
		}},
	{"two wrong weights", variantsOf(`{"name":"old"}`, `{"name":"new","weight":-5}`), []string{"/variants/0/weight", "/variants/1/weight"}},
}

// brokenTexts are bodies that are no document.
var brokenTexts = map[string]string{
	"nothing": "", "white space": " \n", "null": "null", "a list": "[]", "a text": `"a"`, "a number": "5", "half": whole("", "")[:40],
	"trailing data": whole("", "") + "{}", "trailing text": whole("", "") + " x", "a trailing comma": strings.TrimSuffix(whole("", ""), "}") + ",}",
	"a comment": "/* a */" + whole("", ""), "single quotes": strings.ReplaceAll(whole("", ""), `"`, "'"),
	"a byte order mark": "\xef\xbb\xbf" + whole("", ""), "no UTF-8": whole("owner", "\"\xff\""), "half a surrogate": whole("owner", `"\ud800"`),
	"UTF-16": "{\x00}\x00", "deep nesting": strings.Repeat(`{"rules":[`, 20_000), "a large number": whole("active", strings.Repeat("9", 10_000)),
	"NaN": whole("active", "NaN"), "YAML": "service: bad-input\nactive: true\n",
}

func pointersOf(doc problemDoc) []string {
	var pointers []string
	for _, e := range doc.Errors {
		pointers = append(pointers, e.Pointer)
	}
	return pointers
}

func TestABadRecordIsRefusedWithAllItsMistakesAndStoresNothing(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	for _, existing := range []bool{false, true} {
		if existing {
			r.save(t, "bad-input", whole("", ""))
		}
		before := stored(t, r)
		for _, test := range badRecords {
			t.Run(fmt.Sprintf("%s, record exists %v", test.name, existing), func(t *testing.T) {
				got := sendJSON(t, "PUT", r.full("bad-input"), test.body)
				if got.status != 400 && got.status != 422 {
					t.Fatalf("status = %d, want 400 or 422: %.500s", got.status, got.body)
				}
				doc, err := parseProblem(got)
				if err != nil {
					t.Error(err)
				}
				pointers, want := pointersOf(doc), slices.Clone(test.pointers)
				slices.Sort(pointers)
				slices.Sort(want)
				if !slices.Equal(pointers, want) {
					t.Errorf("the problem names %q, want %q: %.1000s", pointers, want, got.body)
				}
				for _, e := range doc.Errors {
					if e.Detail == "" || strings.Contains(e.Detail, "Go ") || strings.Contains(e.Detail, "routing.") {
						t.Errorf("%s: detail = %q", e.Pointer, e.Detail)
					}
				}
			})
		}
		for name, body := range brokenTexts {
			t.Run(fmt.Sprintf("%s, record exists %v", name, existing), func(t *testing.T) {
				wantProblem(t, sendJSON(t, "PUT", r.full("bad-input"), body), 400)
			})
		}
		if after := stored(t, r); after != before {
			t.Errorf("something was stored:\nbefore %s\nafter  %s", before, after)
		}
		history := decoded[historyPage](t, call(t, "GET", r.full("bad-input", "history"), nil, nil))
		if n := len(history.Entries); n > 1 || (n == 1) != existing {
			t.Errorf("the history has %d entries", n)
		}
	}
	if got := sendJSON(t, "PUT", r.full("bad-input"), whole("", "")); got.status != 200 {
		t.Errorf("the record without a mistake: status %d: %s", got.status, got.body)
	}
}

func TestARecordAtAllItsLimitsIsTakenAndObeyed(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{})
	name := func(i int) string { return fmt.Sprintf("%s-%02d", strings.Repeat("n", 60), i) } // 63 bytes
	endpoint := l.new.URL + "/"
	endpoint += strings.Repeat("e", 2048-len(endpoint))
	variants := []string{`{"name":"old","weight":2147483632}`} // with 15 more the largest sum
	for i := range 14 {
		variants = append(variants, fmt.Sprintf(`{"name":%q,"weight":1,"selector":{"v":"%d"}}`, name(i), i))
	}
	variants = append(variants, fmt.Sprintf(`{"name":"new","weight":1,"endpoint":%q}`, endpoint))
	many := repeated(1000, ",", func(i int) string { return fmt.Sprintf("%q", fmt.Sprintf("u-%d", i)) })
	matches := repeated(15, ",", func(int) string { return `{"on":"method","in":["GET"]}` })
	rules := repeated(63, ",", func(i int) string {
		return ruleTo(name(i), "old", fmt.Sprintf(`{"on":"query","name":"nobody","regex":%q}`, strings.Repeat("x", 1024)))
	})
	document := recordOf(labService, variants,
		`"rules":[`+rules+","+ruleTo("last", "new", matches, `{"on":"header","name":"tmx-user-id","in":[`+many+`]}`)+"]",
		`"sticky":{"by":"gateway-cookie","salt":"`+strings.Repeat("s", 255)+`","maxAge":34560000}`,
		`"labelRules":[`+repeated(16, ",", func(i int) string { return fmt.Sprintf(`{"header":"x-%d","label":"l-%d","mode":"lenient"}`, i, i) })+"]",
		`"owner":"`+strings.Repeat("o", 255)+`","ends":"9999-12-31"`)
	l.set(t, document)
	wantJSON(t, "GET", call(t, "GET", l.full(labService), nil, nil).body, document)
	got := l.get(t, "/x", [2]string{"tmx-user-id", "u-999"})
	wantRouted(t, got, "new", "rule:last")
	got = l.get(t, "/x", [2]string{"tmx-user-id", "u-1000"})
	wantRouted(t, got, "old", "sticky")
	if cookie := wantIssued(t, got); cookie.MaxAge != 34560000 {
		t.Errorf("Max-Age = %d", cookie.MaxAge)
	}
}

func TestABrokenRecordCanBeSeenReplacedDeletedAndRolledBack(t *testing.T) {
	t.Parallel()
	p := postgresLab(t)
	r := routes{url: p.url}
	broken := `{"service": "broken", "active": true, "mirror": "x"}`
	breakIt := func() {
		t.Helper()
		p.sql(t, p.database, "UPDATE routes SET record = '"+broken+"' WHERE service = 'broken'")
	}
	r.save(t, "broken", pair("broken", 1, 1))
	r.save(t, "whole", pair("whole", 1, 1))
	breakIt()
	got := call(t, "GET", r.full("broken"), nil, nil)
	doc := wantProblem(t, got, 409)
	var shown struct{ Record json.RawMessage }
	if err := json.Unmarshal(got.body, &shown); err != nil || doc.Code != "record_broken" || !strings.Contains(doc.Detail, "mirror") || !sameJSON(t, shown.Record, []byte(broken)) {
		t.Errorf("GET: %v: %s", err, got.body)
	}
	list := call(t, "GET", r.url+"/v1/routes", nil, nil)
	var page struct {
		Routes []struct{ Service, Broken string }
	}
	if err := json.Unmarshal(list.body, &page); err != nil || len(page.Routes) != 2 || !strings.Contains(page.Routes[0].Broken, "mirror") || page.Routes[1].Broken != "" {
		t.Errorf("the list: %v: %s", err, list.body)
	}
	for _, part := range []struct{ below, body string }{{"weights", `{"old":1,"new":1}`}, {"active", `{"active":false}`}} {
		if doc := wantProblem(t, sendJSON(t, "PUT", r.full("broken", part.below), part.body), 409); doc.Code != "record_broken" {
			t.Errorf("%s: %+v", part.below, doc)
		}
	}
	if doc := wantProblem(t, sendJSON(t, "POST", r.url+"/v1/explain", `{"service":"broken"}`), 409); doc.Code != "record_broken" {
		t.Errorf("explain: %+v", doc)
	}
	wantCode(t, command(t, r.url, "", "routes", "get", "broken"), 5)

	if got := sendJSON(t, "PUT", r.full("broken"), pair("broken", 1, 2)); got.status != 200 {
		t.Errorf("PUT over it: status %d: %s", got.status, got.body)
	}
	breakIt()
	if got := sendJSON(t, "POST", r.full("broken", "rollback"), `{"revision":1}`); got.status != 200 {
		t.Errorf("rollback out of it: status %d: %s", got.status, got.body)
	}
	wantJSON(t, "after the rollback", call(t, "GET", r.full("broken"), nil, nil).body, pair("broken", 1, 1))
	breakIt()
	if got := call(t, "DELETE", r.full("broken"), nil, nil); got.status != 200 {
		t.Errorf("DELETE: status %d: %s", got.status, got.body)
	}
	wantProblem(t, call(t, "GET", r.full("broken"), nil, nil), 404)
	if entries := r.history(t, "broken"); len(entries) != 4 {
		t.Errorf("the history: %+v", entries)
	}
}

func TestTheWildcardRecordHoldsNothingButItsTwoMembers(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	for _, m := range []string{"variants", "rules", "sticky", "owner", "ends"} {
		text := `{"service":"*","active":true`
		for _, member := range wholeMembers {
			if member[0] == m || m == "variants" && member[0] == "default" {
				text += fmt.Sprintf(",%q:%s", member[0], member[1])
			}
		}
		got := sendJSON(t, "PUT", r.full("*"), text+"}")
		if doc := wantProblem(t, got, 422); !doc.names("/" + m) {
			t.Errorf("%s: %s", m, got.body)
		}
	}
	if got := sendJSON(t, "PUT", r.full("*"), `{"service":"*","active":true,"onUnavailable":"fail","labelRules":[]}`); got.status != 201 {
		t.Errorf("status = %d: %s", got.status, got.body)
	}
}

func TestBadParametersAndConditionsAreRefusedByNameAndChangeNothing(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	r.save(t, "bad-input", whole("", ""))
	before := stored(t, r)
	record := r.full("bad-input")
	for _, test := range []struct {
		method, url, body string
		h                 [2]string
		names             string
	}{
		{"PUT", record + "?dryRun=yes", whole("", ""), [2]string{}, "dryRun"},
		{"PUT", record + "?dryRun=", whole("", ""), [2]string{}, "dryRun"},
		{"PUT", record + "?dryrun=true", whole("", ""), [2]string{}, "dryrun"},
		{"PUT", record + "?dryRun=true&dryRun=false", whole("", ""), [2]string{}, "dryRun"},
		{"PUT", record + "?wait=yes", whole("", ""), [2]string{}, "wait"},
		{"PUT", record + "?wait=applied&wait=applied", whole("", ""), [2]string{}, "wait"},
		{"PUT", record + "?why=" + strings.Repeat("x", 501), whole("", ""), [2]string{}, "why"},
		{"PUT", record + "?why=a%0Ab", whole("", ""), [2]string{}, "why"},
		{"PUT", record + "?why=%ff", whole("", ""), [2]string{}, "why"},
		{"PUT", record + "?why=%zz", whole("", ""), [2]string{}, ""},
		{"PUT", record, whole("", ""), [2]string{"If-Match", "1.abc"}, "If-Match"},
		{"PUT", record, whole("", ""), [2]string{"If-Match", `W/"1.abc"x`}, "If-Match"},
		{"PUT", record, whole("", ""), [2]string{"If-None-Match", "all"}, "If-None-Match"},
		{"DELETE", record + "?force=true", "", [2]string{}, "force"},
		{"GET", r.url + "/v1/routes?limit=0", "", [2]string{}, "limit"},
		{"GET", r.url + "/v1/routes?limit=1001", "", [2]string{}, "limit"},
		{"GET", r.url + "/v1/routes?limit=ten", "", [2]string{}, "limit"},
		{"GET", r.url + "/v1/routes?limit=9999999999999999999", "", [2]string{}, "limit"},
		{"GET", r.url + "/v1/routes?after=%00", "", [2]string{}, "after"},
		{"GET", record + "/history?before=0", "", [2]string{}, "before"},
		{"GET", record + "/history?before=x", "", [2]string{}, "before"},
		{"GET", record + "/history?limit=-1", "", [2]string{}, "limit"},
		{"GET", r.url + "/v1/gateways?all=1", "", [2]string{}, "all"},
		{"PUT", record + "/weights", `{"old":1}`, [2]string{}, "/new"},
		{"PUT", record + "/weights", `{"old":1,"new":1,"newer":1}`, [2]string{}, "/newer"},
		{"PUT", record + "/weights", `{"old":0,"new":0}`, [2]string{}, ""},
		{"PUT", record + "/weights", `{"old":1,"new":-1}`, [2]string{}, "/new"},
		{"PUT", record + "/weights", `{"old":1,"new":0.5}`, [2]string{}, "/new"},
		{"PUT", record + "/weights", `{"old":1,"new":null}`, [2]string{}, "/new"},
		{"PUT", record + "/weights", `{"old":1,"new":"1"}`, [2]string{}, "/new"},
		{"PUT", record + "/weights", `{"old":2147483647,"new":1}`, [2]string{}, ""},
		{"PUT", record + "/weights", `{"old":1,"new":1,"new":1}`, [2]string{}, "/new"},
		{"PUT", record + "/weights", `[]`, [2]string{}, ""},
		{"PUT", record + "/weights", `{}`, [2]string{}, "/old"},
		{"PUT", record + "/active", `{"active":"true"}`, [2]string{}, "/active"},
		{"PUT", record + "/active", `{}`, [2]string{}, "/active"},
		{"PUT", record + "/active", `true`, [2]string{}, ""},
		{"PUT", record + "/active", `{"active":true,"why":"x"}`, [2]string{}, "/why"},
		{"POST", record + "/rollback", `{"revision":0}`, [2]string{}, "/revision"},
		{"POST", record + "/rollback", `{"revision":"1"}`, [2]string{}, "/revision"},
		{"POST", record + "/rollback", `{}`, [2]string{}, "/revision"},
		{"POST", record + "/rollback", `{"revision":999999}`, [2]string{}, "/revision"},
		{"POST", r.url + "/v1/explain", `{}`, [2]string{}, "/service"},
		{"POST", r.url + "/v1/explain", `{"service":"Bad"}`, [2]string{}, "/service"},
		{"POST", r.url + "/v1/explain", `{"service":"bad-input","request":{"path":"no-slash"}}`, [2]string{}, "/request/path"},
		{"POST", r.url + "/v1/explain", `{"service":"bad-input","request":{"path":"/a b"}}`, [2]string{}, "/request/path"},
		{"POST", r.url + "/v1/explain", `{"service":"bad-input","request":{"client":"localhost"}}`, [2]string{}, "/request/client"},
		{"POST", r.url + "/v1/explain", `{"service":"bad-input","request":{"draw":0}}`, [2]string{}, "/request/draw"},
		{"POST", r.url + "/v1/explain", `{"service":"bad-input","request":{"draw":11}}`, [2]string{}, "/request/draw"},
		{"POST", r.url + "/v1/explain", `{"service":"bad-input","request":{"method":"G T"}}`, [2]string{}, "/request/method"},
		{"POST", r.url + "/v1/explain", `{"service":"bad-input","request":{"headers":{"a b":["c"]}}}`, [2]string{}, "/request/headers"},
		{"POST", r.url + "/v1/explain", `{"service":"bad-input","request":{"headers":{"a":"c"}}}`, [2]string{}, "/request/headers/a"},
		{"POST", r.url + "/v1/explain", `{"service":"bad-input","request":{"cookies":{}}}`, [2]string{}, "/request/cookies"},
		{"POST", r.url + "/v1/explain", `{"service":"bad-input","record":{"service":"bad-input","active":true,"default":"x"}}`, [2]string{}, "/record/variants"},
		{"POST", r.url + "/v1/explain", `{"service":"bad-input","record":{"service":"another","active":true}}`, [2]string{}, "/record/service"},
	} {
		t.Run(fmt.Sprintf("%s %.60s %.80s %s", test.method, strings.TrimPrefix(test.url, r.url), test.body, test.h[1]), func(t *testing.T) {
			var h headers
			if test.body != "" {
				h = headers{{"Content-Type", jsonType}}
			}
			if test.h[0] != "" {
				h = append(h, test.h)
			}
			got := call(t, test.method, test.url, strings.NewReader(test.body), h)
			wantRefused(t, r, before, got, test.names)
		})
	}
}

// TestNoDocumentMakesSpecialRoutesFail sends documents that were made from good
// ones by cutting, doubling and exchanging bytes and members.
func TestNoDocumentMakesSpecialRoutesFail(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	random := rand.New(rand.NewPCG(271, 828))
	words := []string{"null", "0", "-1", "1e400", "9223372036854775808", `""`, `"\u0000"`, "[]", "{}", "true", `{"a":1}`, `"old"`, `"*"`, "[[[[]]]]"}
	documents := make([]string, 600)
	for i := range documents {
		text := []byte(badRecords[random.IntN(len(badRecords))].body)
		if i%2 == 0 {
			text = []byte(whole(wholeMembers[random.IntN(len(wholeMembers))][0], words[random.IntN(len(words))]))
		}
		for range random.IntN(4) {
			at := random.IntN(len(text))
			switch random.IntN(4) {
			case 0:
				text[at] = byte(random.UintN(256))
			case 1:
				text = append(text[:at:at], text[min(len(text), at+1+random.IntN(20)):]...)
			case 2:
				text = append(text[:at:at], append([]byte(words[random.IntN(len(words))]), text[at:]...)...)
			default:
				end := min(len(text), at+random.IntN(40))
				text = append(text[:end:end], text[at:]...)
			}
			if len(text) == 0 {
				text = []byte("{")
			}
		}
		documents[i] = string(text)
	}
	each(t, len(documents), func(i int) (struct{}, error) {
		got, err := do("PUT", r.full("bad-input"), strings.NewReader(documents[i]), headers{{"Content-Type", jsonType}})
		if err == nil && got.status != 200 && got.status != 201 {
			if _, problem := parseProblem(got); got.status > 499 || problem != nil {
				err = fmt.Errorf("status %d, %v: %.300q: %.300s", got.status, problem, documents[i], got.body)
			}
		}
		return struct{}{}, err
	})
	// What was stored is what may be used.
	for service, record := range table(t, r.url) {
		if !json.Valid([]byte(record)) || service != "bad-input" {
			t.Errorf("%s: %s", service, record)
		}
	}
	if got := call(t, "GET", r.full("bad-input"), nil, nil); got.status != 200 && got.status != 404 {
		t.Errorf("GET: status %d: %s", got.status, got.body)
	}
}
