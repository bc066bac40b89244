package pgcluster

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func install(t *testing.T, dir string, names ...string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestNewestTakesTheHighestVersionThatIsComplete(t *testing.T) {
	root := t.TempDir()
	install(t, filepath.Join(root, "9", "bin"), "initdb", "postgres")
	want := install(t, filepath.Join(root, "15", "bin"), "initdb", "postgres")
	install(t, filepath.Join(root, "17", "bin"), "psql")     // clients only
	install(t, filepath.Join(root, "18", "bin"), "postgres") // half
	got, err := newest(filepath.Join(root, "none-*"), filepath.Join(root, "*", "bin"))
	if err != nil || got != want {
		t.Errorf("newest = %q, %v, want %q", got, err, want)
	}
}

func TestNewestSaysWhenNothingIsInstalled(t *testing.T) {
	if dir, err := newest(filepath.Join(t.TempDir(), "*", "bin")); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("newest = %q, %v, want ErrNotInstalled", dir, err)
	}
}
