package organization_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"specialroutes.example/services/organization"
)

const (
	crm     = "/v1/organizations/e254f8c-c442-4ebe-a82a-e2fc1d1ff78a"
	unknown = "/v1/organizations/nobody"
)

func newAPI() http.Handler { return organization.NewHandler("NEW::", organization.Seed()) }

// send sends one request with a JSON body, or none if it is empty.
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

// refusal is what the tests read of a problem document.
type refusal struct {
	Status        int
	Code          string
	CorrelationID string `json:"correlationId"`
	Errors        []struct{ Pointer, Detail string }
}

func readRefusal(t *testing.T, rec *httptest.ResponseRecorder) refusal {
	t.Helper()
	if got := rec.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type = %q, want application/problem+json", got)
	}
	var r refusal
	if err := json.Unmarshal(rec.Body.Bytes(), &r); err != nil {
		t.Fatalf("%v in %s", err, rec.Body)
	}
	if r.Status != rec.Code || r.CorrelationID != "c-1" {
		t.Errorf("problem = %+v of an answer %d, want its status and the correlation ID", r, rec.Code)
	}
	return r
}

func TestGet_AnswersTheSeedToTheLetter(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		crm: `{"id":"e254f8c-c442-4ebe-a82a-e2fc1d1ff78a","name":"customer-crm-co","contactName":"NEW::Mark Balster",` +
			`"contactEmail":"mark.balster@custcrmco.com","contactPhone":"823-555-1212"}`,
		"/v1/organizations/442adb6e-fa58-47f3-9ca2-ed1fecdfe86c": `{"id":"442adb6e-fa58-47f3-9ca2-ed1fecdfe86c","name":"HR-PowerSuite",` +
			`"contactName":"NEW::Doug Drewry","contactEmail":"doug.drewry@hr.com","contactPhone":"920-555-1212"}`,
	} {
		rec := send(newAPI(), http.MethodGet, path, "")
		if rec.Code != http.StatusOK || strings.TrimSpace(rec.Body.String()) != want {
			t.Errorf("GET %s = %d %s, want 200 %s", path, rec.Code, rec.Body, want)
		}
		if got := rec.Header().Get("Content-Type"); got != "application/json" {
			t.Errorf("Content-Type = %q, want application/json", got)
		}
	}
}

func TestWrites(t *testing.T) {
	t.Parallel()
	const acme = `{"name":"acme <&>","contactName":"Ann","contactEmail":"ann@acme.example","contactPhone":"1"}`
	api := newAPI()
	steps := []struct {
		method, path, body string
		status             int
		contains           string
	}{
		{"PUT", unknown, acme, 201, `"id":"nobody","name":"acme <&>","contactName":"Ann"`},
		{"GET", unknown, "", 200, `"contactName":"NEW::Ann"`},
		{"PUT", unknown, strings.Replace(acme, "Ann", "Bob", 1), 200, `"contactName":"Bob"`},
		{"GET", unknown, "", 200, `"contactName":"NEW::Bob"`},
		{"POST", unknown, acme, 409, `"organization_exists"`},
		{"GET", unknown, "", 200, `"contactName":"NEW::Bob"`},
		{"DELETE", unknown, "", 204, ""},
		{"DELETE", unknown, "", 404, `"organization_not_found"`},
		{"GET", unknown, "", 404, `"organization_not_found"`},
		{"POST", unknown, strings.Replace(acme, "{", `{"id":"nobody",`, 1), 201, `"contactName":"Ann"`},
		{"GET", crm, "", 200, `"contactName":"NEW::Mark Balster"`}, // the others are untouched
	}
	for i, s := range steps {
		rec := send(api, s.method, s.path, s.body)
		if rec.Code != s.status || !strings.Contains(rec.Body.String(), s.contains) {
			t.Errorf("step %d, %s = %d %s, want %d with %s", i, s.method, rec.Code, rec.Body, s.status, s.contains)
		}
	}
}

