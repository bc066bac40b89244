package api

import (
	"net/http"
	"path"
	"strings"
	"testing"

	"specialroutes.example/specialroutes/internal/store"
	"specialroutes.example/specialroutes/internal/tokens"
)

const (
	readSecret  = "rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr"
	writeSecret = "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww"
	allSecret   = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

// withTokens configures a reader and a writer of some services, and one of all.
func withTokens(o *Options) {
	set, err := tokens.Parse([]byte("reader " + readSecret + " read organization\n" +
		"writer " + writeSecret + " write organization\n" + "admin " + allSecret + " write *\n"))
	if err != nil {
		panic(err)
	}
	o.InsecureAdmin = false
	o.Tokens = func() *tokens.Set { return set }
}

func TestWithoutTokensReadsAreOpenAndWritesClosed(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s, func(o *Options) { o.InsecureAdmin = false })
		for _, method := range []string{"PUT", "DELETE"} {
			body := map[string]string{"PUT": half}[method]
			if p := srv.expect(http.StatusForbidden, method, bookPath, body, "Authorization", "Bearer "+allSecret, "X-Real-IP", "127.0.0.1").problem(t); p.Code != "writes_closed" {
				t.Errorf("%s: code %s", method, p.Code)
			}
		}
		srv.expect(http.StatusNotFound, "GET", bookPath, "")
		srv.expect(http.StatusOK, "GET", "/v1/changes", "")
		srv.expect(http.StatusOK, "GET", "/openapi.yaml", "")
	})
}

func TestTokensDecideWhoMayDoWhat(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		srv := start(t, s, withTokens)
		const (
			list    = "/v1/route/abtesting"
			license = "/v1/route/abtesting/licensingservice"
			changes = "/v1/changes"
		)
		tests := []struct {
			method, path, secret string
			status               int
			code                 string
		}{
			{"GET", bookPath, "", http.StatusUnauthorized, "unauthorized"},
			{"PUT", bookPath, "", http.StatusUnauthorized, "unauthorized"},
			{"DELETE", bookPath, "", http.StatusUnauthorized, "unauthorized"},
			{"GET", list, "", http.StatusUnauthorized, "unauthorized"},
			{"GET", changes, "", http.StatusUnauthorized, "unauthorized"},
			{"GET", "/openapi.yaml", "", http.StatusUnauthorized, "unauthorized"},
			{"GET", bookPath + "?x=/healthz", "", http.StatusUnauthorized, "unauthorized"},
			{"GET", "/healthz", "", http.StatusOK, ""},
			{"GET", "/readyz", "", http.StatusOK, ""},
			{"GET", "/metrics", "", http.StatusOK, ""},
			{"GET", bookPath, readSecret[1:], http.StatusUnauthorized, "unauthorized"},
			{"GET", bookPath, readSecret + "r", http.StatusUnauthorized, "unauthorized"},
			{"GET", bookPath, strings.ToUpper(readSecret), http.StatusUnauthorized, "unauthorized"},
			{"GET", bookPath, readSecret, http.StatusNotFound, "no_record"},
			{"GET", license, readSecret, http.StatusForbidden, "forbidden"},
			{"PUT", bookPath, readSecret, http.StatusForbidden, "forbidden"},
			{"GET", list, readSecret, http.StatusOK, ""},
			{"GET", changes, readSecret, http.StatusForbidden, "forbidden"},
			{"PUT", bookPath, writeSecret, http.StatusCreated, ""},
			{"GET", bookPath, writeSecret, http.StatusOK, ""},
			{"PUT", license, writeSecret, http.StatusForbidden, "forbidden"},
			{"DELETE", license, writeSecret, http.StatusForbidden, "forbidden"},
			{"DELETE", bookPath, readSecret, http.StatusForbidden, "forbidden"},
			{"PUT", license, allSecret, http.StatusCreated, ""},
			{"GET", changes, allSecret, http.StatusOK, ""},
		}
		for _, test := range tests {
			body, headers := "", []string{}
			if test.method == "PUT" {
				body = `{"serviceName":"` + path.Base(test.path) + `","active":"Y","endpoint":"http://a","weight":5}`
			}
			if test.secret != "" {
				headers = []string{"Authorization", "Bearer " + test.secret}
			}
			a := srv.do(test.method, test.path, body, headers...)
			if a.status != test.status {
				t.Errorf("%s %s as %.1q = %d %s, want %d", test.method, test.path, test.secret, a.status, a.body, test.status)
				continue
			}
			if test.code != "" && a.problem(t).Code != test.code {
				t.Errorf("%s %s as %.1q = %s, want %s", test.method, test.path, test.secret, a.body, test.code)
			}
			if asks := a.header.Get("WWW-Authenticate"); (asks != "") != (test.status == http.StatusUnauthorized) {
				t.Errorf("%s %s = %d with WWW-Authenticate %q", test.method, test.path, a.status, asks)
			}
		}
		if a := srv.expect(http.StatusOK, "GET", list, "", "Authorization", "bearer "+readSecret); strings.Contains(a.body, "licensing") {
			t.Errorf("the list of a token for organization = %s", a.body)
		}
		if entries, err := s.History(t.Context(), "licensingservice", 0, 0); err != nil || len(entries) != 1 || entries[0].Author.Who != "admin" {
			t.Errorf("History = %+v, %v, want one change by admin", entries, err)
		}
		for _, secret := range []string{readSecret, writeSecret, allSecret} {
			if strings.Contains(srv.logs.String(), secret[:16]) {
				t.Error("a secret stands in the log")
			}
		}
	})
}

