// Package recordstest stands in for specialroutes in tests, over real HTTP: Script
// gives the answers that the real one will not give on demand, Feed the right
// ones.
package recordstest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// Script is a server that answers each request with the next of its handlers.
// When there is none left, requests wait until there is one or until the client
// leaves. It is safe for concurrent use.
type Script struct {
	*httptest.Server
	steps    chan http.HandlerFunc
	requests chan *http.Request
	done     chan struct{}
}

// NewScript starts a server that ends with the test.
func NewScript(t testing.TB) *Script {
	t.Helper()
	s := newScript()
	s.Server = httptest.NewServer(s)
	s.closeWith(t)
	return s
}

// NewTLSScript is NewScript over TLS, with httptest's certificate.
func NewTLSScript(t testing.TB) *Script {
	t.Helper()
	s := newScript()
	s.Server = httptest.NewTLSServer(s)
	s.closeWith(t)
	return s
}

func newScript() *Script {
	return &Script{steps: make(chan http.HandlerFunc, 1000), requests: make(chan *http.Request, 10_000), done: make(chan struct{})}
}

func (s *Script) closeWith(t testing.TB) {
	t.Cleanup(func() {
		close(s.done)
		s.CloseClientConnections()
		s.Close()
	})
}

// ServeHTTP answers with the next step.
func (s *Script) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.requests <- req
	select {
	case step := <-s.steps:
		step(w, req)
	case <-req.Context().Done():
	case <-s.done:
	}
}

// Then adds steps.
func (s *Script) Then(steps ...http.HandlerFunc) {
	for _, step := range steps {
		s.steps <- step
	}
}

// Next returns the next request that has come in, and fails the test when none
// comes.
func (s *Script) Next(t testing.TB) *http.Request {
	t.Helper()
	select {
	case req := <-s.requests:
		return req
	case <-time.After(10 * time.Second):
		t.Fatal("no request has come")
		return nil
	}
}

// Asked returns the number of requests that nobody has taken with Next.
func (s *Script) Asked() int { return len(s.requests) }

// Done is closed when the server ends, for steps that hang.
func (s *Script) Done() <-chan struct{} { return s.done }

// JSON is a step that answers 200 with a JSON document.
func JSON(text string) http.HandlerFunc { return Answer(http.StatusOK, "application/json", text) }

// Answer is a step with a status, a content type and a body.
func Answer(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// Full is an envelope that replaces everything. Items are made by Item.
func Full(cursor string, items ...string) string { return Envelope(cursor, true, items, nil, nil, nil) }

// Changed is an envelope of what came after a cursor.
func Changed(cursor string, items []string, deleted ...string) string {
	quoted := make([]string, len(deleted))
	for i, d := range deleted {
		quoted[i] = fmt.Sprintf("%q", d)
	}
	return Envelope(cursor, false, items, quoted, nil, nil)
}

// Item is one record of an envelope.
func Item(service string, revision int, record string) string {
	return fmt.Sprintf(`{"service":%q,"revision":%d,"record":%s}`, service, revision, record)
}

// Book is the item of the book's record: stay tenths on the default, the others at
// the endpoint.
func Book(service string, revision, stay int, endpoint string) string {
	return Item(service, revision, BookRecord(service, stay, endpoint))
}

// BookRecord is the record of Book.
func BookRecord(service string, stay int, endpoint string) string {
	return fmt.Sprintf(`{"service":%q,"active":true,"variants":[{"name":"default","weight":%d},{"name":"alternate","weight":%d,"endpoint":%q}],"default":"default"}`,
		service, stay, 10-stay, endpoint)
}

// Feed is a server with a right feed, kept in memory.
type Feed struct {
	*httptest.Server

	mu       sync.Mutex
	revision int
	log      []change
	changed  chan struct{}
	closed   chan struct{}
}

// change is one of a record or, with an instance, one of its labels.
type change struct {
	service, instance string
	text              string // the record, or the members "labels" and "ends"; "" is a delete
}

// NewFeed starts an empty feed that ends with the test.
func NewFeed(t testing.TB) *Feed {
	t.Helper()
	f := &Feed{changed: make(chan struct{}), closed: make(chan struct{})}
	f.Server = httptest.NewServer(f)
	t.Cleanup(func() {
		close(f.closed)
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

// Put writes a record and returns its revision.
func (f *Feed) Put(service, record string) int {
	return f.write(change{service: service, text: record})
}

// Delete removes a record and returns the revision of that.
func (f *Feed) Delete(service string) int { return f.write(change{service: service}) }

// PutLabels writes what an operator changes of an instance's labels, a JSON object,
// until a time, and returns the revision.
func (f *Feed) PutLabels(service, instance, labels string, ends time.Time) int {
	text := fmt.Sprintf(`"labels":%s,"ends":%q`, labels, ends.UTC().Format(time.RFC3339Nano))
	return f.write(change{service, instance, text})
}

// DeleteLabels removes that and returns the revision of the removal.
func (f *Feed) DeleteLabels(service, instance string) int {
	return f.write(change{service: service, instance: instance})
}

func (f *Feed) write(c change) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revision++
	f.log = append(f.log, c)
	close(f.changed)
	f.changed = make(chan struct{})
	return f.revision
}

// ServeHTTP answers as GET /v1/changes does.
func (f *Feed) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	after := -1
	_, _ = fmt.Sscanf(req.FormValue("after"), "%d.feed", &after)
	wait, _ := time.ParseDuration(req.FormValue("wait"))
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		f.mu.Lock()
		answer, news, changed := f.answer(after), f.revision > after, f.changed
		f.mu.Unlock()
		if news {
			JSON(answer)(w, req)
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			JSON(answer)(w, req)
			return
		case <-req.Context().Done():
			return
		case <-f.closed:
			return
		}
	}
}

// answer is the envelope of what came after a revision; -1 is everything.
func (f *Feed) answer(after int) string {
	type subject struct{ service, instance string }
	last := make(map[subject]int)
	for i := max(after, 0); i < len(f.log); i++ {
		last[subject{f.log[i].service, f.log[i].instance}] = i
	}
	var items, deleted, labels, labelsDeleted []string
	for i := max(after, 0); i < len(f.log); i++ {
		c := f.log[i]
		switch {
		case last[subject{c.service, c.instance}] != i:
		case c.instance != "" && c.text == "":
			labelsDeleted = append(labelsDeleted, fmt.Sprintf(`{"service":%q,"id":%q}`, c.service, c.instance))
		case c.instance != "":
			labels = append(labels, LabelItem(c.service, c.instance, i+1, c.text))
		case c.text == "":
			deleted = append(deleted, fmt.Sprintf("%q", c.service))
		default:
			items = append(items, Item(c.service, i+1, c.text))
		}
	}
	return Envelope(fmt.Sprintf("%d.feed", f.revision), after < 0, items, deleted, labels, labelsDeleted)
}

// LabelItem is one change of an instance's labels in an envelope; members are its
// "labels" and "ends".
func LabelItem(service, instance string, revision int, members string) string {
	return fmt.Sprintf(`{"service":%q,"id":%q,"revision":%d,%s}`, service, instance, revision, members)
}

// Envelope is an answer that is made of the elements of its lists.
func Envelope(cursor string, full bool, records, deleted, labels, labelsDeleted []string) string {
	list := func(elements []string) string { return "[" + strings.Join(elements, ",") + "]" }
	return fmt.Sprintf(`{"cursor":%q,"full":%v,"records":%s,"deleted":%s,"instanceLabels":%s,"instanceLabelsDeleted":%s}`,
		cursor, full, list(records), list(deleted), list(labels), list(labelsDeleted))
}
