package records_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/records"
	"specialroutes.example/gateway/internal/records/recordstest"
)

// nowhere is a specialroutes that is away.
const nowhere = "http://127.0.0.1:1"

// savedFile returns a file as a gateway leaves it that had a@1, b@2 and a version
// 4 of b that it could not use.
func savedFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "records.json")
	server := recordstest.NewScript(t)
	server.Then(
		recordstest.JSON(recordstest.Full("2.a", book("a", 1, 5), book("b", 2, 5))),
		recordstest.JSON(recordstest.Changed("4.a", []string{recordstest.Item("b", 4, bad)})),
	)
	f := follow(t, records.Options{URLs: []string{server.URL}, File: file})
	f.reach(t, "4.a", "a@1 b@2!4")
	f.stop()
	return file
}

func TestARestartWithoutSpecialroutesStartsFromTheFile(t *testing.T) {
	t.Parallel()
	file := savedFile(t)
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the file: got %o, want 600", info.Mode().Perm())
	}
	if left, _ := filepath.Glob(file + "?*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	f := follow(t, records.Options{URLs: []string{nowhere}, File: file})
	<-f.Ready()
	f.reach(t, "4.a", "a@1 b@2!4")
	st := f.Status()
	if st.Source != records.SourceFile || st.InForce != 2 || st.SetAside != 1 || st.Revision != 4 || time.Since(st.AsOf) > time.Minute {
		t.Errorf("Status: got %+v, want the file", st)
	}
	if got := variant(f.store.Load().Route("b")); got != "alternate draw" {
		t.Errorf("b: got %s, want its last good version", got)
	}
	if !strings.Contains(f.log.String(), "started from the file of records") {
		t.Errorf("the log does not tell of the file:\n%s", f.log)
	}
}

func TestAfterTheFileOnlyWhatCameSinceIsAskedFor(t *testing.T) {
	t.Parallel()
	file := savedFile(t)
	server := recordstest.NewScript(t)
	server.Then(
		recordstest.JSON(recordstest.Changed("4.a", nil)),
		recordstest.JSON(recordstest.Changed("5.a", []string{book("b", 5, 3)})),
	)
	f := follow(t, records.Options{URLs: []string{server.URL}, File: file})
	f.reach(t, "5.a", "a@1 b@5")
	if got, want := server.Next(t).URL.RawQuery, "after=4.a&gateway=gw-test&setAside=b"; got != want {
		t.Errorf("first question: got %s, want %s", got, want)
	}
	if st := f.Status(); st.Source != records.SourceLive {
		t.Errorf("Status: got %+v, want live", st)
	}
}

// An older gateway keeps the cursor of a newer specialroutes and not the labels.
func TestAfterAFileWithoutLabelsEverythingIsAskedFor(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "records.json")
	text := []byte(`{"cursor":"2.a-2","full":true,"records":[` + book("a", 1, 5) + `],"deleted":[],"asOf":"` + time.Now().UTC().Format(time.RFC3339) + `"}` + "\n")
	sum := sha256.Sum256(text)
	head := "specialroutes-records 1 sha256=" + hex.EncodeToString(sum[:]) + "\n"
	if err := os.WriteFile(file, append([]byte(head), text...), 0o600); err != nil {
		t.Fatal(err)
	}
	server := recordstest.NewScript(t)
	server.Then(recordstest.JSON(recordstest.Full("2.a-2", book("a", 1, 5))))
	f := follow(t, records.Options{URLs: []string{server.URL}, File: file})
	f.reach(t, "2.a-2", "a@1")
	if got, want := server.Next(t).URL.RawQuery, "gateway=gw-test"; got != want {
		t.Errorf("first question: got %s, want %s", got, want)
	}
}

func TestAFileThatIsDamagedIsIgnoredLoudly(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile(savedFile(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty":         "",
		"first line":    strings.SplitAfter(string(whole), "\n")[0],
		"cut short":     string(whole[:len(whole)/2]),
		"one byte less": string(whole[:len(whole)-1]),
		"one bit":       strings.Replace(string(whole), `"weight":5`, `"weight":4`, 1),
		"other format":  strings.Replace(string(whole), "specialroutes-records 1 ", "specialroutes-records 2 ", 1),
		"no line":       strings.Repeat("x", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "records.json")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			server := recordstest.NewScript(t)
			server.Then(recordstest.JSON(recordstest.Full("7.a", book("c", 7, 5))))
			f := follow(t, records.Options{URLs: []string{server.URL}, File: file})
			f.reach(t, "7.a", "c@7")
			if st := f.Status(); st.FileErrors != 1 {
				t.Errorf("Status: got %+v, want one error of the file", st)
			}
			if !strings.Contains(f.log.String(), "the file of records cannot be used") {
				t.Errorf("the log does not tell of the file:\n%s", f.log)
			}
			f.stop()
			// And the next start has a good one again.
			f = follow(t, records.Options{URLs: []string{nowhere}, File: file})
			f.reach(t, "7.a", "c@7")
		})
	}
}

func TestAFileThatIsNotThereIsNoError(t *testing.T) {
	t.Parallel()
	server := recordstest.NewScript(t)
	server.Then(recordstest.JSON(recordstest.Full("1.a")))
	f := follow(t, records.Options{URLs: []string{server.URL}, File: filepath.Join(t.TempDir(), "records.json")})
	f.reach(t, "1.a", "")
	if st := f.Status(); st.FileErrors != 0 {
		t.Errorf("Status: got %+v, want no error", st)
	}
}

func TestAFileThatCannotBeWrittenStopsNothing(t *testing.T) {
	t.Parallel()
	server := recordstest.NewScript(t)
	server.Then(recordstest.JSON(recordstest.Full("1.a", book("a", 1, 5))))
	f := follow(t, records.Options{URLs: []string{server.URL}, File: filepath.Join(t.TempDir(), "missing", "records.json")})
	eventually(t, "an error of the file", func() bool { return f.Status().FileErrors > 0 })
	server.Then(recordstest.JSON(recordstest.Changed("2.a", []string{book("a", 2, 6)})))
	f.reach(t, "2.a", "a@2")
	eventually(t, "a second error of the file", func() bool { return f.Status().FileErrors > 1 })
	if n := strings.Count(f.log.String(), "cannot be written"); n != 1 {
		t.Errorf("the log tells of it %d times, want once:\n%s", n, f.log)
	}
}

func TestTheFileIsWrittenAtMostOnceInItsTime(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "records.json")
	feed := recordstest.NewFeed(t)
	times := quick()
	times.Save = time.Hour
	f := follow(t, records.Options{URLs: []string{feed.URL}, File: file, Times: times})
	feed.Put("a", recordstest.BookRecord("a", 5, endpoint))
	var first os.FileInfo
	eventually(t, "the file is written", func() bool {
		var err error
		first, err = os.Stat(file)
		return err == nil
	})
	feed.Put("b", recordstest.BookRecord("b", 5, endpoint))
	f.reach(t, "2.feed", "a@1 b@2")
	if now, err := os.Stat(file); err != nil || !os.SameFile(now, first) {
		t.Errorf("the file was written again within the time (%v)", err)
	}
	f.stop()
	f = follow(t, records.Options{URLs: []string{nowhere}, File: file})
	f.reach(t, "2.feed", "a@1 b@2")
}
