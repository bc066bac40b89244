package routing_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"specialroutes.example/services/routing"
)

// Half of the calls go to a new version, and one tester always does.
func Example() {
	record := &routing.Record{
		Service: "organizationservice",
		Active:  new(true),
		Variants: []routing.Variant{
			{Name: "old", Weight: new(int64(5))},
			{Name: "new", Weight: new(int64(5)), Endpoint: new("http://orgservice-new:8087")},
		},
		Default: new("old"),
		Rules: []routing.Rule{{Name: "testers", Variant: new("new"), Match: []routing.Match{
			{On: routing.OnHeader, Name: new("tmx-user-id"), In: []string{"u-17"}},
		}}},
	}
	route, err := routing.Compile(record, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	draw := func(sum int64) int64 { return 3 } // a number from 1 to sum
	for _, user := range []string{"u-17", "u-42"} {
		request := &routing.Request{Method: "GET", Path: "/v1/organizations/1", Header: http.Header{"Tmx-User-Id": {user}}}
		decision := route.Decide(request, draw)
		fmt.Println(user, route.Variant(decision.Variant).Name, decision.Reason())
	}
	// Output:
	// u-17 new rule:testers
	// u-42 old draw
}

func TestRecord_Ended(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		ends, now string
		want      bool
	}{
		{"2026-12-31", "2026-12-31T23:59:59Z", false},
		{"2026-12-31", "2027-01-01T00:00:00Z", true},
		{"2026-12-31", "2027-01-01T00:30:00+01:00", false},
		{"2026-12-31", "2026-06-01T00:00:00Z", false},
	} {
		now, err := time.Parse(time.RFC3339, tt.now)
		if err != nil {
			t.Fatal(err)
		}
		if got := (&routing.Record{Ends: &tt.ends}).Ended(now); got != tt.want {
			t.Errorf("a record that ends %s has ended at %s: %v, want %v", tt.ends, tt.now, got, tt.want)
		}
	}
	if (&routing.Record{}).Ended(time.Now()) {
		t.Error("a record without an end has ended")
	}
}
