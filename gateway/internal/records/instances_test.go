package records_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"specialroutes.example/gateway/internal/records"
	"specialroutes.example/gateway/internal/records/recordstest"
)

// keeper keeps one text.
type keeper struct {
	mu       sync.Mutex
	text     []byte
	restored string
	fails    error
}

func (k *keeper) Save() ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text, k.fails
}

func (k *keeper) Restore(text []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.restored = string(text)
	return k.fails
}

// rewritten returns a file of records with another body.
func rewritten(t *testing.T, body string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "records.json")
	sum := sha256.Sum256([]byte(body))
	text := "specialroutes-records 1 sha256=" + hex.EncodeToString(sum[:]) + "\n" + body
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestInstancesAreKeptInTheFileAlsoWithoutRecords(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "records.json")
	k := &keeper{text: []byte(`[{"service":"org"}]`)}
	f := follow(t, records.Options{URLs: []string{nowhere}, File: file, Instances: k})
	f.InstancesChanged()
	eventually(t, "the file is written", func() bool { _, err := os.Stat(file); return err == nil })
	f.stop()
	k = new(keeper)
	f = follow(t, records.Options{URLs: []string{nowhere}, File: file, Instances: k})
	eventually(t, "the instances are restored", func() bool { k.mu.Lock(); defer k.mu.Unlock(); return k.restored == `[{"service":"org"}]` })
	f.stop()
	if st := f.Status(); st.Source != records.SourceNone || st.FileErrors != 0 {
		t.Errorf("Status: got %+v, want no records and no error", st)
	}
}

func TestInstancesAndRecordsAreKeptTogether(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "records.json")
	server := recordstest.NewScript(t)
	server.Then(recordstest.JSON(recordstest.Full("2.a", book("a", 1, 5))))
	f := follow(t, records.Options{URLs: []string{server.URL}, File: file, Instances: &keeper{text: []byte(`["one"]`)}})
	f.reach(t, "2.a", "a@1")
	f.stop()
	k := &keeper{fails: errors.New("odd instances")}
	f = follow(t, records.Options{URLs: []string{nowhere}, File: file, Instances: k})
	f.reach(t, "2.a", "a@1") // instances that cannot be used take no records away
	if !strings.Contains(f.log.String(), "odd instances") || k.restored != `["one"]` {
		t.Errorf("restored %q, log:\n%s", k.restored, f.log)
	}
}

// A file of an earlier version has no instances and no changes of labels.
func TestAFileOfAnEarlierVersionIsUsed(t *testing.T) {
	t.Parallel()
	k := new(keeper)
	f := follow(t, records.Options{URLs: []string{nowhere}, Instances: k, File: rewritten(t,
		`{"cursor":"2.a","full":true,"records":[`+book("a", 1, 5)+`],"deleted":[],"asOf":"2026-11-29T12:00:00Z"}`+"\n")})
	f.reach(t, "2.a", "a@1")
	if k.restored != "" {
		t.Errorf("restored %q", k.restored)
	}
}

func TestAFileThatIsNoFileStopsNothing(t *testing.T) {
	t.Parallel()
	pipe, directory := filepath.Join(t.TempDir(), "pipe"), t.TempDir()
	socket := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{"a pipe": pipe, "a directory": directory, "a socket": socket} {
		server := recordstest.NewScript(t)
		server.Then(recordstest.JSON(recordstest.Full("1.a", book("a", 1, 5))))
		f := follow(t, records.Options{URLs: []string{server.URL}, File: file})
		f.reach(t, "1.a", "a@1")
		f.stop()
		if log := f.log.String(); !strings.Contains(log, "cannot be used; starting without it") || !strings.Contains(log, "cannot be written") {
			t.Errorf("%s: the log does not tell of it:\n%s", name, log)
		}
		if info, err := os.Lstat(file); err != nil || info.Mode().IsRegular() {
			t.Errorf("%s was replaced by a file: %v, %v", name, info, err)
		}
	}
}

