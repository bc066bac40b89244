package api

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"specialroutes.example/specialroutes/internal/store"
)

// badRequest is one request that must not be answered with success.
type badRequest struct {
	name     string
	method   string // "" is PUT
	path     string // "" is bookPath
	body     string
	headers  []string
	status   int
	code     string
	pointers []string // nil: not looked at
}

// with is the good body with one part replaced.
func with(part, by string) string {
	if !strings.Contains(half, part) {
		panic(part)
	}
	return strings.Replace(half, part, by, 1)
}

func badBodies() []badRequest {
	json := func(name, body string, pointers ...string) badRequest {
		return badRequest{name: name, body: body, status: http.StatusBadRequest, code: "bad_json", pointers: pointers}
	}
	meaning := func(name, body string, pointers ...string) badRequest {
		return badRequest{name: name, body: body, status: http.StatusUnprocessableEntity, code: "invalid_record", pointers: pointers}
	}
	return []badRequest{
		json("an unknown key", with(`"weight":5`, `"weight":5,"weigth":5`), "/weigth"),
		json("a duplicate key", with(`"weight":5`, `"weight":1,"weight":9`), "/weight"),
		json("a differently-cased key", with(`"weight"`, `"Weight"`), "/Weight"),
		json("a key twice, once differently cased", with(`"weight":5`, `"weight":1,"WEIGHT":9`), "/WEIGHT"),
		json("a key that folds to ours", with(`"serviceName"`, `"ſerviceName"`), "/ſerviceName"),
		json("a null weight", with(`"weight":5`, `"weight":null`), "/weight"),
		json("a null endpoint", with(`"http://orgservice-new:8087"`, `null`), "/endpoint"),
		json("a null body", `null`, ""),
		json("a string for weight", with(`:5`, `:"5"`), "/weight"),
		json("a fraction for weight", with(`:5`, `:5.5`), "/weight"),
		json("a whole fraction for weight", with(`:5`, `:5.0`), "/weight"),
		json("an exponent for weight", with(`:5`, `:5e0`), "/weight"),
		json("a weight above 64 bits", with(`:5`, `:9223372036854775808`), "/weight"),
		json("no number", with(`:5`, `:NaN`)),
		json("a boolean for active", with(`"Y"`, `true`), "/active"),
		json("an array", `[`+half+`]`, ""),
		json("a string", `"half"`, ""),
		json("half a document", half[:len(half)-1]),
		json("trailing data", half+` {}`),
		json("trailing rubbish", half+`x`),
		json("two documents", half+half),
		json("a comment", `/* x */`+half),
		json("bytes that are not UTF-8", with("orgservice", "\xff")),
		json("a byte order mark", "\ufeff"+half),
		json("deep nesting", strings.Repeat(`[`, 100_000)),
		meaning("a weight below 0", with(`:5`, `:-1`), "/weight"),
		meaning("a weight of 11", with(`:5`, `:11`), "/weight"),
		meaning("a weight beyond what floats hold", with(`:5`, `:9007199254740993`), "/weight"),
		meaning("no weight", with(`,"weight":5`, ``), "/weight"),
		meaning("no serviceName", with(`"serviceName":"organizationservice",`, ``), "/serviceName"),
		meaning("no active", with(`"active":"Y",`, ``), "/active"),
		meaning("no endpoint", with(`"endpoint":"http://orgservice-new:8087",`, ``), "/endpoint"),
		meaning("active in lower case", with(`"Y"`, `"y"`), "/active"),
		meaning("active as a word", with(`"Y"`, `"yes"`), "/active"),
		meaning("active blank", with(`"Y"`, `""`), "/active"),
		meaning("the name of another service", with(`organizationservice`, `licensingservice`), "/serviceName"),
		meaning("a name in capitals", with(`organizationservice`, `OrganizationService`), "/serviceName"),
		meaning("several mistakes", `{"serviceName":"x","active":"q","endpoint":"ftp://a","weight":99}`, "/active", "/endpoint", "/serviceName", "/weight"),
		meaning("nothing at all", `{}`, "/active", "/endpoint", "/serviceName", "/weight"),
	}
}

