package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"specialroutes.example/services/estate"
)

// labelsURL is where an operator says what labels an instance has.
func (r routes) labelsURL(service, id string) string {
	return r.url + "/v1/instances/" + service + "/" + id + "/labels"
}

// byLabel is a record whose instances are chosen by one label rule.
func byLabel(service, rule string) string {
	return fmt.Sprintf(`{"service":%q,"active":true,"labelRules":[%s]}`, service, rule)
}

// lane is the rule of lanes: equal, and absent equals absent.
const lane = `{"header":"zone","label":"zone","mode":"symmetric","fallback":"none"}`

// served makes a call and returns the instance that answered, or the status.
func served(url string, h ...[2]string) (string, error) {
	got, err := do("GET", url, nil, h)
	switch {
	case err != nil:
		return "", err
	case got.status != 200:
		return fmt.Sprint(got.status), nil
	}
	return got.header.Get("X-Served-By"), nil
}

func wantServed(t testing.TB, url, want string, h ...[2]string) {
	t.Helper()
	for range 4 { // a second instance would show
		if got, err := served(url, h...); err != nil || got != want {
			t.Errorf("%s %v: %q, %v; want %s", url, h, got, err, want)
		}
	}
}

func TestLabelsThatAnOperatorChangesSteerTheNextCallsOnTwoGateways(t *testing.T) {
	t.Parallel()
	e := startConsulEstate(t, 2, estate.Instance{ID: "org-alice", Service: organization, Labels: map[string]string{"zone": "alice"}})
	sendJSON(t, "PUT", e.full(organization)+"?wait=applied", byLabel(organization, lane))
	both := func(want string, h ...[2]string) {
		t.Helper()
		for i := range 2 {
			wantServed(t, e.GatewayURL(i)+organizationPath, want, h...)
		}
	}
	alice, bob := [2]string{"zone", "alice"}, [2]string{"zone", "bob"}
	asRegistered := func() {
		t.Helper()
		both("org-alice", alice)
		both("503", bob)
		both(estate.OrgServiceOld)
	}
	asRegistered()

	labels := e.labelsURL(organization, "org-alice")
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	set := func(document string) {
		t.Helper()
		got := sendJSON(t, "PUT", labels+"?wait=applied", document)
		if got.status != 200 && got.status != 201 {
			t.Fatalf("PUT %s: status %d: %s", document, got.status, got.body)
		}
	}
	set(fmt.Sprintf(`{"labels":{"zone":"bob"},"ends":%q}`, until))
	both("org-alice", bob)
	both("503", alice)
	both(estate.OrgServiceOld)

	// Hidden, it is an instance without a label like the other one.
	set(fmt.Sprintf(`{"labels":{"zone":null},"ends":%q}`, until))
	both("503", alice)
	for i := range 2 {
		if seen := tallyServed(t, e.GatewayURL(i)+organizationPath, 20); len(seen) != 2 {
			t.Errorf("gateway %d: with the label hidden %v answered", i, seen)
		}
	}

	if got := call(t, "DELETE", labels+"?wait=applied", nil, nil); got.status != 200 {
		t.Fatalf("DELETE: status %d: %s", got.status, got.body)
	}
	asRegistered()

	history := call(t, "GET", labels+"/history", nil, nil)
	if history.status != 200 {
		t.Errorf("history: status %d: %s", history.status, history.body)
	}
}

func tallyServed(t testing.TB, url string, n int) map[string]int {
	t.Helper()
	counted := map[string]int{}
	for _, id := range each(t, n, func(int) (string, error) { return served(url) }) {
		counted[id]++
	}
	return counted
}

// The rules of one service have no say in another: the production bug of the system
// that chose by versions was one rule that two services shared.
func TestServicesWithDifferentLabelRulesNeverSeeEachOthersCalls(t *testing.T) {
	t.Parallel()
	const second = "second-service"
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	est, err := estate.Start(ctx, estate.Options{
		Dir: filepath.Join(t.TempDir(), "estate"), Bin: binaries(t),
		GatewayYAML: fmt.Sprintf("routes: [{prefix: /api/organization, service: %s}, {prefix: /api/second, service: %s}]", organization, second),
		Instances: []estate.Instance{
			{ID: "first-1", Service: organization, Labels: map[string]string{"version": "1"}},
			{ID: "first-2", Service: organization, Labels: map[string]string{"version": "2"}},
			{ID: "second-1", Service: second, Labels: map[string]string{"version": "1", "app": "a"}},
			{ID: "second-2", Service: second, Labels: map[string]string{"version": "2", "app": "a"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := est.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	r := routes{url: est.SpecialRoutesURL(), admins: []string{est.GatewayAdminURL(0)}}
	r.save(t, organization, byLabel(organization, `{"header":"version","label":"version","mode":"exact","fallback":"none"}`))
	r.save(t, second, byLabel(second, `{"header":"version","label":"version","mode":"exact","fallback":"none"},{"header":"app","label":"app","mode":"exact","fallback":"none"}`))
	r.inForce(t)

	organizations, seconds := est.GatewayURL(0)+organizationPath, est.GatewayURL(0)+"/api/second/v1/organizations/"+bookOrganization
	app := [2]string{"app", "a"}
	calls := []struct {
		url, want string
		h         headers
	}{
		{organizations, "first-1", headers{{"version", "1"}}},
		{organizations, "first-2", headers{{"version", "2"}, app}},
		{organizations, "503", headers{{"version", "3"}}},
		{seconds, "second-1", headers{{"version", "1"}, app}},
		{seconds, "second-2", headers{{"version", "2"}, app}},
		{seconds, "503", headers{{"version", "1"}}},
	}
	var group sync.WaitGroup
	for range 3 {
		for _, c := range calls {
			group.Go(func() {
				for range 200 {
					if got, err := served(c.url, c.h...); err != nil || got != c.want {
						t.Errorf("%s %v: %q, %v; want %s", c.url, c.h, got, err, c.want)
						return
					}
				}
			})
		}
	}
	group.Wait()
}
