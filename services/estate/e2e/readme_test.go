package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// How the README must be written, so that this test can read it:
//
//   - Commands stand in ```sh blocks, without a prompt; a command may run over
//     several lines, as in a terminal. All of them are run in order in one shell,
//     at the root of a copy of the tree, while `make demo` runs. None may fail.
//   - What a command prints stands in the ```text or ```json block that follows
//     its ```sh block. Of a text each line must be found in the output; of a JSON
//     value all that is shown must be in the JSON that was printed.
//   - In either, OLD:: and NEW:: stand for either of the two, … or ... for
//     anything, and a UUID and a date for any other.
//   - A text that counts ("  12 OLD::Mark Balster", "  20 X-Served-By: org-1", as
//     uniq -c does) means what it says: those that it shows are those that answered,
//     and if it shows one only, their number is that one too. Show each tour's effect
//     so.
//   - `make x` in the running text must be a target of the Makefile; another
//     command there must also be one that a block has.
//   - Other blocks are yaml, go, sql, http or mermaid; text with a "$ " is refused.

// elsewhere are the commands of the README that this test does not run itself,
// and where they are run. The file must contain the command.
var elsewhere = []struct{ begins, where, why string }{
	{"make demo", "services/estate/e2e/readme_test.go", "runs in the background while all others are tried"},
	{"make test", ".ci/run", "it is what runs this test"},
	{"make lint", ".ci/run", "it looks at the sources, not at the estate"},
	{"docker compose", ".ci/compose-estate", "needs Docker, and the ports of the demo"},
	{"git clone", "", "the tree is copied instead"},
	{"cd ", "", "a block starts at the root of the tree"},
}

// block is one fenced block of a Markdown file.
type block struct {
	language string
	line     int
	text     string
}

func fencedBlocks(text string) ([]block, error) {
	var blocks []block
	var open *block
	number := 0
	for line := range strings.Lines(text) {
		number++
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && open == nil:
			open = &block{language: strings.TrimSpace(fence), line: number}
		case isFence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += line
		}
	}
	if open != nil {
		return nil, fmt.Errorf("the block at line %d does not end", open.line)
	}
	return blocks, nil
}

// step is one ```sh block with the output that the README shows for it.
type step struct {
	line     int
	commands []string
	shown    *block
}

func steps(t *testing.T, readme string) []step {
	t.Helper()
	blocks, err := fencedBlocks(readme)
	if err != nil {
		t.Fatal(err)
	}
	var found []step
	for i, b := range blocks {
		switch b.language {
		case "sh":
			commands, err := splitCommands(b.text)
			if err != nil {
				t.Errorf("README line %d: %v", b.line, err)
			}
			s := step{line: b.line, commands: commands}
			if i+1 < len(blocks) && slices.Contains([]string{"text", "json"}, blocks[i+1].language) {
				s.shown = &blocks[i+1]
			}
			found = append(found, s)
		case "text", "json", "yaml", "go", "sql", "http", "mermaid":
			if regexp.MustCompile(`(?m)^\s*\$ `).MatchString(b.text) {
				t.Errorf("README line %d: a command with a prompt in a %s block; commands stand in sh blocks", b.line, b.language)
			}
		default:
			t.Errorf("README line %d: a block of language %q: it could hold commands that nobody runs", b.line, b.language)
		}
	}
	return found
}

// splitCommands cuts a block into whole commands, as the shell itself would: lines
// are added until the shell finds them complete.
func splitCommands(text string) ([]string, error) {
	var commands []string
	var command string
	for line := range strings.Lines(text) {
		if command == "" && (strings.TrimSpace(line) == "" || strings.HasPrefix(strings.TrimSpace(line), "#")) {
			continue
		}
		if strings.HasPrefix(line, "$ ") || strings.Contains(line, "<<") {
			return nil, fmt.Errorf("%q: neither a prompt nor a here-document can be run", strings.TrimSpace(line))
		}
		command += line
		if strings.HasSuffix(strings.TrimRight(command, "\n"), "\\") || exec.Command("sh", "-n", "-c", command).Run() != nil {
			continue
		}
		commands = append(commands, strings.TrimRight(command, "\n"))
		command = ""
	}
	if command != "" {
		return nil, fmt.Errorf("the shell does not understand %q", command)
	}
	return commands, nil
}

// isElsewhere tells whether a command is one of those that are run elsewhere.
func isElsewhere(command string) bool {
	return slices.ContainsFunc(elsewhere, func(e struct{ begins, where, why string }) bool {
		return strings.HasPrefix(command, e.begins)
	})
}

