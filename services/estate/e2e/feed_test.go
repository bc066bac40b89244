package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// changesPage is an answer of GET /v1/changes.
type changesPage struct {
	Cursor  string
	Full    bool
	Records []struct {
		Service  string
		Revision int64
		Record   json.RawMessage
	}
	Deleted []string
}

func changes(base, after, wait string) (changesPage, error) {
	query := url.Values{"wait": {wait}}
	if after != "" {
		query.Set("after", after)
	}
	var page changesPage
	got, err := do("GET", base+"/v1/changes?"+query.Encode(), nil, nil)
	if err != nil {
		return page, err
	}
	if got.status != 200 {
		return page, fmt.Errorf("GET /v1/changes: status %d: %s", got.status, got.body)
	}
	return page, json.Unmarshal(got.body, &page)
}

func cursorOf(t testing.TB, base string) string {
	t.Helper()
	page, err := changes(base, "", "0s")
	if err != nil {
		t.Fatal(err)
	}
	if !page.Full || page.Cursor == "" {
		t.Fatalf("the first answer is %+v, want a full one with a cursor", page)
	}
	return page.Cursor
}

// follower keeps a copy of all records by following the changes.
type follower struct {
	records map[string]string // service → record
	cursor  string
}

func (f *follower) apply(page changesPage) {
	if page.Full {
		f.records = map[string]string{}
	}
	for _, r := range page.Records {
		f.records[r.Service] = string(r.Record)
	}
	for _, service := range page.Deleted {
		delete(f.records, service)
	}
	f.cursor = page.Cursor
}

// follow asks for changes until the cursor that until gives is reached; until
// gives "" as long as changes are still being written.
func (f *follower) follow(base string, until func() string) error {
	limit := time.Now().Add(time.Minute)
	for {
		if end := until(); end != "" && f.cursor == end {
			return nil
		}
		if time.Now().After(limit) {
			return fmt.Errorf("stopped at %s", f.cursor)
		}
		page, err := changes(base, f.cursor, "500ms")
		if err != nil {
			return err
		}
		f.apply(page)
	}
}

// table reads every record through the full answer, which comes from the table.
func table(t testing.TB, base string) map[string]string {
	t.Helper()
	page, err := changes(base, "", "0s")
	if err != nil {
		t.Fatal(err)
	}
	f := &follower{}
	f.apply(page)
	return f.records
}

// sixWritersThreeFollowers makes 300 changes, a fifth of them deletes, and checks
// that every follower ends with what is in the table.
func sixWritersThreeFollowers(t *testing.T, base string) {
	t.Helper()
	const writers, eachWrites = 6, 50
	r := routes{url: base}
	var end string
	var mu sync.Mutex
	until := func() string {
		mu.Lock()
		defer mu.Unlock()
		return end
	}
	followers := []*follower{{records: map[string]string{}}, {records: map[string]string{}}, {records: map[string]string{}}}
	var following, writing sync.WaitGroup
	for i, f := range followers {
		following.Go(func() {
			if err := f.follow(base, until); err != nil {
				t.Errorf("follower %d: %v", i, err)
			}
		})
	}
	for w := range writers {
		writing.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(w)))
			for i := range eachWrites {
				if err := r.oneChange(random, i); err != nil {
					t.Errorf("writer %d, change %d: %v", w, i, err)
				}
			}
		})
	}
	writing.Wait()
	mu.Lock()
	end = cursorOf(t, base)
	mu.Unlock()
	following.Wait()
	want := table(t, base)
	if len(want) == 0 {
		t.Fatal("the table is empty after 300 changes")
	}
	for i, f := range followers {
		if !maps.Equal(f.records, want) {
			t.Errorf("follower %d ends with %d records, the table has %d, or they differ:\n%v\n%v", i, len(f.records), len(want), f.records, want)
		}
	}
}

// oneChange writes or deletes a record of one of ten services.
func (r routes) oneChange(random *rand.Rand, i int) error {
	service := fmt.Sprintf("service-%d", random.IntN(10))
	if i%5 == 4 {
		got, err := do("DELETE", r.of(service), nil, nil)
		if err == nil && got.status != 204 && got.status != 200 && got.status != 404 {
			err = fmt.Errorf("DELETE: status %d: %s", got.status, got.body)
		}
		return err
	}
	got, err := r.try(book{service, "Y", fmt.Sprintf("http://%s:%d", service, 1+random.IntN(60000)), random.IntN(11)})
	if err == nil && got.status != 200 && got.status != 201 {
		err = fmt.Errorf("PUT: status %d: %s", got.status, got.body)
	}
	return err
}

func TestSixWritersAndThreeFollowersEndEqualToTheTable(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		_, url := startSpecialRoutes(t, t.TempDir()+"/special.db", shared.ports.free(t))
		sixWritersThreeFollowers(t, url)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		pg := postgresLab(t)
		sixWritersThreeFollowers(t, pg.url)
	})
}

func TestADatabaseRestoredToAnEarlierRevisionIsNoticedAndFollowed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, addr := filepath.Join(dir, "special.db"), shared.ports.free(t)
	special, url := startSpecialRoutes(t, file, addr)
	l := newLab(t, labOptions{records: url})
	l.put(t, book{labService, "Y", l.new.URL, 0}) // everybody to new
	l.answers(t, "new")

	special.stop(t)
	backup := snapshot(t, dir)
	special, _ = startSpecialRoutes(t, file, addr)
	for weight := range 9 { // moves on by several revisions
		l.write(t, book{labService, "Y", l.new.URL, weight + 1})
	}
	l.put(t, book{labService, "Y", l.new.URL, 10}) // everybody to old
	l.answers(t, "old")

	special.signal(t, syscall.SIGTERM)
	special.wait(t, 20*time.Second)
	restore(t, dir, backup)
	_, _ = startSpecialRoutes(t, file, addr)
	// The same number of writes again: the revisions meet those that the gateway
	// knows, and only the nonce tells one history from the other.
	for weight := range 9 {
		l.write(t, book{"other-service", "Y", l.new.URL, weight + 1})
	}
	poll(t, 20*time.Second, "the restored record is in force", func() error {
		if got := call(t, "GET", l.base+"/x", nil, nil); string(got.body) != "new" {
			return fmt.Errorf("body %q", got.body)
		}
		return nil
	})
}

// snapshot reads the files of a directory.
func snapshot(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Type().IsRegular() {
			content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			if err != nil {
				t.Fatal(err)
			}
			files[entry.Name()] = content
		}
	}
	return files
}

// restore makes a directory hold exactly the files of a snapshot.
func restore(t testing.TB, dir string, files map[string][]byte) {
	t.Helper()
	for name := range snapshot(t, dir) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
