package licensing_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"specialroutes.example/services/lane"
	"specialroutes.example/services/licensing"
	"specialroutes.example/services/organization"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	crm     = "/v1/organizations/e254f8c-c442-4ebe-a82a-e2fc1d1ff78a/licenses"
	hr      = "/v1/organizations/442adb6e-fa58-47f3-9ca2-ed1fecdfe86c/licenses"
	license = crm + "/f3831f8c-c338-4ebe-a82a-e2fc1d1ff78a"
)

// newAPI returns the licensing API in front of the given organization service, at
// /api/organization as the gateway has it.
func newAPI(t *testing.T, organizations http.Handler, timeout time.Duration) http.Handler {
	t.Helper()
	gateway := httptest.NewServer(http.StripPrefix("/api/organization", organizations))
	t.Cleanup(gateway.Close)
	client, err := licensing.NewClient(gateway.URL+"/api/organization", timeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return lane.Middleware(lane.Options{Headers: []string{"zone"}})(licensing.NewHandler(client, licensing.Seed()))
}

func seeded() http.Handler { return organization.NewHandler("OLD::", organization.Seed()) }

func send(h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("tmx-correlation-id", "c-1")
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return rec
}

// refused checks a problem document and returns the pointers of its errors.
func refused(t *testing.T, rec *httptest.ResponseRecorder, status int, code string) []string {
	t.Helper()
	var p struct {
		Code, CorrelationID string
		Errors              []struct{ Pointer string }
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil {
		t.Fatalf("%v in %s", err, rec.Body)
	}
	if rec.Code != status || p.Code != code || p.CorrelationID != "c-1" || rec.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("answer = %d %s, want %d %s as a problem document", rec.Code, rec.Body, status, code)
	}
	var pointers []string
	for _, e := range p.Errors {
		pointers = append(pointers, e.Pointer)
	}
	return pointers
}

func TestGet_TellsOfTheOrganization(t *testing.T) {
	t.Parallel()
	rec := send(newAPI(t, seeded(), time.Minute), http.MethodGet, license, "")
	want := `{"licenseId":"f3831f8c-c338-4ebe-a82a-e2fc1d1ff78a","organizationId":"e254f8c-c442-4ebe-a82a-e2fc1d1ff78a",` +
		`"organizationName":"customer-crm-co","contactName":"OLD::Mark Balster","contactPhone":"823-555-1212",` +
		`"contactEmail":"mark.balster@custcrmco.com","productName":"CustomerPro","licenseType":"user","licenseMax":100,` +
		`"licenseAllocated":5,"comment":""}`
	if got := strings.TrimSpace(rec.Body.String()); rec.Code != 200 || got != want {
		t.Errorf("GET = %d %s, want 200 %s", rec.Code, got, want)
	}
}

func TestList_HasTheSeedsRows(t *testing.T) {
	t.Parallel()
	api := newAPI(t, seeded(), time.Minute)
	for path, want := range map[string][]licensing.License{
		crm: {
			{LicenseID: "f3831f8c-c338-4ebe-a82a-e2fc1d1ff78a", LicenseType: "user", ProductName: "CustomerPro", LicenseMax: 100, LicenseAllocated: 5},
			{LicenseID: "t9876f8c-c338-4abc-zf6a-ttt1", LicenseType: "user", ProductName: "suitability-plus", LicenseMax: 200, LicenseAllocated: 189},
		},
		hr: {
			{LicenseID: "08dbe05-606e-4dad-9d33-90ef10e334f9", LicenseType: "core-prod", ProductName: "WildCat Application Gateway", LicenseMax: 16, LicenseAllocated: 16},
			{LicenseID: "38777179-7094-4200-9d61-edb101c6ea84", LicenseType: "user", ProductName: "HR-PowerSuite", LicenseMax: 100, LicenseAllocated: 4},
		},
	} {
		var got []licensing.License
		rec := send(api, http.MethodGet, path, "")
		if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || len(got) != len(want) {
			t.Fatalf("GET %s = %d %s", path, rec.Code, rec.Body)
		}
		for i, l := range got {
			if !strings.HasPrefix(l.ContactName, "OLD::") || l.OrganizationName == "" || !strings.Contains(path, l.OrganizationID) {
				t.Errorf("license %d lacks its organization: %+v", i, l)
			}
			l.OrganizationID, l.OrganizationName, l.ContactName, l.ContactPhone, l.ContactEmail = "", "", "", "", ""
			if l != want[i] {
				t.Errorf("license %d = %+v, want %+v", i, l, want[i])
			}
		}
	}
}

func TestGet_TakesTheLaneAlong(t *testing.T) {
	t.Parallel()
	arrived := make(chan http.Header, 1)
	spy := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		arrived <- req.Header.Clone()
		seeded().ServeHTTP(w, req)
	})
	api := newAPI(t, spy, time.Minute)
	req := httptest.NewRequest(http.MethodGet, license, nil)
	sent := map[string]string{
		"tmx-correlation-id": "c-1", "tmx-auth-token": "token", "Authorization": "Bearer x",
		"tmx-user-id": "u-17", "tmx-org-id": "o-1", "zone": "blue",
	}
	for name, value := range sent {
		req.Header.Set(name, value)
	}
	req.Header.Set("Cookie", "secret=1")
	api.ServeHTTP(httptest.NewRecorder(), req)
	got := <-arrived
	for name, want := range sent {
		if got.Get(name) != want {
			t.Errorf("%s arrived as %q, want %q", name, got.Get(name), want)
		}
	}
	if got.Get("Cookie") != "" {
		t.Error("the cookie was passed on")
	}
}

