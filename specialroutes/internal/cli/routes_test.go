package cli_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // to write what the program would not
)

const (
	half  = `{"service":"organizationservice","active":true,"variants":[{"name":"old","weight":5},{"name":"new","weight":5,"endpoint":"http://orgservice-new:8087"}],"default":"old"}`
	tenth = `{"service":"organizationservice","active":true,"variants":[{"name":"old","weight":9},{"name":"new","weight":1,"endpoint":"http://orgservice-new:8087"}],"default":"old"}`
	admin = "--insecure-admin"
	orga  = "organizationservice"
)

// document decodes a document for comparison.
func document(t testing.TB, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return v
}

// record returns a record as the server has it now.
func (s *server) record(service string) any {
	s.t.Helper()
	return document(s.t, s.run("routes", "get", service, "--output=json").expect(s.t, 0).stdout)
}

func (s *server) etag(service string) string {
	s.t.Helper()
	return strings.TrimSpace(s.run("routes", "get", service, "--etag").expect(s.t, 0).stdout)
}

func TestARecordLivesThroughTheCommands(t *testing.T) {
	t.Parallel()
	s := serve(t, admin)

	s.put(orga, half, "--why", "to begin with").expect(t, 0).says(t, "organizationservice: created, revision 1, ETag \"1.")
	s.run("routes", "put", orga, writeFile(t, tenth), "--why=one in ten").expect(t, 0).says(t, "changed, revision 2")
	if got := s.record(orga); !reflect.DeepEqual(got, document(t, tenth)) {
		t.Errorf("get --output json = %v, want what was put", got)
	}
	s.run("routes", "get", orga).expect(t, 0).says(t,
		"state    active", "old (default)  9       90 %   own instances", "new            1       10 %   http://orgservice-new:8087")
	s.run("routes", "weights", orga, "old=3", "new=1").expect(t, 0).says(t, "changed, revision 3")
	s.run("routes", "get", orga).expect(t, 0).says(t, "75 %", "25 %")
	s.run("routes", "active", orga, "false").expect(t, 0).says(t, "changed, revision 4")
	s.run("routes", "list").expect(t, 0).says(t, "organizationservice  off    old*=3 new=1")
	s.run("routes", "rollback", orga, "1").expect(t, 0).says(t, "changed, revision 5")
	if got := s.record(orga); !reflect.DeepEqual(got, document(t, half)) {
		t.Errorf("after the rollback it is %v, want that of revision 1", got)
	}
	s.run("routes", "delete", orga, "--why=no more").expect(t, 0).says(t, "organizationservice: deleted, revision 6")
	s.run("routes", "get", orga).expect(t, 3).complains(t, "GET /v1/routes/organizationservice: 404 Not Found (no_record)")
	s.run("routes", "delete", orga).expect(t, 3)
	s.run("routes", "weights", orga, "old=1").expect(t, 3)
	s.run("routes", "rollback", orga, "99").expect(t, 4).complains(t, "\n  /revision: ")

	history := s.run("routes", "history", orga).expect(t, 0)
	lines := strings.Split(strings.TrimSpace(history.stdout), "\n")
	for i, want := range []string{`REVISION +WHEN +WHO +WHAT +WHY`,
		`6 .* anonymous +deleted +no more`, `5 .* changed +\S`, `4 .* changed +-`, `3 `, `2 .* changed +one in ten`, `1 .* anonymous +created +to begin with`} {
		if i >= len(lines) || !regexp.MustCompile(`^`+want+`$|^`+want).MatchString(lines[i]) {
			t.Errorf("line %d of the history is not %q:\n%s", i, want, history.stdout)
		}
	}
	s.run("routes", "history", orga, "--limit=2").expect(t, 0).says(t, "there are more: --before 5")
	s.run("routes", "history", orga, "--limit=2", "--before=3").expect(t, 0).says(t, "\n2 ", "\n1 ")
	var page struct{ Entries []struct{ Before, After any } }
	s.run("routes", "history", orga, "--limit=1", "--output=json").expect(t, 0).json(t, &page)
	if len(page.Entries) != 1 || page.Entries[0].After != nil || !reflect.DeepEqual(page.Entries[0].Before, document(t, half)) {
		t.Errorf("history --output json = %+v, want the delete", page)
	}
}

