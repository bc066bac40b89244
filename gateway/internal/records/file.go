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
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// fileMagic begins the first line of the file: what it is, and the number of its
// format. The line ends with the SHA-256 of all that follows. The format is
// described in docs/records-file.md.
const fileMagic = "specialroutes-records 1 sha256="

var errChecksum = errors.New("the checksum does not match: the file is damaged or was cut short")

// errNotRegular is a name that belongs to a pipe, a device or a directory. Reading
// one might never end, and a device that is replaced by a file is missed.
var errNotRegular = errors.New("it is not a regular file")

// readFile returns the envelope that the file holds and when the file was written,
// nil when there is no file.
func readFile(name string, limit int64) (e *envelope, written time.Time, err error) {
	// Without O_NONBLOCK the opening of a pipe waits for its other end.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, time.Time{}, nil
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	text, err := readChecked(f, limit)
	if err != nil {
		return nil, time.Time{}, err
	}
	e, err = decodeFile(text)
	return e, info.ModTime(), err
}

// readChecked returns what follows the first line, which holds its checksum.
func readChecked(f io.Reader, limit int64) ([]byte, error) {
	// Twice: versions that were set aside, and instances, come on top of what an answer
	// may hold.
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
	return text, nil
}

// decodeFile reads the envelope of a file. One without a cursor holds instances only:
// specialroutes had never answered.
func decodeFile(text []byte) (*envelope, error) {
	e, err := decodeEnvelope(text)
	if errors.Is(err, errNoCursor) && e.Cursor == "" && len(e.Instances) > 0 {
		return e, nil
	}
	if err == nil && !e.Full {
		err = errNotFull
	}
	return e, err
}

// writeFile replaces the file by e, so that at any moment there is either the old or
// the new one.
func writeFile(name string, e *envelope) error {
	text, err := json.Marshal(e, lenient)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return errNotRegular
	}
	// What was left behind goes first, and what is there all the same is not used: it
	// could be a link to another file, or be open to others.
	temporary := name + ".tmp"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(
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
	e := &envelope{
		Cursor: s.Cursor(), Full: true, Records: []jsontext.Value{}, Deleted: []string{},
		InstanceLabels: []jsontext.Value{}, InstanceLabelsDeleted: []jsontext.Value{}, fileOnly: fileOnly{AsOf: asOf},
	}
	if s != nil {
		e.InstanceLabels, e.LabelsSetAside = s.labels.items()
	}
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

// InstanceKeeper keeps the registry's instances over a restart, in the file of
// records. Its methods are called by one goroutine.
type InstanceKeeper interface {
	// Save returns what is known of instances as JSON, nil for nothing.
	Save() ([]byte, error)

	// Restore is given what Save returned in an earlier process.
	Restore(text []byte) error
}

// saver writes snapshots to the file, the newest only and not too often.
type saver struct {
	name      string // "" writes nothing
	every     time.Duration
	instances InstanceKeeper // nil: none are kept
	log       *slog.Logger
	failed    func()

	mu       sync.Mutex
	snapshot *Snapshot
	asOf     time.Time
	changed  chan struct{} // has room for one

	failing bool // of run alone
}

func newSaver(o Options, failed func()) *saver {
	return &saver{
		name: o.File, every: o.Times.Save, instances: o.Instances, log: o.Log, failed: failed,
		changed: make(chan struct{}, 1),
	}
}

// seen notes that specialroutes has confirmed s at a time. Only news are worth a
// writing at once; a confirmation is written when the process ends.
func (sv *saver) seen(s *Snapshot, at time.Time, news bool) {
	sv.mu.Lock()
	sv.snapshot, sv.asOf = s, at
	sv.mu.Unlock()
	if news {
		sv.wake()
	}
}

// wake has the file written soon.
func (sv *saver) wake() {
	select {
	case sv.changed <- struct{}{}:
	default:
	}
}

// savingPart bounds the part of the time that is spent on writing: a very large
// estate is written less often.
const savingPart = 20

// run writes until ctx ends. What comes last is left to finish.
func (sv *saver) run(ctx context.Context) {
	for sv.name != "" && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-sv.changed:
			began := time.Now()
			sv.write()
			pause(ctx, max(sv.every, savingPart*time.Since(began)))
		}
	}
}

// finish writes once more. It is called after run, when nothing is learnt any more.
func (sv *saver) finish() {
	if sv.name != "" {
		sv.write()
	}
}

func (sv *saver) write() {
	err := sv.tryWrite()
	if err != nil {
		sv.failed()
	}
	if err != nil && !sv.failing {
		sv.log.Error("the file of records cannot be written; a restart without specialroutes would find an old one",
			"file", sv.name, "error", err)
	}
	sv.failing = err != nil
}

func (sv *saver) tryWrite() error {
	sv.mu.Lock()
	s, asOf := sv.snapshot, sv.asOf
	sv.mu.Unlock()
	e := fileEnvelope(s, asOf)
	if sv.instances != nil {
		text, err := sv.instances.Save()
		if err != nil {
			return err
		}
		e.Instances = text
	}
	if s == nil && len(e.Instances) == 0 {
		return nil // nothing was ever learnt; the file is as good as ever
	}
	return writeFile(sv.name, e)
}
