package storetest

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"specialroutes.example/specialroutes/internal/store"
)

// gateways: what they tell.
var gateways = map[string]func(t *testing.T, db Database){
	"what a gateway tells last is what is known of it": gatewaysAreSeen,
	"gateways that say nothing are left out":           silentGatewaysAreLeftOut,
	"all processes see the same gateways":              gatewaysAreShared,
	"not more gateways are kept than there may be":     gatewaysAreBounded,
	"who has taken an answer in follows from then on":  gatewaysFollow,
	"who has left has left until it is seen again":     gatewaysLeave,
	"who only asks displaces nobody who follows":       followersAreKept,
}

func see(t *testing.T, s store.Store, g store.Gateway) {
	t.Helper()
	if err := s.SeeGateway(t.Context(), g); err != nil {
		t.Fatalf("SeeGateway(%+v) = %v", g, err)
	}
}

// heard lists the gateways, and checks and clears what depends on the clock.
func heard(t *testing.T, s store.Store, within time.Duration) []store.Gateway {
	t.Helper()
	list, err := s.ListGateways(t.Context(), within)
	if err != nil {
		t.Fatalf("ListGateways = %v", err)
	}
	for i := range list {
		if list[i].Age < 0 || list[i].Age > within || list[i].Seen.IsZero() || list[i].Seen.Location() != time.UTC {
			t.Errorf("%s was seen at %v, %v ago", list[i].ID, list[i].Seen, list[i].Age)
		}
		if list[i].KnownFor < list[i].Age {
			t.Errorf("%s is known for %v and was seen %v ago", list[i].ID, list[i].KnownFor, list[i].Age)
		}
		list[i].Seen, list[i].Age, list[i].KnownFor = time.Time{}, 0, 0
	}
	return list
}

func gatewaysAreSeen(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	if list := heard(t, s, time.Minute); len(list) != 0 {
		t.Errorf("before all: %+v", list)
	}
	b := store.Gateway{ID: "gw-b", Version: "1.2", Cursor: store.Cursor{Revision: 42, Nonce: "k3f9"}, SetAside: []string{"*", "licensing"}}
	see(t, s, store.Gateway{ID: "gw-b", Cursor: store.Cursor{Revision: 41, Nonce: "a"}, SetAside: []string{"other"}})
	see(t, s, b)
	b.Follows = true
	a := store.Gateway{ID: "gw-a", SetAside: []string{}}
	see(t, s, store.Gateway{ID: "gw-a"})
	if got, want := heard(t, s, time.Minute), []store.Gateway{a, b}; !reflect.DeepEqual(got, want) {
		t.Errorf("ListGateways = %+v, want %+v", got, want)
	}
	wantError(t, s.SeeGateway(t.Context(), store.Gateway{ID: "a\x00b"}), store.ErrInvalid)
}

func silentGatewaysAreLeftOut(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	see(t, s, store.Gateway{ID: "gw-a", SetAside: []string{}})
	see(t, s, store.Gateway{ID: "gw-b", SetAside: []string{}})
	db.Exec(t, `UPDATE gateways SET seen_at = '2020-01-01T00:00:00.000000Z' WHERE id = 'gw-a'`)
	if got := heard(t, s, time.Minute); len(got) != 1 || got[0].ID != "gw-b" {
		t.Errorf("ListGateways = %+v, want gw-b alone", got)
	}
	see(t, s, store.Gateway{ID: "gw-c", SetAside: []string{}}) // gw-a is forgotten
	if got := heard(t, s, 100*365*24*time.Hour); len(got) != 2 {
		t.Errorf("ListGateways = %+v, want gw-b and gw-c", got)
	}
}

func gatewaysAreShared(t *testing.T, db Database) {
	if !db.Shared {
		t.Skip("one process at a time")
	}
	one, other := db.Open(t, store.Sources{}), db.Open(t, store.Sources{})
	see(t, one, store.Gateway{ID: "gw-a", SetAside: []string{}})
	if got := heard(t, other, time.Minute); len(got) != 1 {
		t.Errorf("the other process sees %+v", got)
	}
}