func TestConditionsKeepWhatOthersWrote(t *testing.T) {
	t.Parallel()
	s := serve(t, admin)
	s.put(orga, half, "--if-match=*").expect(t, 5).complains(t, "412", "precondition_failed")
	s.put(orga, half, "--if-none-match=*").expect(t, 0)
	s.put(orga, half, "--if-none-match=*").expect(t, 5)
	first := s.etag(orga)
	s.put(orga, tenth, "--if-match", first).expect(t, 0)
	s.put(orga, half, "--if-match", first).expect(t, 5)
	bare := strings.Trim(s.etag(orga), `"`)
	s.run("routes", "weights", orga, "old=7", "new=3", "--if-match", bare).expect(t, 0)
	for _, args := range [][]string{{"weights", orga, "old=1", "new=1"}, {"active", orga, "false"}, {"rollback", orga, "1"}, {"delete", orga}} {
		s.run(append(append([]string{"routes"}, args...), "--if-match", first)...).expect(t, 5)
	}
	s.run("routes", "get", orga).expect(t, 0).says(t, "70 %")
	s.run("routes", "put", orga, "--if-match=nonsense").expect(t, 4).complains(t, "If-Match: ")
}

func TestWhatIsRefusedIsToldAllAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, admin)
	s.put(orga, `{"service":"organizationservice","active":true,"default":"none","variants":[{"name":"old"},{"name":"Old","weight":1}]}`).
		expect(t, 4).complains(t, "422 Unprocessable Entity (invalid_record)", "\n  /variants/0/weight: ", "\n  /variants/1/name: ", "\n  /default: ")
	s.put(orga, `{"service":"organizationservice","active":true,"colour":"red"}`).expect(t, 4).complains(t, "\n  /colour: ")
	s.put(orga, "").expect(t, 4).complains(t, "\n  the document: is empty")
	s.put(orga, `{"service":"licensingservice","active":true}`).expect(t, 4).complains(t, "\n  /service: ")
	s.put(orga, `{"service":"`+strings.Repeat("x", 2<<20)+`"}`).expect(t, 4).complains(t, "413")
	s.put("No_Name", half).expect(t, 4).complains(t, "service: ")
	s.put(orga, half, "--why", strings.Repeat("y", 501)).expect(t, 4).complains(t, "why: ")
	s.run("routes", "get", orga).expect(t, 3)

	s.put(orga, half).expect(t, 0)
	s.run("routes", "weights", orga, "old=0", "new=0").expect(t, 4)
	s.run("routes", "weights", orga, "old=1").expect(t, 4)
	s.run("routes", "weights", orga, "old=-1", "new=1").expect(t, 4)
	s.run("routes", "history", orga, "--limit=1001").expect(t, 4).complains(t, "limit: ")
	if got := s.record(orga); !reflect.DeepEqual(got, document(t, half)) {
		t.Errorf("after what was refused it is %v", got)
	}
}

func TestADryRunShowsAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, admin)
	s.put(orga, half, "--dry-run").expect(t, 0).says(t, "add")
	s.run("routes", "get", orga).expect(t, 3)
	s.put(orga, half).expect(t, 0)
	before := s.etag(orga)
	s.run("routes", "weights", orga, "old=9", "new=1", "--dry-run").expect(t, 0).
		says(t, "replace  /variants/0/weight  5       9", "replace  /variants/1/weight  5       1", "would move", "new   old")
	s.put(orga, half, "--dry-run").expect(t, 0).says(t, "nothing would change", " 0 would move")
	s.run("routes", "delete", orga, "--dry-run").expect(t, 0).says(t, "remove")
	s.put(orga, `{"service":"organizationservice","active":1}`, "--dry-run").expect(t, 4)
	s.put(orga, half, "--dry-run", "--if-none-match=*").expect(t, 5)
	var would struct {
		DryRun bool
		Moves  struct{ Sample, Moved int }
	}
	s.run("routes", "weights", orga, "old=9", "new=1", "--dry-run", "--output=json").expect(t, 0).json(t, &would)
	if share := float64(would.Moves.Moved) / float64(would.Moves.Sample); !would.DryRun || share < .35 || share > .45 {
		t.Errorf("--dry-run --output json = %+v, want 40 %% moved", would)
	}
	if after := s.etag(orga); after != before {
		t.Errorf("the ETag went from %s to %s by dry runs", before, after)
	}
}

func TestExplainSaysWhichVariantAndWhy(t *testing.T) {
	t.Parallel()
	s := serve(t, admin)
	s.put(orga, `{"service":"organizationservice","active":true,"default":"old",
		"variants":[{"name":"old","weight":9},{"name":"new","weight":1,"endpoint":"http://orgservice-new:8087"},{"name":"labelled","weight":0,"selector":{"version":"2"}}],
		"rules":[{"name":"testers","match":[{"on":"header","name":"tmx-user-id","in":["u-17"]},{"on":"path","prefix":"/v1/"},{"on":"query","name":"q","in":["a b"]}],"variant":"new"},
			{"name":"office","match":[{"on":"client","cidr":"10.0.0.0/8"}],"variant":"labelled"}]}`).expect(t, 0)
	explain := func(args ...string) outcome {
		return s.run(append([]string{"routes", "explain", orga}, args...)...).expect(t, 0)
	}
	explain("--header", "tmx-user-id: u-17", "--path", "/v1/x?q=a%20b").
		says(t, "variant  new", "reason   rule:testers", "place    http://orgservice-new:8087", "record   organizationservice, revision 1", "testers  taken")
	explain("--header", "tmx-user-id: u-17", "--path", "/v2/x?q=a%20b", "--draw=1").says(t, "variant  old", "reason   draw", "testers  passed")
	explain("--client", "10.1.2.3").says(t, "reason   rule:office", "with version=2")
	explain("--override", "new", "--client", "10.1.2.3").says(t, "reason   override")
	explain("--path", "/v1/../x", "--header", "tmx-user-id: u-17").says(t, "variant  -", "reason   refused", "place    -", "the gateway answers 400 (bad_path)")
	explain("--draw=9").says(t, "variant  old", "own instances")
	explain("--draw=10", "--method=POST").says(t, "variant  new")

	// A record that is not stored decides instead of the one that is.
	explain("--record", writeFile(t, half), "--draw=6").says(t, "variant  new", "reason   draw")
	c := s.with()
	c.stdin = `{"service":"organizationservice","active":false}`
	c.run("routes", "explain", orga, "--record=-").expect(t, 0).says(t, "reason   inactive")
	s.run("routes", "explain", orga, "--record", writeFile(t, `{"active":true}`)).expect(t, 4).complains(t, "/record")
	s.run("routes", "explain", orga, "--record", writeFile(t, `nonsense`)).expect(t, 4).complains(t, "not JSON")
	s.run("routes", "explain", orga, "--client=nowhere").expect(t, 4).complains(t, "/request/client: ")

	var all struct {
		Variant string
		Steps   []struct{ Step string }
	}
	s.run("routes", "explain", "unheard-of", "--output=json").expect(t, 0).json(t, &all)
	if all.Variant != "default" || len(all.Steps) == 0 {
		t.Errorf("explain of a service without a record = %+v", all)
	}
}

