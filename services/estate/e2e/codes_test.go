package e2e_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// documented tells whether a word stands in one of the documents of the project.
func documented(t *testing.T, word string) bool {
	t.Helper()
	root := repositoryRoot(t)
	whole := regexp.MustCompile(`(^|[^A-Za-z_-])` + regexp.QuoteMeta(word) + `($|[^A-Za-z_-])`)
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if whole.MatchString(readFile(t, file)) {
				return true
			}
		}
	}
	return false
}

func TestEveryCodeThatTheGatewayAnswersWithIsDocumented(t *testing.T) {
	t.Parallel()
	hanging := newUpstream(t, "hanging", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	l := newLab(t, labOptions{config: map[string]string{
		"routes": fmt.Sprintf("[{prefix: %s, service: %s}, {prefix: /api/none, service: none-service}, {prefix: /api/shut, service: shut-service},"+
			" {prefix: /api/garbage, service: garbage-service}, {prefix: /api/hanging, service: hanging-service}]", labPrefix, labService),
		"instances": fmt.Sprintf("{shut-service: [{id: a, address: %q}], garbage-service: [{id: a, address: %q}], hanging-service: [{id: a, address: %q}]}",
			shared.ports.free(t), serveBytes(t, "this is no HTTP\r\n\r\n"), hanging.addr()),
		"limits":   "{bodyBytes: 1000}",
		"timeouts": "{response: 100ms}",
	}})
	for name, got := range map[string]answer{
		"a bad triplet":      rawGet(t, l.data, labPrefix+"/%zz"),
		"a dot segment":      rawGet(t, l.data, labPrefix+"/../x"),
		"no host":            raw(t, l.data, "GET "+labPrefix+"/x HTTP/1.1\r\nConnection: close\r\n\r\n"),
		"no HTTP":            raw(t, l.data, "garbage\r\n\r\n"),
		"no route":           rawGet(t, l.data, "/nothing"),
		"a long body":        call(t, "POST", "http://"+l.data+"/api/hanging/x", strings.NewReader(strings.Repeat("x", 1001)), nil),
		"a long head":        rawGet(t, l.data, labPrefix+"/x", "X-Long: "+strings.Repeat("x", 80_000)),
		"an endless head":    rawGet(t, l.data, labPrefix+"/x", "X-Long: "+strings.Repeat("x", 2_000_000)),
		"no instance":        rawGet(t, l.data, "/api/none/x"),
		"connect failed":     rawGet(t, l.data, "/api/shut/x"),
		"a bad answer":       rawGet(t, l.data, "/api/garbage/x"),
		"an answer too late": rawGet(t, l.data, "/api/hanging/x"),
	} {
		doc, err := parseProblem(got)
		if err != nil {
			t.Errorf("%s: status %d: %v: %.300s", name, got.status, err, got.body)
			continue
		}
		if !documented(t, doc.Code) {
			t.Errorf("%s: status %d: the code %q is named neither in the README nor in docs/", name, got.status, doc.Code)
		}
	}
}
