package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"specialroutes.example/services/routing"
	"specialroutes.example/specialroutes/internal/store"
	"specialroutes.example/specialroutes/internal/store/postgres"
	"specialroutes.example/specialroutes/internal/store/postgres/postgrestest"
	"specialroutes.example/specialroutes/internal/store/sqlite"
)

// oldChanges is what was changed two years ago in the tests below; 100 entries stay.
const oldChanges = 103

func TestServe_HistoryIsCutWhenThatIsSet(t *testing.T) {
	t.Parallel()
	old := store.Sources{Now: func() time.Time { return time.Now().AddDate(-2, 0, 0) }}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		o := sqlite.Options{Path: filepath.Join(t.TempDir(), "x.db"), Sources: old}
		if err := sqlite.Migrate(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		s, err := sqlite.Open(t.Context(), o)
		cutsHistory(t, "sqlite://"+filepath.ToSlash(o.Path), s, err)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		address := postgrestest.New(t)
		s, err := postgres.Open(t.Context(), postgres.Options{URL: address, Sources: old, PoolSize: 2})
		cutsHistory(t, address, s, err)
	})
}

// cutsHistory fills a store, closes it, and serves from it without the setting and
// with it.
func cutsHistory(t *testing.T, address string, s store.Store, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	first := changeLongAgo(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	environ := []string{"DATABASE_URL=" + address}
	for _, keep := range []string{"", "SPECIALROUTES_HISTORY_KEEP=26280h"} { // for ever, and three years
		p := start(t, append(environ, keep)).ready()
		if got := p.historyLength(); got != oldChanges {
			t.Errorf("with %q history has %d entries, want all %d", keep, got, oldChanges)
		}
		if err := p.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	}
	p := start(t, environ, "--history-keep=8760h").ready()
	for deadline := time.Now().Add(20 * time.Second); p.historyLength() != 100; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("history has %d entries, want 100; log:\n%s", p.historyLength(), p.log)
		}
	}
	if _, body := p.do("GET", "/v1/changes?after="+first.String(), ""); !strings.Contains(body, `"full":true`) || !strings.Contains(body, "organizationservice") {
		t.Errorf("a follower whose place was cut gets %s, want everything", body)
	}
	if status, body := p.do("GET", "/v1/routes/organizationservice", ""); status != http.StatusOK {
		t.Errorf("the record = %d %s", status, body)
	}
}

func changeLongAgo(t *testing.T, s store.Store) (first store.Cursor) {
	t.Helper()
	for i := range oldChanges {
		stored, err := s.Write(t.Context(), "organizationservice", store.Author{Who: "tester"}, func(*store.Stored) (*routing.Record, error) {
			return &routing.Record{Service: "organizationservice", Active: new(i%2 == 0)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = stored.Cursor()
		}
	}
	return first
}

func (p *process) historyLength() int {
	p.t.Helper()
	_, body := p.do("GET", "/v1/routes/organizationservice/history?limit=1000", "")
	var page struct{ Entries []json.RawMessage }
	if err := json.Unmarshal([]byte(body), &page); err != nil {
		p.t.Fatalf("%s: %v", body, err)
	}
	return len(page.Entries)
}