func gatewaysAreBounded(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	see(t, s, store.Gateway{ID: "oldest", SetAside: []string{}})
	db.Exec(t, fmt.Sprintf(`
		INSERT INTO gateways (id, version, revision, nonce, set_aside, seen_at)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		SELECT 'gw-' || i, '', 0, '', '[]', '2999-01-01T00:00:00.000000Z' FROM n`, store.MaxGateways-1))
	see(t, s, store.Gateway{ID: "newest", SetAside: []string{}})
	var ids []string
	list, err := s.ListGateways(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range list {
		if g.ID == "oldest" || g.ID == "newest" {
			ids = append(ids, g.ID)
		}
	}
	if len(list) != store.MaxGateways || len(ids) != 1 || ids[0] != "newest" {
		t.Errorf("%d are kept, with %q, want %d with the newest", len(list), ids, store.MaxGateways)
	}
}

func gatewaysFollow(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	follows := func() map[string]bool {
		found := map[string]bool{}
		for _, g := range heard(t, s, time.Minute) {
			found[g.ID] = g.Follows
		}
		return found
	}
	place := store.Cursor{Revision: 0, Nonce: "k3f9"}
	see(t, s, store.Gateway{ID: "asks"})
	see(t, s, store.Gateway{ID: "follows"})
	see(t, s, store.Gateway{ID: "follows", Cursor: place})
	// It is still one that follows when its place is lost, as after a restore.
	see(t, s, store.Gateway{ID: "restored", Cursor: place})
	see(t, s, store.Gateway{ID: "restored"})
	// A version that does not know of it tells of gateways that follow.
	db.Exec(t, `INSERT INTO gateways (id, version, revision, nonce, set_aside, seen_at)
		VALUES ('earlier', '', 0, '', '[]', '2999-01-01T00:00:00.000000Z')`)
	if got, err := s.ListGateways(t.Context(), time.Minute); err != nil || len(got) != 4 || got[1].ID != "earlier" || !got[1].Follows || got[1].KnownFor < store.GatewayAge {
		t.Errorf("ListGateways = %+v, %v, want the row of an earlier version to follow, for long", got, err)
	}
	db.Exec(t, `DELETE FROM gateways WHERE id = 'earlier'`)
	if got, want := follows(), map[string]bool{"asks": false, "follows": true, "restored": true}; !reflect.DeepEqual(got, want) {
		t.Errorf("Follows = %v, want %v", got, want)
	}
}

func gatewaysLeave(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	left := func(want bool) {
		t.Helper()
		got := heard(t, s, time.Minute)
		if len(got) != 1 || got[0].Left != want {
			t.Errorf("ListGateways = %+v, want one that has left: %t", got, want)
		}
	}
	leave := func(id string) {
		t.Helper()
		if err := s.LeaveGateway(t.Context(), id); err != nil {
			t.Errorf("LeaveGateway(%s) = %v", id, err)
		}
	}
	see(t, s, store.Gateway{ID: "gw"})
	left(false)
	leave("gw")
	leave("nobody")
	left(true)
	see(t, s, store.Gateway{ID: "gw"})
	left(false)
	leave("gw")
	// A version that does not know of it sees the gateway again.
	db.Exec(t, `UPDATE gateways SET left_at = '2020-01-01T00:00:00.000000Z' WHERE id = 'gw'`)
	left(false)
	wantError(t, s.LeaveGateway(t.Context(), "a\x00b"), store.ErrInvalid)
}

func followersAreKept(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	see(t, s, store.Gateway{ID: "follows", Cursor: store.Cursor{Revision: 1, Nonce: "a"}})
	db.Exec(t, fmt.Sprintf(`
		INSERT INTO gateways (id, version, revision, nonce, set_aside, seen_at, follows)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		SELECT 'asks-' || i, '', 0, '', '[]', '2999-01-01T00:00:00.000000Z', FALSE FROM n`, 2*store.MaxGateways))
	see(t, s, store.Gateway{ID: "asks"})
	list, err := s.ListGateways(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != store.MaxGateways || list[len(list)-1].ID != "follows" {
		t.Errorf("%d are kept, the last %q, want %d with the one that follows", len(list), list[len(list)-1].ID, store.MaxGateways)
	}
}
