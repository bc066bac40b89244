package e2e_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	demandRow  = regexp.MustCompile(`^\| ([A-Z][0-9]+) \| (.+) \| (.+) \|$`)
	codeSpan   = regexp.MustCompile("`([^`]+)`")
	testSource = regexp.MustCompile(`^(Test|Fuzz|Benchmark)[A-Z]\w+$`)
)

// TestEveryDemandNamesTestsThatExist reads docs/demands.md: each demand has one
// row, and each test that a row names is a function of the directory before it.
func TestEveryDemandNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	root := repositoryRoot(t)
	var want, got []string
	for _, group := range []struct {
		letter      string
		first, last int
	}{{"S", 1, 20}, {"K", 1, 17}, {"C", 1, 6}, {"A", 1, 6}, {"V", 1, 4}, {"L", 1, 9}, {"D", 4, 7}, {"D", 11, 14}, {"H", 1, 12}} {
		for n := group.first; n <= group.last; n++ {
			want = append(want, fmt.Sprintf("%s%d", group.letter, n))
		}
	}
	sources := map[string]string{}
	for line := range strings.Lines(readFile(t, filepath.Join(root, "docs", "demands.md"))) {
		row := demandRow.FindStringSubmatch(strings.TrimSpace(line))
		if row == nil {
			continue
		}
		got = append(got, row[1])
		dir, tests := "", 0
		for _, span := range codeSpan.FindAllStringSubmatch(row[3], -1) {
			name := span[1]
			if !testSource.MatchString(name) {
				dir = name
				continue
			}
			tests++
			if _, read := sources[dir]; !read {
				sources[dir] = testFunctions(t, filepath.Join(root, dir))
			}
			if !strings.Contains(sources[dir], "func "+name+"(") {
				t.Errorf("%s: there is no %s in %q", row[1], name, dir)
			}
		}
		if tests == 0 && row[3] != "nothing to test" {
			t.Errorf("%s names no test: %s", row[1], row[3])
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the rows are %v, want %v", got, want)
	}
}

// testFunctions is the text of all test files of a directory.
func testFunctions(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Errorf("no tests in %s: %v", dir, err)
	}
	var text strings.Builder
	for _, file := range files {
		text.WriteString(readFile(t, file))
	}
	return text.String()
}