func TestALinkInThePlaceOfTheTemporaryFileIsNotFollowed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "records.json")
	victim := filepath.Join(t.TempDir(), "victim")
	if err := errors.Join(os.WriteFile(victim, []byte("precious"), 0o600), os.Symlink(victim, file+".tmp")); err != nil {
		t.Fatal(err)
	}
	server := recordstest.NewScript(t)
	server.Then(recordstest.JSON(recordstest.Full("1.a", book("a", 1, 5))))
	f := follow(t, records.Options{URLs: []string{server.URL}, File: file})
	f.reach(t, "1.a", "a@1")
	f.stop()
	if text, err := os.ReadFile(victim); err != nil || string(text) != "precious" {
		t.Errorf("the file behind the link: %q, %v", text, err)
	}
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of records: %v, %v", info, err)
	}
}

func TestATimeThatCannotBeIsNotTakenForFresh(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		asOf    string
		written time.Time
		want    time.Time
	}{
		"as it says":                  {`,"asOf":"2026-12-01T11:00:00Z"`, now, now.Add(-time.Hour)},
		"missing":                     {``, now.Add(-2 * time.Hour), now.Add(-2 * time.Hour)},
		"to come":                     {`,"asOf":"2027-12-01T11:00:00Z"`, now.Add(-2 * time.Hour), now.Add(-2 * time.Hour)},
		"to come, and written in it":  {`,"asOf":"2027-12-01T11:00:00Z"`, now.Add(time.Hour), time.Unix(0, 0)},
		"within what clocks may vary": {`,"asOf":"2026-12-01T12:00:30Z"`, now, now.Add(30 * time.Second)},
	} {
		file := rewritten(t, `{"cursor":"2.a","full":true,"records":[],"deleted":[]`+tt.asOf+"}\n")
		if err := os.Chtimes(file, tt.written, tt.written); err != nil {
			t.Fatal(err)
		}
		f := follow(t, records.Options{URLs: []string{nowhere}, File: file, Now: func() time.Time { return now }})
		<-f.Ready()
		if st := f.Status(); st.Source != records.SourceFile || !st.AsOf.Equal(tt.want) {
			t.Errorf("%s: as of %v from %s, want %v", name, st.AsOf, st.Source, tt.want)
		}
	}
}

// What is restored keeps its age in the file while specialroutes stays away.
func TestARestartDoesNotMakeRecordsYounger(t *testing.T) {
	t.Parallel()
	file := rewritten(t, `{"cursor":"2.a","full":true,"records":[],"deleted":[],"asOf":"2026-11-01T11:00:00Z"}`+"\n")
	for range 2 {
		f := follow(t, records.Options{URLs: []string{nowhere}, File: file, Instances: &keeper{text: []byte(`[]`)}})
		<-f.Ready()
		if st := f.Status(); !st.AsOf.Equal(time.Date(2026, 11, 1, 11, 0, 0, 0, time.UTC)) {
			t.Errorf("as of %v", st.AsOf)
		}
		f.stop()
	}
	text, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(text, []byte(`"asOf":"2026-11-01T11:00:00Z"`)) || !bytes.Contains(text, []byte(`"instances":[]`)) {
		t.Errorf("the file: %s, %v", text, err)
	}
}

// saving tells when the file is about to be written.
type saving chan struct{}

func (s saving) Save() ([]byte, error) {
	select {
	case s <- struct{}{}:
	default:
	}
	return nil, nil
}

func (saving) Restore([]byte) error { return nil }

// A gateway that is stopped in the moment of its first answer has it in its file: the
// last writing comes after it.
func TestTheLastAnswerIsInTheFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "records.json")
	server := recordstest.NewScript(t)
	server.Then(recordstest.JSON(recordstest.Full("2.a", book("a", 1, 5))))
	ctx, stop := context.WithCancel(t.Context())
	written := make(saving)
	f, err := records.NewFollower(records.Options{
		URLs: []string{server.URL}, File: file, Instances: written,
		Prepare: func(context.Context, *records.Snapshot) {
			stop()
			select { // a last writing now would be one too early
			case <-written:
			case <-time.After(50 * time.Millisecond):
			}
		},
	}, new(records.Store))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || !bytes.Contains(text, []byte(`"2.a"`)) {
		t.Errorf("the file: %s, %v", text, err)
	}
}
