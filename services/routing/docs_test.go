package routing_test

import (
	"os"
	"strings"
	"testing"
)

// The records that the documentation shows are valid.
func TestDocs_RecordsAreValid(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/routing.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(data), "```json\n")[1:]
	if len(blocks) < 2 {
		t.Fatalf("%d records in docs/routing.md, want at least 2", len(blocks))
	}
	for i, block := range blocks {
		document, _, _ := strings.Cut(block, "```")
		if errs := decode(t, document).Validate(); errs != nil {
			t.Errorf("record %d: %v", i, errs)
		}
	}
}
