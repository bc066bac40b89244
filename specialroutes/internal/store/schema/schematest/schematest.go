// Package schematest holds what the migration of every kind of database must do,
// with real processes where it is about them.
package schematest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// Database is a new, empty database and the ways to migrate it.
type Database struct {
	// Up migrates with these steps; Down takes this binary's own steps back.
	Up   func(ctx context.Context, steps fs.FS, log *slog.Logger) error
	Down func(ctx context.Context, steps int) error

	// Steps are this binary's own.
	Steps fs.FS

	// Address is what a child process is told about the database; see Child.
	Address string

	// Exec runs SQL by hand, Column reads one column of texts.
	Exec   func(t *testing.T, sql string)
	Column func(t *testing.T, query string) []string

	// Tables is a query for the names of all tables.
	Tables string

	// Block is a statement that keeps a child process in a step until it is killed,
	// and WaitBlocked returns when a child, whose output is given, has come to it.
	Block       string
	WaitBlocked func(t *testing.T, child io.Reader)
}

// The environment of a child process: the test's own binary, which calls Child
// before it runs any test.
const (
	childAddress = "SCHEMATEST_ADDRESS"
	childSteps   = "SCHEMATEST_STEPS"
)

// Child does the work of a child process and returns its exit code, when this
// process is one. up migrates the database of an address. It waits for the end of
// its standard input first, so that several children can be started at once.
func Child(up func(ctx context.Context, address string, steps fs.FS) error) (code int, isChild bool) {
	address := os.Getenv(childAddress)
	if address == "" {
		return 0, false
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	if err := up(context.Background(), address, os.DirFS(os.Getenv(childSteps))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// child prepares a child process that migrates a database.
func child(t *testing.T, db Database, steps fs.FS) *exec.Cmd {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "steps")
	if err := os.CopyFS(dir, steps); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childAddress+"="+db.Address, childSteps+"="+dir)
	return cmd
}

// Exercise runs the suite. create makes a new, empty database.
func Exercise(t *testing.T, create func(t *testing.T) Database) {
	for name, test := range map[string]func(t *testing.T, db Database){
		"up, down and up again":                              upDownUp,
		"a second time changes nothing":                      upTwice,
		"a step that fails half way needs only to be mended": failedStep,
		"a step killed half way needs nothing":               killedStep,
		"three processes at once apply each step once":       threeProcesses,
		"a newer schema is logged and served":                newerSchema,
		"a mark of dirty by another tool is not passed over": dirtyMark,
		"a missing step is an error":                         missingStep,
		"a context that is over ends it":                     contextOver,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, create(t))
		})
	}
}

func up(t *testing.T, db Database, steps fs.FS) {
	t.Helper()
	if err := db.Up(t.Context(), steps, nil); err != nil {
		t.Fatalf("Up() = %v", err)
	}
}

func tables(t *testing.T, db Database) []string {
	t.Helper()
	list := db.Column(t, db.Tables)
	slices.Sort(list)
	return list
}

// wantTables checks which tables there are, beside that of versions.
func wantTables(t *testing.T, db Database, want ...string) {
	t.Helper()
	got := slices.DeleteFunc(tables(t, db), func(s string) bool { return s == "schema_migrations" })
	if !slices.Equal(got, want) {
		t.Errorf("tables are %v, want %v", got, want)
	}
}

// wantVersion checks the number of the last step and that it is not marked dirty.
func wantVersion(t *testing.T, db Database, want string) {
	t.Helper()
	got := db.Column(t, `SELECT CAST(version AS text) || CASE WHEN dirty THEN ' dirty' ELSE '' END FROM schema_migrations`)
	if !slices.Equal(got, []string{want}) {
		t.Errorf("version is %q, want %q", got, want)
	}
}

func upDownUp(t *testing.T, db Database) {
	up(t, db, db.Steps)
	first := tables(t, db)
	if len(first) < 4 {
		t.Fatalf("tables are %v, want some", first)
	}
	if err := db.Down(t.Context(), 1000); err != nil {
		t.Fatalf("Down() = %v", err)
	}
	wantTables(t, db)
	if err := db.Down(t.Context(), 1); err != nil {
		t.Errorf("Down() of nothing = %v", err)
	}
	up(t, db, db.Steps)
	if second := tables(t, db); !slices.Equal(first, second) {
		t.Errorf("tables are %v, want %v", second, first)
	}
}

func upTwice(t *testing.T, db Database) {
	up(t, db, db.Steps)
	db.Exec(t, `UPDATE counter SET n = 17`)
	up(t, db, db.Steps)
	if got := db.Column(t, `SELECT CAST(n AS text) FROM counter`); !slices.Equal(got, []string{"17"}) {
		t.Errorf("the counter is %v, want 17", got)
	}
}

// steps makes step files: names without "0000" and ".sql" to their statements.
func steps(files map[string]string) fs.FS {
	m := fstest.MapFS{}
	for name, body := range files {
		m["00000"+name+".sql"] = &fstest.MapFile{Data: []byte(body), Mode: 0o644}
	}
	return m
}

