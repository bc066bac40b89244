package migrations_test

import (
	"io/fs"
	"regexp"
	"slices"
	"testing"

	"specialroutes.example/migrations"
)

// names returns the files of one kind of database.
func names(t *testing.T, files fs.FS) []string {
	t.Helper()
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, entry := range entries {
		list = append(list, entry.Name())
	}
	return list
}

func TestBothDatabasesHaveTheSameSteps(t *testing.T) {
	postgres, sqlite := names(t, migrations.Postgres()), names(t, migrations.SQLite())
	if !slices.Equal(postgres, sqlite) {
		t.Errorf("steps differ:\npostgres %v\nsqlite   %v", postgres, sqlite)
	}
}

func TestEachStepIsANumberedPairOfVerbAndNoun(t *testing.T) {
	pattern := regexp.MustCompile(`^(\d{6}_[a-z]+_[a-z_]+)\.(up|down)\.sql$`)
	halves := map[string]int{}
	for _, name := range names(t, migrations.Postgres()) {
		m := pattern.FindStringSubmatch(name)
		if m == nil {
			t.Errorf("%s is not NNNNNN_verb_noun.up.sql or .down.sql", name)
			continue
		}
		halves[m[1]]++
	}
	for step, n := range halves {
		if n != 2 {
			t.Errorf("%s has %d of its two files", step, n)
		}
	}
}