func TestPost_SaysWhereTheOrganizationIs(t *testing.T) {
	t.Parallel()
	rec := send(newAPI(), http.MethodPost, "/v1/organizations/a%2Fb%20c", `{"name":"x"}`)
	if got := rec.Header().Get("Location"); rec.Code != 201 || got != "/v1/organizations/a%2Fb%20c" {
		t.Errorf("POST = %d, Location %q, want 201 and the path", rec.Code, got)
	}
}

func TestBadInput_IsRefusedByField(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body string
		status     int
		code       string
		pointers   []string
	}{
		{"unknown member", `{"name":"x","size":1}`, 400, "invalid_json", []string{"/size"}},
		{"member in another case", `{"Name":"x"}`, 400, "invalid_json", []string{"/Name"}},
		{"duplicate member", `{"name":"x","name":"y"}`, 400, "invalid_json", []string{"/name"}},
		{"null", `{"name":"x","contactName":null}`, 400, "invalid_json", []string{"/contactName"}},
		{"number for a string", `{"name":7}`, 400, "invalid_json", []string{"/name"}},
		{"trailing data", `{"name":"x"} {}`, 400, "invalid_json", []string{""}},
		{"no JSON", `name=x`, 400, "invalid_json", []string{""}},
		{"name missing, ID of another", `{"id":"other"}`, 422, "invalid_document", []string{"/id", "/name"}},
		{"body too large", `{"name":"` + strings.Repeat("x", 64<<10) + `"}`, 413, "body_too_large", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, method := range []string{http.MethodPut, http.MethodPost} {
				api := newAPI()
				r := readRefusal(t, send(api, method, unknown, tt.body))
				var pointers []string
				for _, e := range r.Errors {
					pointers = append(pointers, e.Pointer)
				}
				if r.Status != tt.status || r.Code != tt.code || !slices.Equal(pointers, tt.pointers) {
					t.Errorf("%s = %+v, want %d %s at %q", method, r, tt.status, tt.code, tt.pointers)
				}
				if rec := send(api, http.MethodGet, unknown, ""); rec.Code != 404 {
					t.Errorf("%s stored something: %s", method, rec.Body)
				}
			}
		})
	}
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	form := httptest.NewRequest(http.MethodPut, crm, strings.NewReader(`{"name":"x"}`))
	form.Header.Set("Content-Type", "text/plain")
	form.Header.Set("tmx-correlation-id", "c-1")
	rec := httptest.NewRecorder()
	newAPI().ServeHTTP(rec, form)
	if r := readRefusal(t, rec); r.Status != 415 {
		t.Errorf("a body of text = %d, want 415", r.Status)
	}
	rec = send(newAPI(), http.MethodPatch, crm, `{}`)
	if r := readRefusal(t, rec); r.Status != 405 || rec.Header().Get("Allow") != "DELETE, GET, HEAD, OPTIONS, POST, PUT" {
		t.Errorf("PATCH = %d, Allow %q", r.Status, rec.Header().Get("Allow"))
	}
	for path, status := range map[string]int{
		"/v1/organizations": 404, "/v1/organizations/": 404, "/": 404, crm + "/x": 404,
		"/v1/organizations/" + strings.Repeat("x", 129): 400,
	} {
		if r := readRefusal(t, send(newAPI(), http.MethodGet, path, "")); r.Status != status {
			t.Errorf("GET %.40s = %d, want %d", path, r.Status, status)
		}
	}
	if rec := send(newAPI(), http.MethodOptions, crm, ""); rec.Code != 204 || rec.Header().Get("Allow") == "" {
		t.Errorf("OPTIONS = %d, Allow %q", rec.Code, rec.Header().Get("Allow"))
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	api := newAPI()
	var created sync.Map
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for range 50 {
				if send(api, http.MethodPost, unknown, fmt.Sprintf(`{"name":"%d"}`, i)).Code == 201 {
					created.Store(i, true)
				}
				if rec := send(api, http.MethodGet, unknown, ""); rec.Code != 200 {
					t.Errorf("GET after POST = %d", rec.Code)
				}
				send(api, http.MethodPut, crm, `{"name":"x"}`)
			}
		})
	}
	group.Wait()
	n := 0
	created.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d callers created one organization, want 1", n)
	}
}