const stepOne = `CREATE TABLE one (n integer NOT NULL); INSERT INTO one VALUES (1);`

func failedStep(t *testing.T, db Database) {
	half := `CREATE TABLE two (n integer NOT NULL); INSERT INTO one VALUES (2);`
	err := db.Up(t.Context(), steps(map[string]string{
		"1_create_one.up": stepOne,
		"2_create_two.up": half + `INSERT INTO nowhere VALUES (1);`,
	}), nil)
	if err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Fatalf("Up() = %v, want the failed statement's reason", err)
	}
	wantTables(t, db, "one")
	wantVersion(t, db, "1")
	up(t, db, steps(map[string]string{"1_create_one.up": stepOne, "2_create_two.up": half}))
	wantTables(t, db, "one", "two")
	wantVersion(t, db, "2")
	if got := db.Column(t, `SELECT CAST(n AS text) FROM one ORDER BY n`); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("one holds %v, want 1 and 2", got)
	}
}

func killedStep(t *testing.T, db Database) {
	half := `CREATE TABLE two (n integer NOT NULL); INSERT INTO one VALUES (2);`
	cmd := child(t, db, steps(map[string]string{
		"1_create_one.up": stepOne,
		"2_create_two.up": half + db.Block,
	}))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	db.WaitBlocked(t, out)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the child ended with %v, want to have been killed", err)
	}
	up(t, db, steps(map[string]string{"1_create_one.up": stepOne, "2_create_two.up": half}))
	wantTables(t, db, "one", "two")
	wantVersion(t, db, "2")
	if got := db.Column(t, `SELECT CAST(n AS text) FROM one ORDER BY n`); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("one holds %v, want 1 and 2", got)
	}
}

func threeProcesses(t *testing.T, db Database) {
	files := map[string]string{"1_create_one.up": stepOne}
	for i := 2; i <= 9; i++ {
		files[fmt.Sprintf("%d_fill_one.up", i)] = fmt.Sprintf(`INSERT INTO one VALUES (%d);`, i)
	}
	var children []*exec.Cmd
	var outputs []*bytes.Buffer
	var guns []io.Closer
	for range 3 {
		cmd, output := child(t, db, steps(files)), new(bytes.Buffer)
		cmd.Stdout, cmd.Stderr = output, output
		gun, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		children, outputs, guns = append(children, cmd), append(outputs, output), append(guns, gun)
	}
	for _, gun := range guns {
		gun.Close()
	}
	for i, cmd := range children {
		if err := cmd.Wait(); err != nil {
			t.Errorf("child %d: %v\n%s", i, err, outputs[i])
		}
	}
	want := []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}
	if got := db.Column(t, `SELECT CAST(n AS text) FROM one ORDER BY n`); !slices.Equal(got, want) {
		t.Errorf("the steps left %v, want %v", got, want)
	}
	wantVersion(t, db, "9")
}

func newerSchema(t *testing.T, db Database) {
	newer := steps(map[string]string{"1_create_one.up": stepOne, "2_fill_one.up": `INSERT INTO one VALUES (2);`})
	older := steps(map[string]string{"1_create_one.up": stepOne})
	up(t, db, newer)
	var log bytes.Buffer
	if err := db.Up(t.Context(), older, slog.New(slog.NewJSONHandler(&log, nil))); err != nil {
		t.Fatalf("Up() with older steps = %v", err)
	}
	if !strings.Contains(log.String(), "newer") || !strings.Contains(log.String(), `"schema":2,"known":1`) {
		t.Errorf("the log says %q, want that the schema 2 is newer than 1", log.String())
	}
	wantVersion(t, db, "2")
	if err := db.Down(t.Context(), 1); err == nil {
		t.Error("Down() of a step that is not known gave no error")
	}
	wantTables(t, db, "one")
}

func dirtyMark(t *testing.T, db Database) {
	up(t, db, db.Steps)
	db.Exec(t, `UPDATE schema_migrations SET dirty = true, version = 0`)
	if err := db.Up(t.Context(), db.Steps, nil); err == nil || !strings.Contains(strings.ToLower(err.Error()), "dirty") {
		t.Errorf("Up() = %v, want that the database is dirty", err)
	}
}

func missingStep(t *testing.T, db Database) {
	up(t, db, steps(map[string]string{"2_create_one.up": stepOne}))
	err := db.Up(t.Context(), steps(map[string]string{"1_create_one.up": stepOne, "3_fill_one.up": `INSERT INTO one VALUES (3);`}), nil)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Up() = %v, want that a step is missing", err)
	}
}

func contextOver(t *testing.T, db Database) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.Up(ctx, db.Steps, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Up() = %v, want context.Canceled", err)
	}
	if err := db.Up(t.Context(), db.Steps, nil); err != nil {
		t.Errorf("afterwards Up() = %v", err)
	}
}