func TestAllThatIsNoBearerTokenIsRefusedAlike(t *testing.T) {
	t.Parallel()
	srv := start(t, openSQLite(t), withTokens)
	want := ""
	for _, headers := range [][]string{
		{}, {"Authorization", ""}, {"Authorization", readSecret}, {"Authorization", "Basic " + readSecret}, {"Authorization", "Bearer"},
		{"Authorization", "Bearer  " + readSecret}, {"Authorization", "Bearer " + readSecret + ","}, {"Cookie", "token=" + readSecret},
		{"X-Real-IP", "127.0.0.1", "X-Forwarded-For", "127.0.0.1"}, {"User-Agent", "kube-probe/1.30"},
	} {
		a := srv.expect(http.StatusUnauthorized, "GET", bookPath, "", append(headers, "tmx-correlation-id", "same")...)
		if want == "" {
			want = a.body
		}
		if a.body != want {
			t.Errorf("with %q the answer is %s, without anything %s", headers, a.body, want)
		}
	}
}

func TestTwoAuthorizationHeadersAreNone(t *testing.T) {
	t.Parallel()
	srv := start(t, openSQLite(t), withTokens)
	req, err := http.NewRequestWithContext(t.Context(), "GET", srv.url+bookPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header["Authorization"] = []string{"Bearer " + readSecret, "Bearer " + allSecret}
	res, err := srv.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("status %d, want 401", res.StatusCode)
	}
}

func TestHostsThatAreAnswered(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		hosts   []string
		tokens  bool
		answers []string
		refuses []string
	}{
		{
			name:    "by default, addresses and names of the local network",
			answers: []string{"127.0.0.1", "127.0.0.1:8910", "[::1]:8910", "::1", "localhost", "LOCALHOST:1", "specialroutes:8910", "10.1.2.3"},
			refuses: []string{"rebind.example", "rebind.example:8910", "127.0.0.1.rebind.example", "specialroutes.ns.svc", "a.b.", "127.1.1"},
		},
		{
			name: "with tokens, any", tokens: true,
			answers: []string{"rebind.example", "specialroutes.ns.svc:8910", "127.0.0.1"},
		},
		{
			name: "those of the setting only", tokens: true, hosts: []string{"routes.example.com", "::1"},
			answers: []string{"routes.example.com", "Routes.Example.Com:443", "routes.example.com.", "[::1]:1"},
			refuses: []string{"rebind.example", "localhost", "127.0.0.1", "x.routes.example.com", ""},
		},
		{
			name: "any by the setting", hosts: []string{"*"},
			answers: []string{"rebind.example", ""},
		},
	}
	for _, test := range tests {
		p := newHostPolicy(test.hosts, test.tokens)
		for _, host := range test.answers {
			if !p.answers(host) {
				t.Errorf("%s: %q is refused", test.name, host)
			}
		}
		for _, host := range test.refuses {
			if p.answers(host) {
				t.Errorf("%s: %q is answered", test.name, host)
			}
		}
	}
}

func TestABrowserIsNotLedToWrite(t *testing.T) {
	t.Parallel()
	srv := start(t, openSQLite(t))
	tests := []struct {
		name    string
		headers []string
		status  int
		code    string
	}{
		{"a name that was pointed here", []string{"Host", "rebind.example"}, http.StatusForbidden, "host_not_allowed"},
		{"a page of another site", []string{"Origin", "https://evil.example"}, http.StatusForbidden, "cross_origin"},
		{"a browser that says so", []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden, "cross_origin"},
		{"a form", []string{"Content-Type", "text/plain"}, http.StatusUnsupportedMediaType, "unsupported_media_type"},
		{"no browser", nil, http.StatusCreated, ""},
	}
	for _, test := range tests {
		a := srv.do("PUT", bookPath, half, test.headers...)
		if a.status != test.status || test.code != "" && a.problem(t).Code != test.code {
			t.Errorf("%s: %d %s, want %d %s", test.name, a.status, a.body, test.status, test.code)
		}
		if h := a.header.Get("Access-Control-Allow-Origin"); h != "" {
			t.Errorf("%s: Access-Control-Allow-Origin %q", test.name, h)
		}
	}
}
