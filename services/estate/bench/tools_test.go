package bench

import (
	"errors"
	"os/exec"
	"slices"
	"testing"
)

func TestMissingToolsAreNamedWithTheirPackages(t *testing.T) {
	err := checkTools(func(name string) (string, error) {
		if name == "wrk" || name == "nginx" {
			return "", exec.ErrNotFound
		}
		return "/usr/bin/" + name, nil
	})
	var missing *ToolsError
	if !errors.As(err, &missing) || !slices.Equal(missing.Missing, []string{"nginx", "wrk"}) {
		t.Fatalf("error = %v, want nginx and wrk missing", err)
	}
	if want := "bench: nginx, wrk not found; on Debian: apt-get install nginx-light wrk"; err.Error() != want {
		t.Errorf("error = %q, want %q", err, want)
	}
	if err := checkTools(func(name string) (string, error) { return name, nil }); err != nil {
		t.Errorf("with all tools: %v", err)
	}
}
