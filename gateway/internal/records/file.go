package records

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// fileMagic begins the first line of the file: what it is, and the number of its
// format. The line ends with the SHA-256 of all that follows. The format is
// described in docs/records-file.md.
const fileMagic = "specialroutes-records 1 sha256="

var errChecksum = errors.New("the checksum does not match: the file is damaged or was cut short")

// readFile returns the envelope that the file holds, nil when there is no file.
func readFile(name string, limit int64) (*envelope, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// Twice: versions that were set aside come on top of what an answer may hold.
	r := bufio.NewReader(io.LimitReader(f, 2*limit))
	head, err := r.ReadSlice('\n')
	if err != nil {
		return nil, fmt.Errorf("the first line cannot be read: %w", err)
	}
	sum, ok := strings.CutPrefix(strings.TrimSuffix(string(head), "\n"), fileMagic)
	if !ok {
		return nil, errors.New("the file does not begin as a file of records of this version")
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if checksum(text) != sum {
		return nil, errChecksum
	}
	e, err := decodeEnvelope(text)
	if err == nil && !e.Full {
		err = errNotFull
	}
	return e, err
}

// writeFile replaces the file by what s holds, so that at any moment there is
// either the old or the new one.
func writeFile(name string, s *Snapshot, asOf time.Time) error {
	text, err := json.Marshal(fileEnvelope(s, asOf), lenient)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	temporary := name + ".tmp"
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(
		f.Chmod(0o600), // of one that was left behind
		writeAll(f, []byte(fileMagic+checksum(text)+"\n"), text),
		f.Sync(),
		f.Close(),
	)
	if err == nil {
		err = os.Rename(temporary, name)
	}
	if err != nil {
		_ = os.Remove(temporary)
		return err
	}
	return syncDirectory(filepath.Dir(name))
}

func writeAll(w io.Writer, parts ...[]byte) error {
	_, err := io.Copy(w, io.MultiReader(bytes.NewReader(parts[0]), bytes.NewReader(parts[1])))
	return err
}

// syncDirectory makes the rename last.
func syncDirectory(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func checksum(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// fileEnvelope is the inverse of compiler.apply: a full envelope that makes s.
// Versions that were set aside are kept too, because the feed does not send them
// again, and a newer gateway may be able to use them.
func fileEnvelope(s *Snapshot, asOf time.Time) *envelope {
	e := &envelope{Cursor: s.cursor, Full: true, Records: []jsontext.Value{}, Deleted: []string{}, AsOf: asOf}
	for _, st := range s.States() {
		if st.Record != nil {
			e.Records = append(e.Records, marshalItem(st.Service, st.Revision, st.Record, "", time.Time{}))
		}
		if a := st.SetAside; a != nil {
			e.SetAside = append(e.SetAside, marshalItem(st.Service, a.Revision, a.Record, a.Reason, a.Since))
		}
	}
	return e
}

func marshalItem(service string, revision int64, record jsontext.Value, reason string, since time.Time) jsontext.Value {
	it := item{Service: service, Record: record, Reason: reason, Since: since}
	if revision != noRevision {
		it.Revision = fmt.Appendf(nil, "%d", revision)
	}
	text, err := json.Marshal(it, lenient)
	if err != nil { // all of it came out of a JSON document
		panic("records: an item that was read cannot be written: " + err.Error())
	}
	return text
}

// saver writes snapshots to the file, the newest only and not too often.
type saver struct {
	name   string // "" writes nothing
	every  time.Duration
	log    *slog.Logger
	failed func()

	mu       sync.Mutex
	snapshot *Snapshot
	asOf     time.Time
	changed  chan struct{} // has room for one

	failing bool // of run alone
}

func newSaver(name string, every time.Duration, log *slog.Logger, failed func()) *saver {
	return &saver{name: name, every: every, log: log, failed: failed, changed: make(chan struct{}, 1)}
}

// seen notes that specialroutes has confirmed s at a time. Only news are worth a
// writing at once; a confirmation is written when the process ends.
func (sv *saver) seen(s *Snapshot, at time.Time, news bool) {
	sv.mu.Lock()
	sv.snapshot, sv.asOf = s, at
	sv.mu.Unlock()
	if news {
		select {
		case sv.changed <- struct{}{}:
		default:
		}
	}
}

// run writes until ctx ends, and then once more.
func (sv *saver) run(ctx context.Context) {
	if sv.name == "" {
		return
	}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-sv.changed:
			sv.write()
			pause(ctx, sv.every)
		}
	}
	sv.write()
}

func (sv *saver) write() {
	sv.mu.Lock()
	s, asOf := sv.snapshot, sv.asOf
	sv.mu.Unlock()
	if s == nil {
		return // specialroutes has not answered; the file is as good as ever
	}
	err := writeFile(sv.name, s, asOf)
	if err != nil {
		sv.failed()
	}
	if err != nil && !sv.failing {
		sv.log.Error("the file of records cannot be written; a restart without specialroutes would find an old one",
			"file", sv.name, "error", err)
	}
	sv.failing = err != nil
}
