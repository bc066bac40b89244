package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"specialroutes.example/services/estate"
	"specialroutes.example/services/estate/pgcluster"
)

// server is the PostgreSQL that the tests use: a cluster of their own, which they
// may stop, or the one that TEST_DATABASE_URL names, which they may not.
type server struct {
	cluster *pgcluster.Cluster // nil when it is somebody else's
	address string             // a database to connect to, to make others in
	psql    string
}

// databases numbers the databases that newDatabase makes.
var databases atomic.Int64

// startServer is called once, by the first test that needs a database.
func startServer() (*server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cluster, err := pgcluster.Start(ctx, pgcluster.Options{})
	if errors.Is(err, pgcluster.ErrNotInstalled) {
		if given := os.Getenv("TEST_DATABASE_URL"); given != "" {
			return &server{address: given, psql: "psql"}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	psql := cluster.Program("psql")
	if _, err := os.Stat(psql); err != nil {
		psql = "psql" // some systems keep the client's programs in PATH only
	}
	return &server{cluster: cluster, address: cluster.URL("postgres"), psql: psql}, nil
}

// postgres returns the server, or skips the test where there is none: `make test`
// says what to install, and with CI=true it is a failure.
func postgres(t testing.TB) *server {
	t.Helper()
	s, err := shared.database()
	switch {
	case errors.Is(err, pgcluster.ErrNotInstalled) && !inCI():
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	return s
}

// sql runs statements with psql and returns the rows, unadorned.
func (s *server) sql(t testing.TB, database, statements string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.psql, "--no-psqlrc", "--quiet", "--tuples-only", "--no-align",
		"--set=ON_ERROR_STOP=1", "--dbname="+database, "--command="+statements)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("psql %s: %v: %s", statements, err, out)
	}
	return strings.TrimSpace(string(out))
}

// newDatabase makes an empty database and returns its address.
func (s *server) newDatabase(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("e2e_%d_%d", os.Getpid(), databases.Add(1))
	s.sql(t, s.address, "CREATE DATABASE "+name)
	t.Cleanup(func() {
		if s.cluster == nil {
			s.sql(t, s.address, "DROP DATABASE "+name+" WITH (FORCE)")
		}
	})
	u, err := url.Parse(s.address)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

// pgLab is a specialroutes on a database of its own.
type pgLab struct {
	*server
	database string
	special  *process
	url      string
	addr     string
}

func postgresLab(t testing.TB) *pgLab {
	t.Helper()
	s := postgres(t)
	p := &pgLab{server: s, database: s.newDatabase(t), addr: shared.ports.free(t)}
	p.url = "http://" + p.addr
	p.start(t)
	return p
}

func (p *pgLab) start(t testing.TB) {
	t.Helper()
	p.special = startProcess(t, "specialroutes", binaryPath(t, "specialroutes"), []string{
		"SPECIALROUTES_LISTEN=" + p.addr, "SPECIALROUTES_INSECURE_ADMIN=true", "DATABASE_URL=" + p.database,
		"SPECIALROUTES_DRAIN_DELAY=10ms",
	})
	p.special.ready(t, p.url+"/readyz")
}

func TestPostgresStoppedCallsGoOnWritesAre503AndAfterItsRestartChangesFlow(t *testing.T) {
	s := postgres(t)
	if s.cluster == nil {
		t.Skip("TEST_DATABASE_URL names a server that is not ours to stop")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	est, err := estate.Start(ctx, estate.Options{Dir: filepath.Join(t.TempDir(), "estate"), Bin: binaries(t), DatabaseURL: s.newDatabase(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := est.Stop(ctx); err != nil {
			t.Errorf("stop the estate: %v", err)
		}
	}()
	r := routes{url: est.SpecialRoutesURL(), admins: []string{est.GatewayAdminURL(0)}}
	r.put(t, bookRecord(est, 5))
	before := pids(est)
	calls := startLoad(t, est.GatewayURL(0)+organizationPath, 50)

	if err := s.cluster.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	defer func() { // the cluster is shared
		if err := s.cluster.Start(ctx); err != nil {
			t.Errorf("start PostgreSQL again: %v", err)
		}
	}()
	for range 5 {
		got, err := r.try(bookRecord(est, 10))
		if err != nil {
			t.Fatal(err)
		}
		doc := wantProblem(t, got, 503)
		if got.header.Get("Retry-After") == "" {
			t.Error("a 503 without Retry-After")
		}
		if strings.Contains(string(got.body), "password") || strings.Contains(string(got.body), s.cluster.URL("")) {
			t.Errorf("the problem tells an address: %+v", doc)
		}
	}
	wantProblem(t, call(t, "DELETE", r.of(organization), nil, nil), 503)
	if err := wantStatus(r.url+"/healthz", 200); err != nil {
		t.Errorf("without the database: %v", err)
	}
	poll(t, 10*time.Second, "specialroutes is not ready without its database", func() error { return wantStatus(r.url+"/readyz", 503) })
	made := calls.seen()
	poll(t, 30*time.Second, "200 more calls pass", func() error {
		if now := calls.seen(); now.old+now.new < made.old+made.new+200 {
			return fmt.Errorf("%+v", now)
		}
		return nil
	})

	if err := s.cluster.Start(ctx); err != nil {
		t.Fatal(err)
	}
	poll(t, 30*time.Second, "a write is taken again", func() error {
		got, err := r.try(bookRecord(est, 5))
		if err == nil && got.status != 200 {
			err = fmt.Errorf("status %d: %s", got.status, got.body)
		}
		return err
	})
	calls.wantNoFailure(t, 200)
	r.put(t, bookRecord(est, 0))
	if oldAnswers, newAnswers := count(t, est.GatewayURL(0)+organizationPath, 100); oldAnswers != 0 {
		t.Errorf("OLD %d, NEW %d after the change, want only NEW", oldAnswers, newAnswers)
	}
	if after := pids(est); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("processes before %v, after %v: one was restarted", before, after)
	}
}

func pids(est *estate.Estate) map[string]int {
	found := map[string]int{}
	for _, name := range []string{"specialroutes", "gateway", "orgservice-old", "orgservice-new", "licensingservice"} {
		found[name] = est.Process(name).PID()
	}
	return found
}

func TestARecordSurvivesARestartOfSpecialRoutes(t *testing.T) {
	want := book{"survivor", "N", "http://survivor.example:1/base", 3}
	t.Run("SQLite", func(t *testing.T) {
		file, addr := filepath.Join(t.TempDir(), "special.db"), shared.ports.free(t)
		first, base := startSpecialRoutes(t, file, addr)
		r := routes{url: base}
		r.write(t, want)
		first.stop(t)
		second, _ := startSpecialRoutes(t, file, addr)
		if got := r.readBook(t, "survivor"); got != want {
			t.Errorf("after a stop: %+v, want %+v", got, want)
		}
		changed := want
		changed.Weight = 4
		r.write(t, changed)
		second.kill() // a write that was answered is on disk
		startSpecialRoutes(t, file, addr)
		if got := r.readBook(t, "survivor"); got != changed {
			t.Errorf("after a kill: %+v, want %+v", got, changed)
		}
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		p := postgresLab(t)
		r := routes{url: p.url}
		r.write(t, want)
		p.special.stop(t)
		p.start(t)
		if got := r.readBook(t, "survivor"); got != want {
			t.Errorf("after a stop: %+v, want %+v", got, want)
		}
		p.special.kill()
		p.start(t)
		if got := r.readBook(t, "survivor"); got != want {
			t.Errorf("after a kill: %+v, want %+v", got, want)
		}
	})
}

func TestASecondSpecialRoutesOnTheSameSQLiteFileIsRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "special.db")
	_, _ = startSpecialRoutes(t, file, shared.ports.free(t))
	second := startProcess(t, "specialroutes", binaryPath(t, "specialroutes"), []string{
		"SPECIALROUTES_LISTEN=" + shared.ports.free(t), "SPECIALROUTES_INSECURE_ADMIN=true", "DATABASE_URL=sqlite://" + file,
	})
	if code := second.wait(t, 30*time.Second); code == 0 || !strings.Contains(second.out.String(), "special.db") {
		t.Errorf("exit code %d, want a failure that names the file: %s", code, second.out)
	}
}

func TestTwoSpecialRoutesOnOneDatabaseServeTheSameChanges(t *testing.T) {
	p := postgresLab(t)
	other := *p
	other.addr = shared.ports.free(t)
	other.url = "http://" + other.addr
	other.start(t)
	l := newLab(t, labOptions{records: other.url})
	writer := routes{url: p.url, admins: l.admins} // written at one, followed at the other
	for i := range 10 {
		want := "new"
		weight := 0
		if i%2 == 1 {
			want, weight = "old", 10
		}
		writer.write(t, book{labService, "Y", l.new.URL, weight})
		began := time.Now()
		l.answers(t, want)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("change %d was in force after %v", i, took)
		}
	}
}

func TestABrokenRowPutIntoTheTableByHandIsSetAsideAndAllOthersApply(t *testing.T) {
	p := postgresLab(t)
	r := routes{url: p.url}
	alternate := newUpstream(t, "new", nil)
	r.write(t, book{labService, "Y", alternate.URL, 0})
	broken := map[string]string{
		"an empty object":     `{}`,
		"a text":              `"text"`,
		"a list":              `[1, 2]`,
		"a number":            `7`,
		"an unknown field":    `{"service": "SERVICE", "active": true, "mirror": "x"}`,
		"a wrong type":        `{"service": "SERVICE", "active": "perhaps"}`,
		"a missing field":     `{"service": "SERVICE"}`,
		"another's name":      `{"service": "somebody-else", "active": true}`,
		"weights that are 0":  `{"service": "SERVICE", "active": true, "default": "a", "variants": [{"name": "a", "weight": 0}]}`,
		"an endpoint refused": `{"service": "SERVICE", "active": true, "default": "a", "variants": [{"name": "a", "weight": 1}, {"name": "b", "weight": 1, "endpoint": "http://169.254.169.254"}]}`,
	}
	services := map[string]string{}
	for name, record := range broken {
		service := "broken-" + strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' {
				return r
			}
			return '-'
		}, name)
		services[name] = service
		record = strings.ReplaceAll(record, "SERVICE", service)
		p.sql(t, p.database, fmt.Sprintf("INSERT INTO routes (service, record) VALUES ('%s', '%s')", service, record))
	}
	p.sql(t, p.database, `INSERT INTO routes (service, record) VALUES ('No Name of Ours', '{"service": "No Name of Ours", "active": true}')`)

	l := newLab(t, labOptions{records: p.url, new: alternate})
	l.answers(t, "new")
	page := call(t, "GET", l.admin+"/records", nil, nil)
	for name, service := range services {
		if err := wantSetAside(page.body, service, labService); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := wantSetAside(page.body, "No Name of Ours", labService); err != nil {
		t.Errorf("a name outside the pattern: %v", err)
	}
	for name, service := range services {
		got := r.read(t, service)
		if got.status < 400 || got.status > 499 {
			t.Errorf("%s: GET: status = %d: %s", name, got.status, got.body)
		}
		if _, err := parseProblem(got); err != nil {
			t.Errorf("%s: GET: %v", name, err)
		}
	}
	if got := call(t, "GET", p.url+"/v1/route/abtesting", nil, nil); got.status != 200 || !strings.Contains(string(got.body), labService) {
		t.Errorf("the list: status %d: %s", got.status, got.body)
	}
	// Changes flow as before, and a restart of specialroutes stumbles over nothing.
	l.put(t, book{labService, "Y", alternate.URL, 10})
	l.answers(t, "old")
	p.special.stop(t)
	p.start(t)
	l.put(t, book{labService, "Y", alternate.URL, 0})
	l.answers(t, "new")
}

func TestThreeProcessesThatStartAtOnceApplyEachMigrationOnce(t *testing.T) {
	s := postgres(t)
	database := s.newDatabase(t)
	var started []*process
	var urls []string
	for range 3 {
		addr := shared.ports.free(t)
		started = append(started, startProcess(t, "specialroutes", binaryPath(t, "specialroutes"), []string{
			"SPECIALROUTES_LISTEN=" + addr, "SPECIALROUTES_INSECURE_ADMIN=true", "DATABASE_URL=" + database,
		}))
		urls = append(urls, "http://"+addr)
	}
	for i, p := range started {
		p.ready(t, urls[i]+"/readyz")
	}
	routes{url: urls[0]}.write(t, book{"a-service", "Y", "http://x:1", 5})
	for _, url := range urls {
		routes{url: url}.readBook(t, "a-service")
	}
	if dirty := s.sql(t, database, "SELECT count(*) FROM schema_migrations WHERE dirty"); dirty != "0" {
		t.Errorf("%s dirty versions", dirty)
	}
}