func badEndpoints() []badRequest {
	var list []badRequest
	for _, endpoint := range []string{
		"", "orgservice-new:8087", "//orgservice-new", "ftp://a", "file:///etc/passwd", "http://", "http:///x", "http://:80", "http://a:0x1",
		"http://a:65536", "http://u:p@a", "http://a?x=1", "http://a?", "http://a#x", "http://a#", "http://a b", "http://a/\\u0000",
		"http://169.254.169.254", "http://169.254.169.254:80/latest", "http://[fe80::1]", "javascript:alert(1)",
		"http://a/" + strings.Repeat("x", 2048),
	} {
		list = append(list, badRequest{
			name: "endpoint " + endpoint[:min(len(endpoint), 30)], body: with("http://orgservice-new:8087", endpoint),
			status: http.StatusUnprocessableEntity, code: "invalid_record", pointers: []string{"/endpoint"},
		})
	}
	return list
}

func badRequests() []badRequest {
	parameter := func(name, method, path string, pointers ...string) badRequest {
		return badRequest{name: name, method: method, path: path, body: map[string]string{"PUT": half}[method],
			status: http.StatusBadRequest, code: "bad_request", pointers: pointers}
	}
	header := func(name, value string) badRequest {
		return badRequest{name: name + " " + value, body: half, headers: []string{name, value}, status: http.StatusBadRequest, code: "bad_request", pointers: []string{name}}
	}
	media := func(pointer string, headers ...string) badRequest {
		return badRequest{name: strings.Join(headers, " "), body: half, headers: headers,
			status: http.StatusUnsupportedMediaType, code: "unsupported_media_type", pointers: []string{pointer}}
	}
	notFound := func(path string) badRequest {
		return badRequest{name: "path " + path, method: "GET", path: path, status: http.StatusNotFound, code: "not_found"}
	}
	list := []badRequest{
		{name: "a body over 1 MiB", body: `{"active":"` + strings.Repeat("Y", maxBody) + `"}`,
			status: http.StatusRequestEntityTooLarge, code: "body_too_large", pointers: []string{""}},
		media("Content-Type", "Content-Type", ""), media("Content-Type", "Content-Type", "text/plain"),
		media("Content-Type", "Content-Type", "application/x-www-form-urlencoded"),
		media("Content-Type", "Content-Type", "application/jsonx"), media("Content-Type", "Content-Type", "application/json;charset=utf-16"),
		media("Content-Type", "Content-Type", "application/json; charset"),
		media("Content-Encoding", "Content-Encoding", "gzip"),
		header("If-Match", "42.k3f9"), header("If-None-Match", `"open`),
		parameter("an unknown parameter", "PUT", bookPath+"?dryrun=true", "dryrun"),
		parameter("an unknown parameter of a GET", "GET", bookPath+"?x=/healthz", "x"),
		parameter("a parameter twice", "PUT", bookPath+"?why=a&why=b", "why"),
		parameter("two mistakes", "PUT", bookPath+"?why=a&why=b&x=1", "why", "x"),
		parameter("a control character", "PUT", bookPath+"?why=%00", "why"),
		parameter("a reason too long", "DELETE", bookPath+"?why="+strings.Repeat("x", 501), "why"),
		parameter("a bad triplet", "PUT", bookPath+"?why=%zz", ""),
		parameter("a semicolon", "GET", bookPath+"?a;b", ""),
	}
	for _, name := range []string{"A", "ORGANIZATIONSERVICE", "a_b", "-a", "a-", "a.b", "api%20", "%D0%B0pi", "a%2Fb", "a%2fhistory", "a%00", "*", "%2A", "..%2F", strings.Repeat("a", 64)} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			list = append(list, parameter(method+" of the name "+name[:min(len(name), 20)], method, "/v1/route/abtesting/"+name, "serviceName"))
		}
	}
	for _, limit := range []string{"0", "-1", "1001", "x", "", "1.0", "+1", "1e1", "01"} {
		list = append(list, parameter("limit "+limit, "GET", "/v1/route/abtesting?limit="+limit, "limit"))
	}
	for _, after := range []string{"%00", "%FF", "%0A", strings.Repeat("a", 256)} {
		list = append(list, parameter("after "+after[:3], "GET", "/v1/route/abtesting?after="+after, "after"))
	}
	for _, query := range []string{"after=x", "after=%00", "after=a/b&after=a/c", "service=A", "limit=0", "x=1"} {
		name, _, _ := strings.Cut(query, "=")
		list = append(list, parameter("instances "+query, "GET", "/v1/instances?"+query, name))
	}
	for _, query := range []string{"after=%0A", "after=" + strings.Repeat("1", 129), "after=a+b", "after=1.a-2&after=1.a-2", "wait=1s&wait=2s", "gateway=a&gateway=b", "version=1&version=2", "setAside=a&setAside=b", "leaving=true&leaving=true", "wait=55", "wait=-1s", "wait=61s", "wait=1m", "wait=", "wait=99999s", "gateway=", "gateway=a/b", "gateway=" + strings.Repeat("a", 65), "gateway=a%0A"} {
		name, _, _ := strings.Cut(query, "=")
		list = append(list, parameter("changes "+query[:min(len(query), 20)], "GET", "/v1/changes?"+query, name))
	}
	for _, path := range []string{"/", "/v1", "/v1/route/abtesting/", bookPath + "/", "/v1/route/abtesting/a/b", "//v1/route/abtesting", "/V1/route/abtesting", "/v1/rout%65/abtesting",
		"/v1/./route/abtesting", "/debug/pprof/", "/debug/vars", "/%0d%0aFAKE%20LINE", "/" + strings.Repeat("a", 60_000)} {
		list = append(list, notFound(path))
	}
	for _, method := range []string{"POST", "PATCH", "OPTIONS", "TRACE", "HEAD", "PROPFIND"} {
		list = append(list, badRequest{name: method, method: method, status: http.StatusMethodNotAllowed, code: "method_not_allowed"})
	}
	return list
}