// TestEveryCommandOfTheREADMEIsRunSomewhere looks only at the texts.
func TestEveryCommandOfTheREADMEIsRunSomewhere(t *testing.T) {
	t.Parallel()
	root := repositoryRoot(t)
	readme := readFile(t, filepath.Join(root, "README.md"))
	var commands []string
	for _, s := range steps(t, readme) {
		commands = append(commands, s.commands...)
	}
	for _, must := range []string{"make demo", "docker compose up", "make test", "curl"} {
		if !slices.ContainsFunc(commands, func(c string) bool { return strings.Contains(c, must) }) {
			t.Errorf("the README does not show %s", must)
		}
	}
	for _, e := range elsewhere {
		used := slices.ContainsFunc(commands, func(c string) bool { return strings.HasPrefix(c, e.begins) })
		if used && e.where != "" && !strings.Contains(readFile(t, filepath.Join(root, e.where)), strings.TrimSpace(e.begins)) {
			t.Errorf("the README shows %s, and %s does not run it", e.begins, e.where)
		}
	}
	makefile := readFile(t, filepath.Join(root, "Makefile"))
	fences := regexp.MustCompile("(?ms)^\\s*```.*?^\\s*```")
	for _, span := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(fences.ReplaceAllString(readme, ""), -1) {
		program, rest, _ := strings.Cut(span[1], " ")
		switch {
		case program == "make" && rest != "":
			target := strings.Fields(rest)[0]
			if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:`).MatchString(makefile) {
				t.Errorf("the README names `%s`, which is no target of the Makefile", span[1])
			}
		case slices.Contains([]string{"curl", "docker", "go", "psql", "pg_dump", "sqlite3"}, program) && rest != "":
			if !isElsewhere(span[1]) && !slices.ContainsFunc(commands, func(c string) bool { return strings.Contains(c, span[1]) }) {
				t.Errorf("the README names `%s` in the text and runs it in no block", span[1])
			}
		}
	}
}

// Not parallel: the demo has fixed ports.
func TestTheREADMEsCommandsWorkOnTheDemo(t *testing.T) {
	root := repositoryRoot(t)
	demo := startMakeDemo(t, root)
	todo := steps(t, readFile(t, filepath.Join(root, "README.md")))
	if len(todo) == 0 {
		t.Fatal("the README shows no command")
	}
	shell := newShell(t, demo.cmd.Dir)
	for _, s := range todo {
		t.Run(fmt.Sprintf("line %d", s.line), func(t *testing.T) { runStep(t, shell, s) })
	}
	t.Run("the demo showed a live count", func(t *testing.T) {
		poll(t, 10*time.Second, "a count of OLD and NEW", func() error {
			for _, side := range []string{"OLD", "NEW"} {
				if !regexp.MustCompile(side + `\W{0,20}[1-9]`).MatchString(demo.out.String()) {
					return fmt.Errorf("no count of %s in:\n%s", side, demo.out.tail(10))
				}
			}
			return nil
		})
	})
	t.Run("Ctrl-C leaves no process and no port", func(t *testing.T) { demo.interrupt(t) })
}

// runStep runs the commands of one block and compares what they print. A block
// that only reads is tried again for a while: a change of the block before it may
// still be on its way.
func runStep(t *testing.T, shell *shell, s step) {
	var toRun []string
	for _, command := range s.commands {
		if !isElsewhere(command) {
			toRun = append(toRun, command)
		}
	}
	if len(toRun) == 0 {
		return
	}
	readsOnly := !slices.ContainsFunc(toRun, func(c string) bool {
		return regexp.MustCompile(`(^|\s)(-X|--request|-d|--data\S*|--json|-T|-F)(\s|=|'|"|[A-Z])`).MatchString(c) || !strings.Contains(c, "curl")
	})
	deadline := time.Now().Add(10 * time.Second)
	for {
		var output strings.Builder
		for _, command := range toRun {
			out, code := shell.run(t, command)
			if code != 0 {
				t.Fatalf("%s\nexit code %d:\n%s", command, code, out)
			}
			output.WriteString(out + "\n")
		}
		if s.shown == nil {
			return
		}
		err := fits(*s.shown, output.String())
		if err == nil {
			return
		}
		if !readsOnly || time.Now().After(deadline) {
			t.Fatalf("%s\nprinted:\n%s\nthe README (line %d) shows something else: %v", strings.Join(toRun, "\n"), output.String(), s.shown.line, err)
		}
	}
}

// fits compares an output with what the README shows of it.
func fits(shown block, output string) error {
	if shown.language == "json" {
		var want any
		if json.Unmarshal([]byte(shown.text), &want) == nil {
			return jsonFits(want, output)
		}
	}
	want, got := sides(shown.text), sides(output)
	if len(want) > 0 && !slices.Equal(want, got) {
		return fmt.Errorf("counted are %q, want %q", got, want)
	}
	for line := range strings.Lines(shown.text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if len(want) == 1 {
			line = strings.NewReplacer("…", "...").Replace(line)
			if !literal(line).MatchString(output) {
				return fmt.Errorf("no line is %q", line)
			}
			continue
		}
		if !pattern(line).MatchString(output) {
			return fmt.Errorf("no line is like %q", line)
		}
	}
	return nil
}

// counted finds a line as uniq -c writes it, of a contact's name or an instance.
var counted = regexp.MustCompile(`(?im)^\s*\d+ +([A-Z]*::|x-served-by: *\S+)`)

// sides names what a text counts, in order.
func sides(text string) []string {
	var found []string
	for _, match := range counted.FindAllStringSubmatch(text, -1) {
		found = append(found, strings.ToLower(match[1]))
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// literal is a line that must be there as it is, but for white space.
func literal(line string) *regexp.Regexp {
	quoted := strings.ReplaceAll(regexp.QuoteMeta(line), `\.\.\.`, ".*")
	return regexp.MustCompile(`(?im)^\s*` + regexp.MustCompile(`\s+`).ReplaceAllString(quoted, `\s+`) + `\s*$`)
}

var varying = regexp.MustCompile(`OLD::|NEW::|…|\.\.\.|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[0-9:.]+Z?|^\d+\b|\s+`)

// pattern makes a line of the README into what it stands for.
func pattern(line string) *regexp.Regexp {
	var expression strings.Builder
	end := 0
	for _, at := range varying.FindAllStringIndex(line, -1) {
		expression.WriteString(regexp.QuoteMeta(line[end:at[0]]))
		end = at[1]
		switch found := line[at[0]:at[1]]; {
		case found == "OLD::" || found == "NEW::":
			expression.WriteString("(OLD|NEW)::")
		case found == "…" || found == "...":
			expression.WriteString(".*")
		case strings.TrimSpace(found) == "":
			expression.WriteString(`\s+`)
		case strings.Contains(found, "T"):
			expression.WriteString(`\d{4}-\d\d-\d\dT[0-9:.]+Z?`)
		case strings.Contains(found, "-"):
			expression.WriteString(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
		default:
			expression.WriteString(`\d+`)
		}
	}
	expression.WriteString(regexp.QuoteMeta(line[end:]))
	return regexp.MustCompile(`(?im)^\s*` + expression.String() + `\s*$`)
}

// jsonFits looks for a JSON value in an output that holds all of want.
func jsonFits(want any, output string) error {
	last := fmt.Errorf("the output holds no JSON")
	for i, r := range output {
		if r != '{' && r != '[' {
			continue
		}
		var got any
		if json.NewDecoder(strings.NewReader(output[i:])).Decode(&got) != nil {
			continue
		}
		if last = holds(got, want, ""); last == nil {
			return nil
		}
	}
	return last
}

// holds tells whether got has all that want shows.
func holds(got, want any, at string) error {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is %v, want an object", at, got)
		}
		for name, value := range w {
			if _, ok := g[name]; !ok {
				return fmt.Errorf("%s/%s is missing", at, name)
			}
			if err := holds(g[name], value, at+"/"+name); err != nil {
				return err
			}
		}
		return nil
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) < len(w) {
			return fmt.Errorf("%s is %v, want %v", at, got, w)
		}
		for i, value := range w {
			if err := holds(g[i], value, fmt.Sprintf("%s/%d", at, i)); err != nil {
				return err
			}
		}
		return nil
	case string:
		if g, ok := got.(string); !ok || !pattern(w).MatchString(g) && g != w {
			return fmt.Errorf("%s is %v, want %q", at, got, w)
		}
		return nil
	default:
		if got != want {
			return fmt.Errorf("%s is %v, want %v", at, got, want)
		}
		return nil
	}
}

func TestTheREADMEsPatterns(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		language, shown, output string
		fit                     bool
	}{
		{"text", "OLD::Mark Balster", "x\nNEW::Mark Balster\n", true},
		{"text", "OLD::Mark Balster", "Mark Balster", false},
		{"text", "  48 OLD::…\n  52 NEW::…", "   3 OLD::Mark\n  97 NEW::Mark\n", true},
		{"text", "  48 OLD::…\n  52 NEW::…", "  100 OLD::Mark\n", false},
		{"text", "  20 OLD::Mark Balster", "  20 OLD::Mark Balster\n", true},
		{"text", "  20 OLD::Mark Balster", "  20 NEW::Mark Balster\n", false},
		{"text", "  20 OLD::Mark Balster", "  19 OLD::Mark Balster\n   1 NEW::Mark Balster\n", false},
		{"text", "  20 OLD::Mark Balster", "  19 OLD::Mark Balster\n", false},
		{"text", "  10 ALICE::\n  10 NEW::", "   9 ALICE::\n  11 NEW::\n", true},
		{"text", "  10 ALICE::\n  10 NEW::", "  20 ALICE::\n", false},
		{"text", "  20 X-Served-By: org-2.0.0", "  20 x-served-by: org-2.0.0\r\n", true},
		{"text", "  20 X-Served-By: org-2.0.0", "  19 X-Served-By: org-2.0.0\r\n   1 X-Served-By: org-1.0.0\r\n", false},
		{"text", "  20 X-Served-By: org-2.0.0", "  19 X-Served-By: org-2.0.0\r\n", false},
		{"text", "weight 5", "weight 6", false},
		{"text", "HTTP/1.1 200 OK", "HTTP/1.1 404 Not Found", false},
		{"text", "tmx-correlation-id: 0f8fad5b-d9cb-469f-a165-70867728950e", "Tmx-Correlation-Id: 7c9e6679-7425-40de-944b-e07fc1f90ae7\r\n", true},
		{"json", `{"contactName": "OLD::Mark Balster"}`, `HTTP/1.1 200 OK` + "\n\n" + `{"id":"x","contactName":"NEW::Mark Balster"}`, true},
		{"json", `{"weight": 10}`, `{"weight":1}`, false},
		{"json", `{"weight": 10}`, `nothing`, false},
		{"json", `{"records": [{"serviceName": "a"}]}`, `{"records":[{"serviceName":"a","weight":5}],"leftOut":0}`, true},
	} {
		if err := fits(block{language: test.language, text: test.shown}, test.output); (err == nil) != test.fit {
			t.Errorf("%q in %q: %v, want fit %v", test.shown, test.output, err, test.fit)
		}
	}
	commands, err := splitCommands("# a comment\nfor i in 1 2; do\n  echo $i\ndone\n\ncurl -s \\\n  -X PUT 'a\nb'\necho x | sort\n")
	if err != nil || len(commands) != 3 {
		t.Errorf("%d commands, %v: %q", len(commands), err, commands)
	}
}

