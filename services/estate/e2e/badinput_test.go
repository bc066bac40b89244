package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

const jsonType = "application/json"

// document is a book's record as a JSON text, with one member replaced (or, with
// an empty text, left out), so that a test shows only its mistake.
func document(member, text string) string {
	members := [][2]string{
		{"serviceName", `"bad-input"`}, {"active", `"Y"`}, {"endpoint", `"http://orgservice-new:8087"`}, {"weight", "5"},
	}
	var parts []string
	for _, m := range members {
		if m[0] == member {
			m[1] = text
		}
		if m[1] != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", m[0], m[1]))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// with is the good document with a text put before its end.
func with(more string) string {
	return strings.TrimSuffix(document("", ""), "}") + more + "}"
}

// badBodies are the mistakes of a body, each with the field that the answer must
// name; "" where no field is at fault.
var badBodies = []struct{ name, field, body string }{
	{"unknown key", "weigth", with(`,"weigth":5`)},
	{"unknown key of the whole record", "variants", with(`,"variants":[]`)},
	{"missing serviceName", "serviceName", document("serviceName", "")},
	{"missing active", "active", document("active", "")},
	{"missing endpoint", "endpoint", document("endpoint", "")},
	{"missing weight", "weight", document("weight", "")},
	{"duplicate key", "weight", with(`,"weight":6`)},
	{"duplicate key with an escape", "weight", with(`,"w\u0065ight":6`)},
	{"differently-cased key", "Weight", strings.Replace(document("", ""), `"weight"`, `"Weight"`, 1)},
	{"differently-cased key beside", "WEIGHT", with(`,"WEIGHT":6`)},
	{"a key that folds to another", "erviceName", strings.Replace(document("", ""), `"serviceName"`, `"ſerviceName"`, 1)},
	{"null serviceName", "serviceName", document("serviceName", "null")},
	{"null active", "active", document("active", "null")},
	{"null endpoint", "endpoint", document("endpoint", "null")},
	{"null weight", "weight", document("weight", "null")},
	{"string for weight", "weight", document("weight", `"5"`)},
	{"fraction for weight", "weight", document("weight", "5.5")},
	{"fraction of a whole", "weight", document("weight", "5.0")},
	{"exponent for weight", "weight", document("weight", "1e1")},
	{"weight -1", "weight", document("weight", "-1")},
	{"weight 11", "weight", document("weight", "11")},
	{"weight past int64", "weight", document("weight", "9223372036854775808")},
	{"weight past 2^64", "weight", document("weight", "18446744073709551621")},
	{"weight true", "weight", document("weight", "true")},
	{"weight in a list", "weight", document("weight", "[5]")},
	{"active y", "active", document("active", `"y"`)},
	{"active X", "active", document("active", `"X"`)},
	{"active YES", "active", document("active", `"YES"`)},
	{"active empty", "active", document("active", `""`)},
	{"active true", "active", document("active", "true")},
	{"active Y with a space", "active", document("active", `"Y "`)},
	{"serviceName of another", "serviceName", document("serviceName", `"another-service"`)},
	{"serviceName a number", "serviceName", document("serviceName", "5")},
	{"endpoint empty", "endpoint", document("endpoint", `""`)},
	{"endpoint a number", "endpoint", document("endpoint", "8087")},
	{"endpoint without a scheme", "endpoint", document("endpoint", `"orgservice-new:8087"`)},
	{"endpoint a path", "endpoint", document("endpoint", `"/orgservice-new"`)},
	{"endpoint ftp", "endpoint", document("endpoint", `"ftp://orgservice-new"`)},
	{"endpoint file", "endpoint", document("endpoint", `"file:///etc/passwd"`)},
	{"endpoint javascript", "endpoint", document("endpoint", `"javascript:alert(1)"`)},
	{"endpoint without a host", "endpoint", document("endpoint", `"http://"`)},
	{"endpoint only a port", "endpoint", document("endpoint", `"http://:8087"`)},
	{"endpoint with a query", "endpoint", document("endpoint", `"http://orgservice-new:8087/?a=b"`)},
	{"endpoint with an empty query", "endpoint", document("endpoint", `"http://orgservice-new:8087/?"`)},
	{"endpoint with a fragment", "endpoint", document("endpoint", `"http://orgservice-new:8087/#a"`)},
	{"endpoint with userinfo", "endpoint", document("endpoint", `"http://user:secret@orgservice-new:8087"`)},
	{"endpoint with a port too large", "endpoint", document("endpoint", `"http://orgservice-new:65536"`)},
	{"endpoint with port 0", "endpoint", document("endpoint", `"http://orgservice-new:0"`)},
	{"endpoint with a port of letters", "endpoint", document("endpoint", `"http://orgservice-new:http"`)},
	{"endpoint with a space", "endpoint", document("endpoint", `"http://orgservice new"`)},
	{"endpoint with a line break", "endpoint", document("endpoint", `"http://orgservice-new\r\nX: y"`)},
	{"endpoint with a bad triplet", "endpoint", document("endpoint", `"http://orgservice-new/%zz"`)},
	{"endpoint with dot segments", "endpoint", document("endpoint", `"http://orgservice-new/a/../b"`)},
	{"endpoint of metadata", "endpoint", document("endpoint", `"http://169.254.169.254/latest"`)},
	{"endpoint of metadata in IPv6 clothes", "endpoint", document("endpoint", `"http://[::ffff:169.254.169.254]/"`)},
	{"endpoint link-local", "endpoint", document("endpoint", `"http://169.254.1.1:80"`)},
	{"endpoint link-local IPv6", "endpoint", document("endpoint", `"http://[fe80::1]:80"`)},
	{"endpoint with a zone", "endpoint", document("endpoint", `"http://[fe80::1%25eth0]:80"`)},
	{"endpoint of 2,049 bytes", "endpoint", document("endpoint", `"http://orgservice-new/`+strings.Repeat("x", 2049-len("http://orgservice-new/"))+`"`)},
	{"several mistakes name the first", "active", `{"serviceName":"bad-input","active":"X","endpoint":"ftp://x","weight":11}`},
	{"several mistakes name the last", "weight", `{"serviceName":"bad-input","active":"X","endpoint":"ftp://x","weight":11}`},
	{"trailing data", "", document("", "") + "{}"},
	{"trailing garbage", "", document("", "") + " x"},
	{"trailing comma", "", with(",")},
	{"null", "", "null"},
	{"a list", "", "[" + document("", "") + "]"},
	{"a string", "", `"Y"`},
	{"a number", "", "5"},
	{"nothing", "", ""},
	{"white space", "", " \n"},
	{"half", "", `{"serviceName":"bad-inp`},
	{"no JSON", "", "serviceName: bad-input"},
	{"single quotes", "", strings.ReplaceAll(document("", ""), `"`, "'")},
	{"a comment", "", document("", "") + "// fine"},
	{"invalid UTF-8", "", document("serviceName", "\"bad-input\xff\"")},
	{"half a surrogate", "", document("endpoint", `"http://a/\ud800"`)},
	{"a byte order mark", "", "\xef\xbb\xbf" + document("", "")},
	{"deep nesting", "", strings.Repeat(`{"a":`, 50_000) + "1" + strings.Repeat("}", 50_000)},
}

// stored is every record that specialroutes holds, as it tells its followers.
func stored(t *testing.T, r routes) string {
	t.Helper()
	return fmt.Sprint(table(t, r.url))
}

// specialOnly starts a specialroutes of the test's own, which nobody follows.
func specialOnly(t *testing.T) routes {
	t.Helper()
	_, base := startSpecialRoutes(t, filepath.Join(t.TempDir(), "special.db"), shared.ports.free(t))
	return routes{url: base}
}

// wantRefused checks a refusal: a 4xx problem that names the field, and a store
// that holds what it held before.
func wantRefused(t *testing.T, r routes, before string, got answer, field string) {
	t.Helper()
	if got.status < 400 || got.status > 499 {
		t.Errorf("status = %d, want 4xx: %.300s", got.status, got.body)
	}
	doc, err := parseProblem(got)
	if err != nil {
		t.Errorf("%v: %.300s", err, got.body)
	}
	if field != "" && !doc.names(field) {
		t.Errorf("the problem does not name %s: %.500s", field, got.body)
	}
	if after := stored(t, r); after != before {
		t.Errorf("something was stored:\nbefore %s\nafter  %s", before, after)
	}
}

func TestABadBodyIsRefusedByFieldAndStoresNothing(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	for _, existing := range []bool{false, true} {
		r.remove(t, "bad-input")
		if existing {
			r.put(t, book{"bad-input", "N", "http://kept.example:1", 3})
		}
		for _, test := range badBodies {
			t.Run(fmt.Sprintf("%s, record exists %v", test.name, existing), func(t *testing.T) {
				before, read := stored(t, r), string(r.read(t, "bad-input").body)
				got := call(t, "PUT", r.of("bad-input"), strings.NewReader(test.body), headers{{"Content-Type", jsonType}})
				wantRefused(t, r, before, got, test.field)
				if existing {
					if after := string(r.read(t, "bad-input").body); after != read {
						t.Errorf("GET before: %s, after: %s", read, after)
					}
				}
			})
		}
	}
}

func TestAServiceNameOutsideThePatternIsRefusedForEveryVerb(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	for _, name := range []string{
		"Organization", "organization_service", "-a", "a-", "a.b", "a b", "a%b", strings.Repeat("x", 64), "аpi", "ＡＰＩ", "api ",
		"*", "a/b", "..", "a;b", "'; drop table route; --", "a\x00b", "\xff", "ſ",
	} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			t.Run(method+" "+name, func(t *testing.T) {
				before := stored(t, r)
				body := ""
				if method == "PUT" {
					quoted, err := json.Marshal(name)
					if err != nil {
						t.Fatal(err)
					}
					body = document("serviceName", string(quoted))
				}
				target := r.url + "/v1/route/abtesting/" + url.PathEscape(name)
				got := call(t, method, target, strings.NewReader(body), headers{{"Content-Type", jsonType}})
				field := ""
				if method == "PUT" && !strings.ContainsAny(name, "/\x00") && name != ".." {
					field = "serviceName"
				}
				wantRefused(t, r, before, got, field)
			})
		}
	}
}

