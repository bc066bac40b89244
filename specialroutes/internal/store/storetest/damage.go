package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"specialroutes.example/services/routing"
	"specialroutes.example/specialroutes/internal/store"
)

// damage: what hands do to the tables.
var damage = map[string]func(t *testing.T, db Database){
	"a broken row is set aside with its reason":        brokenRowsAreSetAside,
	"a broken record can be replaced and deleted":      brokenRowsCanBeRepaired,
	"a hand that moves the counter is followed":        handEditIsFollowed,
	"missing tables are the database's unavailability": missingTables,
}

// broken are rows as somebody might write them by hand, and a word of the reason.
var broken = []struct{ service, record, reason string }{
	{"array", `[]`, "object"},
	{"empty", `{}`, "service"},
	{"fraction", `{"service":"fraction","active":true,"default":"a","variants":[{"name":"a","weight":0.5}]}`, "/variants/0/weight"},
	{"invalid", `{"service":"invalid"}`, "/active"},
	{"null", `null`, "null"},
	{"number", `17`, "object"},
	{"other", `{"service":"another","active":true}`, "another"},
	{"unknown", `{"service":"unknown","active":true,"colour":"red"}`, "/colour"},
}

// breakRows puts the broken rows in.
func breakRows(t *testing.T, db Database) (services []string) {
	t.Helper()
	for _, row := range broken {
		db.Exec(t, fmt.Sprintf(`INSERT INTO routes (service, record) VALUES ('%s', '%s')`, row.service, row.record))
		services = append(services, row.service)
	}
	return services
}

func brokenRowsAreSetAside(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	write(t, s, "good", put(Record("good", 5)))
	want := append(breakRows(t, db), "good")
	slices.Sort(want)
	full := changesAfter(t, s, store.Cursor{})
	all := list(t, s)
	if !slices.Equal(names(all), want) || !slices.Equal(names(full.Records), want) {
		t.Fatalf("List gives %v, Changes %v, want %v", names(all), names(full.Records), want)
	}
	for _, row := range broken {
		got, err := s.Get(t.Context(), row.service)
		if err != nil {
			t.Errorf("Get(%s) = %v", row.service, err)
		}
		for name, r := range map[string]store.Stored{"Get": got,
			"List": all[slices.Index(want, row.service)], "Changes": full.Records[slices.Index(want, row.service)]} {
			if !strings.Contains(r.Broken, row.reason) || r.Record != nil {
				t.Errorf("%s(%s) gives the reason %q and the record %v, want %q and none", name, row.service, r.Broken, r.Record, row.reason)
			}
			if !sameJSON(t, r.Raw, []byte(row.record)) {
				t.Errorf("%s(%s) gives %s, want %s", name, row.service, r.Raw, row.record)
			}
		}
	}
	if good, err := s.Get(t.Context(), "good"); err != nil || good.Broken != "" {
		t.Errorf("Get(good) = %+v, %v", good, err)
	}
}

func brokenRowsCanBeRepaired(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	breakRows(t, db)
	after := head(t, s)
	var seen *store.Stored
	repaired := write(t, s, "unknown", func(before *store.Stored) (*routing.Record, error) {
		seen = before
		return Record("unknown", 5), nil
	})
	if seen == nil || seen.Broken == "" {
		t.Errorf("the change saw %+v, want the broken record", seen)
	}
	write(t, s, "array", remove)
	got := changesAfter(t, s, after)
	if len(got.Records) != 1 || got.Records[0].ETag() != repaired.ETag() || got.Records[0].Broken != "" {
		t.Errorf("Records = %+v, want %+v", got.Records, repaired)
	}
	if !slices.Equal(got.Deleted, []string{"array"}) {
		t.Errorf("Deleted = %v, want array", got.Deleted)
	}
	if entry := historyOf(t, s, "array")[0]; !sameJSON(t, entry.Before, []byte(`[]`)) || entry.After != nil {
		t.Errorf("history says %+v, want [] before and nothing after", entry)
	}
}

// handEditIsFollowed is the way that docs/operations.md gives for a change by hand.
func handEditIsFollowed(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	write(t, s, "svc", put(Record("svc", 5)))
	var f, away follower
	f.follow(t, s)
	away.follow(t, s)
	db.Exec(t, `DELETE FROM routes WHERE service = 'svc'`)
	db.Exec(t, `UPDATE counter SET n = n + 1, nonce = 'byhand1'`)
	f.follow(t, s)
	f.wantTable(t, s)
	if f.fulls != 2 {
		t.Errorf("after the edit the follower got %d full answers, want 2", f.fulls)
	}
	f.follow(t, s)
	if f.fulls != 2 {
		t.Errorf("a follower who has seen the edit gets a full answer again")
	}
	write(t, s, "next", put(Record("next", 6)))
	for _, f := range []*follower{&f, &away} { // the second one missed the edit's moment
		f.follow(t, s)
		f.wantTable(t, s)
	}
}

func missingTables(t *testing.T, db Database) {
	s := db.Open(t, store.Sources{})
	db.Exec(t, `ALTER TABLE counter RENAME TO elsewhere`)
	wantError(t, s.Ping(t.Context()), store.ErrUnavailable)
	_, err := s.Write(t.Context(), "svc", author, put(Record("svc", 5)))
	wantError(t, err, store.ErrUnavailable)
	db.Exec(t, `ALTER TABLE elsewhere RENAME TO counter`)
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("with the tables back Ping() = %v", err)
	}
	// A database that only a version before has migrated.
	for _, table := range []string{"instance_labels", "instance_labels_history"} {
		db.Exec(t, `ALTER TABLE `+table+` RENAME TO elsewhere`)
		wantError(t, s.Ping(t.Context()), store.ErrUnavailable)
		db.Exec(t, `ALTER TABLE elsewhere RENAME TO `+table)
	}
	for _, column := range []string{"follows", "left_at"} {
		db.Exec(t, `ALTER TABLE gateways RENAME COLUMN `+column+` TO elsewhere`)
		wantError(t, s.Ping(t.Context()), store.ErrUnavailable)
		wantError(t, s.SeeGateway(t.Context(), store.Gateway{ID: "gw-1"}), store.ErrUnavailable)
		db.Exec(t, `ALTER TABLE gateways RENAME COLUMN elsewhere TO `+column)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("with all tables there Ping() = %v", err)
	}
	db.Exec(t, `DELETE FROM counter`)
	wantError(t, s.Ping(t.Context()), store.ErrUnavailable)
	_, err = s.Changes(t.Context(), store.Cursor{})
	wantError(t, err, store.ErrUnavailable)
	_, err = s.Write(t.Context(), "svc", author, put(Record("svc", 5)))
	wantError(t, err, store.ErrUnavailable)
}
