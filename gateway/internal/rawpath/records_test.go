package rawpath

import (
	"testing"

	"specialroutes.example/services/routing"
)

// Records may ask for a path exactly when requests may have it, and for a prefix
// exactly when a request may begin with it: the two read the policy alike. All
// short texts of the bytes that mean something are tried.
func TestRecordsAskForThePathsThatPass(t *testing.T) {
	t.Parallel()
	texts := shortTexts(`/.;%25efc0x#?\ `, 4)
	endings := append(shortTexts(`/.;%25efc0x`, 2), "21x")
	for _, text := range texts {
		path := "/" + text
		if got, want := mayAsk(routing.Match{On: routing.OnPath, In: []string{path}}), passes(path); got != want {
			t.Errorf("a record may ask for %q: %v, a request may have it: %v", path, got, want)
		}
		begins := false
		for _, ending := range endings {
			begins = begins || passes(path+ending)
		}
		if got := mayAsk(routing.Match{On: routing.OnPath, Prefix: &path}); got != begins {
			t.Errorf("a record may ask for the prefix %q: %v, a request may begin so: %v", path, got, begins)
		}
	}
}

// passes says whether a path arrives at routing as it is.
func passes(path string) bool {
	target, err := Parse(path)
	return err == nil && target.Path == path
}

func mayAsk(m routing.Match) bool {
	r := routing.Record{Service: "s", Active: new(true), Rules: []routing.Rule{
		{Name: "r", Match: []routing.Match{m}, Variant: new(routing.DefaultName)}}}
	return r.Validate() == nil
}

// shortTexts are all texts of up to n of the bytes.
func shortTexts(bytes string, n int) []string {
	texts, last := []string{""}, []string{""}
	for range n {
		var next []string
		for _, text := range last {
			for i := range len(bytes) {
				next = append(next, text+bytes[i:i+1])
			}
		}
		texts, last = append(texts, next...), next
	}
	return texts
}
