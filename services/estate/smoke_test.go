package estate_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"specialroutes.example/services/estate"
)

// The book's call, below the gateway.
const bookPath = "/api/licensing/v1/organizations/e254f8c-c442-4ebe-a82a-e2fc1d1ff78a/licenses/f3831f8c-c338-4ebe-a82a-e2fc1d1ff78a"

// TestEstate_SplitsTheBooksCall builds the real programs and makes the book's call
// while its record is absent, leads all calls to the new service, and leads none.
func TestEstate_SplitsTheBooksCall(t *testing.T) {
	t.Parallel()
	bin, err := estate.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	e := start(t, estate.Options{Bin: bin})
	for _, step := range []struct{ body, want string }{
		{"", "OLD::Mark Balster"},
		{bookRecord(e, 0), "NEW::Mark Balster"},
		{bookRecord(e, 10), "OLD::Mark Balster"},
	} {
		if step.body != "" {
			putRecord(t, e, step.body)
		}
		awaitContact(t, e, step.want)
		for range 20 {
			if got := contact(t, e); got != step.want {
				t.Errorf("with the record %q: contactName %q, want %q", step.body, got, step.want)
			}
		}
	}
	if err := e.Stop(stopContext(t)); err != nil {
		t.Errorf("Stop = %v, want nil", err)
	}
}

func bookRecord(e *estate.Estate, weight int) string {
	return fmt.Sprintf(`{"serviceName":"organizationservice","active":"Y","endpoint":%q,"weight":%d}`, e.NewURL(), weight)
}

func putRecord(t *testing.T, e *estate.Estate, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut,
		e.SpecialRoutesURL()+"/v1/route/abtesting/organizationservice", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusCreated {
		t.Fatalf("PUT %s = %s", body, res.Status)
	}
}

// contact makes the book's call.
func contact(t *testing.T, e *estate.Estate) string {
	t.Helper()
	var license struct{ ContactName string }
	answer := get(e.GatewayURL(0) + bookPath)
	if err := json.Unmarshal([]byte(answer), &license); err != nil || license.ContactName == "" {
		t.Fatalf("the answer %q: %v", answer, err)
	}
	return license.ContactName
}

// awaitContact waits until a record is in force at the gateway.
func awaitContact(t *testing.T, e *estate.Estate, want string) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for contact(t, e) != want {
		if time.Now().After(deadline) {
			t.Fatalf("contactName is not %q after 5 s", want)
		}
	}
}
