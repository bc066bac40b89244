package pgcluster

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// ErrNotInstalled says that PostgreSQL's programs are not on this machine.
var ErrNotInstalled = errors.New("pgcluster: PostgreSQL is not installed (initdb and postgres were not found)")

// Find returns the directory with the newest initdb and postgres among the places
// where the systems' packages put them, or else the one in PATH. The error is
// ErrNotInstalled.
func Find() (string, error) {
	if dir, err := newest(packageDirs()...); err == nil {
		return dir, nil
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", ErrNotInstalled
	}
	// The name in PATH is often a link to a directory with all programs.
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", ErrNotInstalled
	}
	return newest(filepath.Dir(path))
}

// programs returns the directory to take initdb and postgres from: the given one,
// or the one found when none is given.
func programs(dir string) (string, error) {
	if dir == "" {
		return Find()
	}
	return newest(dir)
}

// packageDirs are patterns of directories that packages use. Debian and Homebrew
// keep these out of PATH.
func packageDirs() []string {
	return []string{
		"/usr/lib/postgresql/*/bin",                          // Debian, Alpine
		"/usr/pgsql-*/bin",                                   // the PostgreSQL project's RPMs
		"/opt/homebrew/opt/postgresql@*/bin",                 // Homebrew
		"/usr/local/opt/postgresql@*/bin",                    // Homebrew on Intel
		"/Applications/Postgres.app/Contents/Versions/*/bin", // Postgres.app
		"/opt/local/lib/postgresql*/bin",                     // MacPorts
	}
}

// newest returns the directory of the highest version among those that match the
// patterns and hold both programs.
func newest(patterns ...string) (string, error) {
	var found []string
	for _, pattern := range patterns {
		dirs, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		found = append(found, slices.DeleteFunc(dirs, func(dir string) bool {
			return !isFile(filepath.Join(dir, "initdb")) || !isFile(filepath.Join(dir, "postgres"))
		})...)
	}
	if len(found) == 0 {
		return "", ErrNotInstalled
	}
	return slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) }), nil
}

// version reads the major version out of a directory's name, 0 when there is none.
func version(dir string) int {
	n, err := strconv.Atoi(regexp.MustCompile(`\d+`).FindString(filepath.Base(filepath.Dir(dir))))
	if err != nil {
		return 0
	}
	return n
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