func TestGet_SaysWhenTheOrganizationCannotBeHad(t *testing.T) {
	t.Parallel()
	status := func(code int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
	}
	elsewhere := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/elsewhere" {
			_, _ = io.WriteString(w, `{"name":"somebody else's"}`)
			return
		}
		http.Redirect(w, req, "/api/organization/elsewhere", http.StatusFound)
	})
	tests := []struct {
		name          string
		organizations http.Handler
		timeout       time.Duration
		status        int
		code          string
	}{
		{"there is none", organization.NewHandler("OLD::", nil), time.Minute, 404, "organization_not_found"},
		{"the gateway has no such route", http.NotFoundHandler(), time.Minute, 502, "organization_unavailable"},
		{"no instance", status(503), time.Minute, 502, "organization_unavailable"},
		{"redirect", elsewhere, time.Minute, 502, "organization_unavailable"},
		{"the gateway's time is over", status(504), time.Minute, 504, "organization_timeout"},
		{"no JSON", status(200), time.Minute, 502, "organization_unavailable"},
		{"no answer", http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }), 50 * time.Millisecond, 504, "organization_timeout"},
		{"connection closed", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), time.Minute, 502, "organization_unavailable"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			api := newAPI(t, tt.organizations, tt.timeout)
			for _, path := range []string{license, crm} {
				refused(t, send(api, http.MethodGet, path, ""), tt.status, tt.code)
			}
		})
	}
}

func TestWrites(t *testing.T) {
	t.Parallel()
	const one = `{"productName":"p","licenseType":"user","licenseMax":3,"licenseAllocated":3,"comment":"c","contactName":"ignored"}`
	api := newAPI(t, seeded(), time.Minute)
	path := crm + "/l-1"
	steps := []struct {
		method, path, body string
		status             int
		contains           string
	}{
		{"GET", path, "", 404, "license_not_found"},
		{"PUT", path, one, 201, `"licenseId":"l-1","organizationId":"e254f8c-c442-4ebe-a82a-e2fc1d1ff78a","productName":"p"`},
		{"PUT", path, strings.Replace(one, `"c"`, `"d"`, 1), 200, `"comment":"d"`},
		{"GET", path, "", 200, `"contactName":"OLD::Mark Balster"`},
		{"GET", hr + "/l-1", "", 404, "license_not_found"}, // an ID means something within its organization only
		{"POST", path, one, 409, "license_exists"},
		{"POST", crm, strings.Replace(one, "{", `{"licenseId":"l-1",`, 1), 409, "license_exists"},
		{"POST", crm, strings.Replace(one, "{", `{"licenseId":"l-2",`, 1), 201, `"licenseId":"l-2"`},
		{"GET", crm + "/l-2", "", 200, `"comment":"c"`},
		{"DELETE", path, "", 204, ""},
		{"DELETE", path, "", 404, "license_not_found"},
		{"POST", path, one, 201, `"comment":"c"`},
	}
	for i, s := range steps {
		rec := send(api, s.method, s.path, s.body)
		if rec.Code != s.status || !strings.Contains(rec.Body.String(), s.contains) {
			t.Errorf("step %d, %s = %d %s, want %d with %s", i, s.method, rec.Code, rec.Body, s.status, s.contains)
		}
	}
}

func TestBadInput_IsRefusedByField(t *testing.T) {
	t.Parallel()
	api := newAPI(t, seeded(), time.Minute)
	for _, tt := range []struct {
		name, path, body string
		status           int
		code             string
		pointers         []string
	}{
		{"all of meaning at once", crm + "/a", `{"licenseId":"b","organizationId":"c","licenseMax":-1,"licenseAllocated":-1}`, 422, "invalid_document",
			[]string{"/licenseId", "/organizationId", "/productName", "/licenseType", "/licenseMax", "/licenseAllocated"}},
		{"more allocated than there are", crm + "/a", `{"productName":"p","licenseType":"user","licenseMax":1,"licenseAllocated":2}`, 422, "invalid_document",
			[]string{"/licenseAllocated"}},
		{"no ID in the collection", crm, `{"productName":"p","licenseType":"user"}`, 422, "invalid_document", []string{"/licenseId"}},
		{"a fraction", crm + "/a", `{"licenseMax":1.5}`, 400, "invalid_json", []string{"/licenseMax"}},
		{"unknown member", crm + "/a", `{"price":1}`, 400, "invalid_json", []string{"/price"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := refused(t, send(api, http.MethodPost, tt.path, tt.body), tt.status, tt.code); !slices.Equal(got, tt.pointers) {
				t.Errorf("pointers = %q, want %q", got, tt.pointers)
			}
		})
	}
	rec := send(api, http.MethodPut, crm, `{}`)
	refused(t, rec, 405, "method_not_allowed")
	if got := rec.Header().Get("Allow"); got != "GET, HEAD, OPTIONS, POST" {
		t.Errorf("Allow = %q", got)
	}
}

func TestNewClient_RefusesABadBaseURL(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "localhost:5555", "ftp://x/y", "http://", "/api/organization", "http://%zz"} {
		if _, err := licensing.NewClient(base, time.Second); err == nil {
			t.Errorf("NewClient(%q) = nil, want an error", base)
		}
	}
}

func TestOrganization_EscapesTheID(t *testing.T) {
	t.Parallel()
	paths := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		paths <- req.URL.EscapedPath()
		_, _ = io.WriteString(w, `{"id":"x","added":"later"}`)
	}))
	defer server.Close()
	client, err := licensing.NewClient(server.URL+"/base/", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Organization(t.Context(), "../a b?c"); err != nil {
		t.Errorf("Organization = %v, want nil: an answer may have further members", err)
	}
	if got := <-paths; got != "/base/v1/organizations/..%2Fa%20b%3Fc" {
		t.Errorf("asked for %s", got)
	}
}