// shell is one sh that runs commands one after the other, so that a variable that
// one of them sets is there for the next.
type shell struct {
	process *process
	input   *os.File
	done    int // commands run
}

func newShell(t testing.TB, dir string) *shell {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := &shell{process: &process{name: "sh", out: &output{}, done: make(chan struct{})}, input: writer}
	cmd := exec.Command("sh")
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, reader, s.process.out, s.process.out
	cmd.Env = append(baseEnviron(), goEnviron()...)
	s.process.cmd = cmd
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = reader.Close()
	go func() {
		defer close(s.process.done)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = writer.Close() // the shell ends at the end of its input
		select {
		case <-s.process.done:
		case <-time.After(5 * time.Second):
			s.process.kill()
		}
	})
	return s
}

// run runs one command and returns what it printed and its exit code.
func (s *shell) run(t *testing.T, command string) (string, int) {
	t.Helper()
	s.done++
	mark := fmt.Sprintf("end-of-command-%d", s.done)
	from := len(s.process.out.String())
	if _, err := fmt.Fprintf(s.input, "{ %s\n} </dev/null\nprintf '\\n%s %%d\\n' $?\n", command, mark); err != nil {
		t.Fatalf("the shell is gone: %v", err)
	}
	var output string
	var code int
	poll(t, 5*time.Minute, command+" ends", func() error {
		printed := s.process.out.String()[from:]
		before, after, found := strings.Cut(printed, "\n"+mark+" ")
		if !found || !strings.Contains(after, "\n") {
			return fmt.Errorf("so far: %s", printed)
		}
		output = before
		_, err := fmt.Sscan(after, &code)
		return err
	})
	return output, code
}

// goEnviron is what the go command needs to find its caches, and CI.
func goEnviron() []string {
	var environ []string
	out, err := exec.Command("go", "env", "-json", "GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOSUMDB", "GOFLAGS", "GOTOOLCHAIN").Output()
	if err == nil {
		var values map[string]string
		if json.NewDecoder(bytes.NewReader(out)).Decode(&values) == nil {
			for name, value := range values {
				environ = append(environ, name+"="+value)
			}
		}
	}
	return append(environ, "CI="+os.Getenv("CI"))
}