func TestABodyOverOneMiBIsA413(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	before := stored(t, r)
	for _, length := range []int64{0, -1} { // 0: as net/http finds it
		body := strings.Repeat(" ", mib) + document("", "")
		req, err := http.NewRequest("PUT", r.of("bad-input"), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if length != 0 {
			req.ContentLength = length
		}
		req.Header.Set("Content-Type", jsonType)
		got, err := send(req)
		if err != nil {
			t.Fatal(err)
		}
		wantProblem(t, got, 413)
		wantRefused(t, r, before, got, "")
	}
}

func TestAnotherContentTypeIsA415(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	for _, contentType := range []string{
		"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/xml", "application/jsonx", "json",
		"text/plain; application/json", "application/json-patch+json",
	} {
		t.Run(contentType, func(t *testing.T) {
			before := stored(t, r)
			var h headers
			if contentType != "" {
				h = headers{{"Content-Type", contentType}}
			}
			got := call(t, "PUT", r.of("bad-input"), strings.NewReader(document("", "")), h)
			wantProblem(t, got, 415)
			wantRefused(t, r, before, got, "")
		})
	}
	t.Run("with a charset it is the same type", func(t *testing.T) {
		got := call(t, "PUT", r.of("good-input"), strings.NewReader(document("serviceName", `"good-input"`)),
			headers{{"Content-Type", "application/json; charset=utf-8"}})
		if got.status != 201 && got.status != 200 {
			t.Errorf("status = %d: %s", got.status, got.body)
		}
	})
}

func TestAWrongVerbIsA405WithAllow(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	before := stored(t, r)
	for _, test := range []struct {
		path  string
		verbs []string
		allow []string
	}{
		{"/v1/route/abtesting/bad-input", []string{"POST", "PATCH", "PROPFIND", "TRACE"}, []string{"GET", "PUT", "DELETE"}},
		{"/v1/route/abtesting", []string{"POST", "PUT", "DELETE", "PATCH"}, []string{"GET"}},
		{"/v1/changes", []string{"POST", "PUT", "DELETE"}, []string{"GET"}},
	} {
		for _, verb := range test.verbs {
			t.Run(verb+" "+test.path, func(t *testing.T) {
				got := call(t, verb, r.url+test.path, nil, headers{{"Content-Type", jsonType}, {"X-HTTP-Method-Override", "DELETE"}})
				wantProblem(t, got, 405)
				allow := strings.Join(got.header.Values("Allow"), ",")
				for _, verb := range test.allow {
					if !strings.Contains(allow, verb) {
						t.Errorf("Allow = %q, want %v", allow, test.allow)
					}
				}
				wantRefused(t, r, before, got, "")
			})
		}
	}
}

func TestAPathThatIsNotThereIsA404WithoutARedirect(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	for _, path := range []string{
		"/", "/v1", "/v1/route", "/v1/route/abtesting/", "/v1/route/abtesting/bad-input/", "/V1/route/abtesting", "//evil.example/",
		"/v1//route/abtesting", "/debug/pprof/", "/debug/vars",
	} {
		t.Run(path, func(t *testing.T) {
			got := rawGet(t, strings.TrimPrefix(r.url, "http://"), path, "X-Forwarded-Prefix: //evil.example")
			wantProblem(t, got, 404)
			if v := got.header.Get("Location"); v != "" {
				t.Errorf("Location = %q", v)
			}
		})
	}
}

func TestWhatWasWrittenIsRead(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	r.remove(t, "round-trip")
	wantProblem(t, r.read(t, "round-trip"), 404)
	for i, b := range []book{
		{"round-trip", "Y", "http://orgservice-new:8087", 5},
		{"round-trip", "N", "https://orgservice-new", 0},
		{"round-trip", "Y", "http://[2001:db8::1]:8087/base/path", 10},
		{"round-trip", "Y", "HTTP://Orgservice-New:80/%2Fa", 1},
	} {
		got, err := r.try(b)
		if err != nil {
			t.Fatal(err)
		}
		want := 200
		if i == 0 {
			want = 201
		}
		if got.status != want {
			t.Errorf("PUT %+v: status = %d, want %d: %s", b, got.status, want, got.body)
			continue
		}
		if read := r.readBook(t, "round-trip"); read != b {
			t.Errorf("GET = %+v, want %+v", read, b)
		}
	}
	if got := call(t, "DELETE", r.of("round-trip"), nil, nil); got.status != 204 {
		t.Errorf("DELETE: status = %d, want 204", got.status)
	}
	wantProblem(t, r.read(t, "round-trip"), 404)
	wantProblem(t, call(t, "DELETE", r.of("round-trip"), nil, nil), 404)
}

func TestTheListIsPagedAndHoldsEveryRecordOnce(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	want := map[string]bool{}
	for i := range 45 {
		b := book{fmt.Sprintf("listed-%02d", i), "Y", "http://x:1", i % 11}
		r.write(t, b)
		want[b.ServiceName] = true
	}
	list := r.url + "/v1/route/abtesting?limit=10"
	next := list
	got := map[string]bool{}
	for pages := 0; next != ""; pages++ {
		if pages > 45 {
			t.Fatal("the pages have no end")
		}
		page := call(t, "GET", next, nil, nil)
		if page.status != 200 {
			t.Fatalf("GET %s: status %d: %s", next, page.status, page.body)
		}
		var doc struct {
			Records []book `json:"records"`
			Next    string `json:"next"`
		}
		if err := json.Unmarshal(page.body, &doc); err != nil {
			t.Fatal(err)
		}
		if len(doc.Records) > 10 {
			t.Errorf("a page has %d records, asked for 10", len(doc.Records))
		}
		for _, b := range doc.Records {
			if got[b.ServiceName] {
				t.Errorf("%s is listed twice", b.ServiceName)
			}
			got[b.ServiceName] = true
		}
		next = ""
		if doc.Next != "" {
			next = list + "&after=" + url.QueryEscape(doc.Next)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the pages hold %d records, want %d", len(got), len(want))
	}
}
