package e2e_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	faultRow  = regexp.MustCompile(`^\| ([0-9]+) \| ([a-z-]+) \| (.+) \| (.+) \| (.+) \|$`)
	suiteTest = regexp.MustCompile(`^((Test|Fuzz|Benchmark)[A-Z]|[a-z]+[A-Z])\w+$`)
)

// faultNumbers are those of the list of inputs that break gateways.
func faultNumbers() []int {
	missing := []int{16, 17, 23, 31, 40, 43, 47, 52, 55, 64, 68, 75, 78, 83, 85, 91, 93, 101, 105, 108, 119, 121, 125}
	var all []int
	for n := 1; n <= 130; n++ {
		if !slices.Contains(missing, n) {
			all = append(all, n)
		}
	}
	return all
}

// TestEveryFaultNamesTestsThatExist reads docs/faults.md: each input of the list
// has one row, and each test that a row names is a function of the directory
// before it.
func TestEveryFaultNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	root := repositoryRoot(t)
	var rows []int
	sources := map[string]string{}
	for line := range strings.Lines(readFile(t, filepath.Join(root, "docs", "faults.md"))) {
		row := faultRow.FindStringSubmatch(strings.TrimSpace(line))
		if row == nil {
			continue
		}
		n, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, n)
		dir, tests := "", 0
		for _, span := range codeSpan.FindAllStringSubmatch(row[5], -1) {
			name := span[1]
			if !suiteTest.MatchString(name) {
				dir = name
				continue
			}
			tests++
			if _, read := sources[dir]; !read {
				sources[dir] = functions(t, filepath.Join(root, dir))
			}
			if !strings.Contains(sources[dir], " "+name+"(") {
				t.Errorf("row %d: there is no %s in %q", n, name, dir)
			}
		}
		if tests == 0 {
			t.Errorf("row %d names no test: %s", n, row[5])
		}
	}
	if want := faultNumbers(); !slices.Equal(rows, want) {
		t.Errorf("the rows are %v, want %v", rows, want)
	}
}

// functions are the first lines of all functions of a directory.
func functions(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Errorf("no tests in %s: %v", dir, err)
	}
	var heads strings.Builder
	for _, file := range files {
		for line := range strings.Lines(readFile(t, file)) {
			if strings.HasPrefix(line, "func ") {
				heads.WriteString(line)
			}
		}
	}
	return heads.String()
}
