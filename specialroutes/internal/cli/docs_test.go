package cli_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"specialroutes.example/specialroutes/internal/cli"
)

func TestTheExitCodesAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/command-line.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## Exit codes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| (.*) \|$`).FindAllStringSubmatch(section, -1)
	codes := cli.ExitCodes()
	if !ok || len(rows) != len(codes) {
		t.Fatalf("the page has %d exit codes, the program %d", len(rows), len(codes))
	}
	for i, row := range rows {
		if row[1] != strconv.Itoa(i) || row[2] != codes[i] {
			t.Errorf("the page says | %s | %s |, the program %d: %s", row[1], row[2], i, codes[i])
		}
	}
}

// The page names no flag that there is not.
func TestTheDocumentationNamesTheFlags(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/command-line.md")
	if err != nil {
		t.Fatal(err)
	}
	flag := regexp.MustCompile(`--[a-z][a-z-]+`)
	known := map[string]bool{"--help": true}
	for _, line := range []string{
		"routes", "routes list", "routes get", "routes put", "routes delete", "routes weights", "routes active",
		"routes history", "routes rollback", "routes explain", "gateways", "override",
		"labels", "labels list", "labels get", "labels set", "labels clear", "labels history",
	} {
		help := command{t: t}.run(append(strings.Fields(line), "--help")...).expect(t, 0)
		for _, name := range flag.FindAllString(help.stdout, -1) {
			known[name] = true
		}
	}
	for _, name := range flag.FindAllString(string(page), -1) {
		if !known[name] {
			t.Errorf("the page names %s, which no command knows", name)
		}
	}
}