func TestBadInputIsRefusedByNameAndStoresNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		srv.expect(http.StatusCreated, "PUT", bookPath, half)
		head, err := s.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range slices.Concat(badBodies(), badEndpoints(), badRequests()) {
			t.Run(bad.name, func(t *testing.T) { checkRefused(t, srv, bad) })
		}
		if now, err := s.Head(t.Context()); err != nil || now != head {
			t.Errorf("Head() = %v, %v, want %v: something was stored", now, err, head)
		}
		if a := srv.expect(http.StatusOK, "GET", bookPath, ""); !sameJSON(t, a.body, half) {
			t.Errorf("GET = %s", a.body)
		}
	})
}

func checkRefused(t *testing.T, srv *server, bad badRequest) {
	t.Helper()
	method, path := bad.method, bad.path
	if method == "" {
		method = "PUT"
	}
	if path == "" {
		path = bookPath
	}
	a := srv.of(t).do(method, path, bad.body, bad.headers...)
	if a.status != bad.status {
		t.Fatalf("%d %s, want %d", a.status, a.body, bad.status)
	}
	if method == "HEAD" { // a problem without its body
		return
	}
	p := a.problem(t)
	if p.Code != bad.code {
		t.Errorf("code %s, want %s", p.Code, bad.code)
	}
	got := p.pointers()
	slices.Sort(got)
	if bad.pointers != nil && !slices.Equal(got, bad.pointers) {
		t.Errorf("errors %+v, want the pointers %q", p.Errors, bad.pointers)
	}
	if allow := a.header.Get("Allow"); bad.status == http.StatusMethodNotAllowed && (allow == "" || path == bookPath && allow != "GET, PUT, DELETE" && allow != "DELETE, GET, PUT") {
		t.Errorf("Allow %q, want GET, PUT and DELETE", allow)
	}
}

func TestAMethodCannotBeOverridden(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		srv.expect(http.StatusCreated, "PUT", bookPath, half)
		for _, header := range []string{"X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method"} {
			srv.expect(http.StatusMethodNotAllowed, "POST", bookPath+"?_method=DELETE", "{}", header, "DELETE")
		}
		srv.expect(http.StatusOK, "GET", bookPath, "")
	})
}

func TestABodyThatIsCutShortIsNotTaken(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s)
		reader, writer := io.Pipe()
		req, err := http.NewRequestWithContext(t.Context(), "PUT", srv.url+bookPath, reader)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		go func() {
			_, _ = io.WriteString(writer, half[:20])
			_ = writer.CloseWithError(io.ErrUnexpectedEOF)
		}()
		if res, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(req); err == nil {
			_ = res.Body.Close()
			t.Errorf("the answer is %s", res.Status)
		}
		srv.expect(http.StatusNotFound, "GET", bookPath, "")
	})
}