// The list goes on where a page ends.
func TestListShowsAllPages(t *testing.T) {
	t.Parallel()
	s := serve(t, admin)
	const many = 1001
	for i := range many {
		body := fmt.Sprintf(`{"service":"s-%04d","active":false}`, i)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, fmt.Sprintf("%s/v1/routes/s-%04d", s.url, i), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusCreated {
			t.Fatalf("PUT %d = %s", i, res.Status)
		}
	}
	s.put("*", `{"service":"*","active":true,"onUnavailable":"fail"}`).expect(t, 0)
	s.run("routes", "get", "*").expect(t, 0).says(t, "onUnavailable  fail")
	if n := strings.Count(s.run("routes", "list").expect(t, 0).stdout, "\n"); n != 1+1+many {
		t.Errorf("the table has %d lines, want a head and %d records", n, many+1)
	}
	var all struct {
		Routes []struct{ Service string }
		Next   *string
	}
	s.run("routes", "list", "--output=json").expect(t, 0).json(t, &all)
	if len(all.Routes) != many+1 || all.Next != nil || all.Routes[many].Service != "s-1000" {
		t.Errorf("list --output json has %d records, next %v", len(all.Routes), all.Next)
	}
}

func TestWhatSomebodyShouldLookAtIsWarnedOf(t *testing.T) {
	t.Parallel()
	s := serve(t, admin)
	s.put(orga, `{"service":"organizationservice","active":true,"ends":"2020-01-01","owner":"organization team"}`).expect(t, 0)
	s.run("routes", "list").expect(t, 0).says(t, "organization team").complains(t, "warning: organizationservice: ")
}

// A row that was written by hand, past all rules.
func TestARecordThatCannotBeUsedIsShownAndCanBeReplaced(t *testing.T) {
	t.Parallel()
	s := serve(t, admin)
	db, err := sql.Open("sqlite", s.file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, service := range []string{orga, "licensingservice"} {
		if _, err := db.ExecContext(t.Context(), "INSERT INTO routes (service, record) VALUES (?, ?)", service, `{"service":"`+service+`","active":"Y"}`); err != nil {
			t.Fatal(err)
		}
	}
	s.run("routes", "list").expect(t, 0).says(t, "organizationservice  broken").complains(t, "warning: organizationservice: the record cannot be used: ")
	s.run("routes", "get", orga).expect(t, 5).complains(t, "409", "(record_broken)", "/active")
	s.run("routes", "weights", orga, "old=1").expect(t, 5).complains(t, "(record_broken)")
	s.put(orga, half).expect(t, 0).says(t, "changed")
	s.run("routes", "get", orga).expect(t, 0).says(t, "active")
	s.run("routes", "delete", "licensingservice").expect(t, 0).says(t, "deleted")
}

// What stands in a record cannot steer the terminal that it is shown on.
func TestControlCharactersAreShownAsSuch(t *testing.T) {
	t.Parallel()
	s := serve(t, admin)
	o := s.put(orga, `{"service":"organizationservice","active":true,"rules":[{"name":"r","match":[{"on":"query","name":"q","in":["a\u001b[2J","b\u0007"]}],"variant":"default"}]}`)
	if o.code == 4 { // the server does not keep such a text
		o.complains(t, "/rules/0/match/0/in/0: ")
	}
	for _, o := range []outcome{o, s.run("routes", "get", orga), s.run("routes", "get", "\x1b[2J")} {
		if i := strings.IndexAny(o.stdout+o.stderr, "\x1b\x07"); i >= 0 {
			t.Errorf("%q prints a control character: %q %q", o.args, o.stdout, o.stderr)
		}
	}
}

func TestPutReadsAFile(t *testing.T) {
	t.Parallel()
	s := serve(t, admin)
	s.run("routes", "put", orga, "/nowhere/record.json").expect(t, 1).complains(t, "/nowhere/record.json: no such file")
	s.run("routes", "put", orga, os.TempDir()).expect(t, 1).complains(t, "is a directory")
	c := s.with()
	c.stdin = half
	c.run("routes", "put", orga, "-").expect(t, 0).says(t, "created")
}
