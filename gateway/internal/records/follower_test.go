package records_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"specialroutes.example/gateway/internal/records"
	"specialroutes.example/gateway/internal/records/recordstest"
	"specialroutes.example/services/routing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The pieces of the scripts.
const (
	endpoint = "http://127.0.0.1:8087"
	bad      = `{"service":"b","active":true,"surprise":1}`
)

func book(service string, revision, stay int) string {
	return recordstest.Book(service, revision, stay, endpoint)
}

// quick are times that let a test see several rounds.
func quick() records.Times {
	return records.Times{
		Wait: 10 * time.Second, Slack: 5 * time.Second, Body: 5 * time.Second, Grace: time.Minute,
		Pause: time.Millisecond, Least: time.Millisecond, Most: 20 * time.Millisecond, Save: time.Millisecond,
	}
}

// logBuffer is a log that tests can read while it is written.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// following is a Follower at work.
type following struct {
	*records.Follower
	store *records.Store
	log   *logBuffer
	stop  func()
}

// follow runs a Follower until the test ends or stop is called.
func follow(t testing.TB, o records.Options) following {
	t.Helper()
	log := new(logBuffer)
	if o.Log == nil {
		o.Log = slog.New(slog.NewJSONHandler(log, nil))
	}
	if o.Times == (records.Times{}) {
		o.Times = quick()
	}
	o.GatewayID = "gw-test"
	store := new(records.Store)
	f, err := records.NewFollower(o, store)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return following{f, store, log, stop}
}

// eventually polls until condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// inForce tells what is in force in one line: service, revision, and the revision
// that is set aside.
func (f following) inForce() string {
	var parts []string
	for _, s := range f.store.Load().States() {
		part := fmt.Sprintf("%s@%d", s.Service, s.Revision)
		if s.SetAside != nil {
			part += fmt.Sprintf("!%d", s.SetAside.Revision)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

func (f following) reach(t testing.TB, cursor, want string) {
	t.Helper()
	eventually(t, "cursor "+cursor, func() bool { return f.store.Load().Cursor() == cursor })
	if got := f.inForce(); got != want {
		t.Errorf("in force at %s: got %q, want %q", cursor, got, want)
	}
}

// variant is the name of the variant that the highest draw gives.
func variant(r *routing.Route) string {
	d := r.Decide(&routing.Request{}, func(sum int64) int64 { return sum })
	return r.Variant(d.Variant).Name + " " + d.Reason()
}

func TestFollowerAppliesFullAndFurtherAnswers(t *testing.T) {
	t.Parallel()
	server := recordstest.NewScript(t)
	server.Then(
		recordstest.JSON(recordstest.Full("2.a", book("a", 1, 5), book("b", 2, 5))),
		recordstest.JSON(recordstest.Changed("4.b", []string{book("c", 4, 5)}, "a")),
		recordstest.JSON(recordstest.Changed("4.b", nil)),
	)
	f := follow(t, records.Options{URLs: []string{server.URL + "/"}})
	f.reach(t, "4.b", "b@2 c@4")
	if got := variant(f.store.Load().Route("c")); got != "alternate draw" {
		t.Errorf("c: got %s, want alternate draw", got)
	}
	if got := variant(f.store.Load().Route("a")); got != "default no-record" {
		t.Errorf("a, which was deleted: got %s, want default no-record", got)
	}
	<-f.Ready()
	for i, want := range []string{"gateway=gw-test", "after=2.a&gateway=gw-test&wait=10000ms", "after=4.b&gateway=gw-test&wait=10000ms"} {
		if req := server.Next(t); req.URL.Path != "/v1/changes" || req.URL.RawQuery != want {
			t.Errorf("request %d: got %s, want /v1/changes?%s", i, req.URL, want)
		}
	}
	st := f.Status()
	if st.Source != records.SourceLive || st.Revision != 4 || st.InForce != 2 || st.Changes != 2 || st.FullAnswers != 1 || st.Errors != 0 || st.AsOf.IsZero() {
		t.Errorf("Status: got %+v", st)
	}
}

func TestAFullAnswerReplacesEverythingAlsoAtALowerRevision(t *testing.T) {
	t.Parallel()
	server := recordstest.NewScript(t)
	server.Then(
		recordstest.JSON(recordstest.Full("9.a", book("a", 8, 5), book("b", 9, 5))),
		recordstest.JSON(recordstest.Full("3.z", book("b", 3, 2))),
	)
	f := follow(t, records.Options{URLs: []string{server.URL}})
	f.reach(t, "3.z", "b@3")
	if !strings.Contains(f.log.String(), `"from":"9.a","to":"3.z"`) {
		t.Errorf("the log does not tell of the replacement:\n%s", f.log)
	}
	if st := f.Status(); st.Revision != 3 || st.FullAnswers != 2 {
		t.Errorf("Status: got %+v", st)
	}
}

func TestABadRecordKeepsItsLastGoodVersionAndAllOthersApply(t *testing.T) {
	t.Parallel()
	server := recordstest.NewScript(t)
	server.Then(
		recordstest.JSON(recordstest.Full("2.a", book("a", 1, 5), book("b", 2, 5))),
		recordstest.JSON(recordstest.Changed("5.b", []string{book("a", 3, 7), recordstest.Item("b", 4, bad), recordstest.Item("c", 5, `{}`)})),
	)
	f := follow(t, records.Options{URLs: []string{server.URL}, Version: "1.2.3"})
	f.reach(t, "5.b", "a@3 b@2!4 c@0!5")
	if got := variant(f.store.Load().Route("b")); got != "alternate draw" {
		t.Errorf("b: got %s, want its last good version", got)
	}
	if got := variant(f.store.Load().Route("c")); got != "default no-record" {
		t.Errorf("c, which never was good: got %s, want default no-record", got)
	}
	reason := f.store.Load().States()[1].SetAside.Reason
	if !strings.Contains(reason, "/surprise") {
		t.Errorf("reason: got %q, want it to name the member", reason)
	}
	if log := f.log.String(); !strings.Contains(log, `"record":"b","revision":4`) || !strings.Contains(log, `"record":"c","revision":5`) {
		t.Errorf("the log does not name the bad records:\n%s", log)
	}
	if st := f.Status(); st.InForce != 2 || st.SetAside != 2 {
		t.Errorf("Status: got %+v, want 2 in force and 2 set aside", st)
	}
	for range 2 {
		if q := server.Next(t).URL.Query(); q.Has("setAside") || q.Get("version") != "1.2.3" {
			t.Errorf("before it has set anything aside it tells %v", q)
		}
	}
	if q := server.Next(t).URL.Query(); q.Get("setAside") != "b,c" {
		t.Errorf("it tells %v, want that b and c are set aside", q)
	}

	server.Then(
		recordstest.JSON(recordstest.Full("6.b", book("a", 3, 7), recordstest.Item("b", 4, bad))),
		recordstest.JSON(recordstest.Changed("8.b", []string{book("b", 7, 1), recordstest.Item("a", 8, `[]`)})),
		recordstest.JSON(recordstest.Changed("9.b", nil, "a")),
	)
	f.reach(t, "9.b", "b@7")
}

func TestASetAsideRecordStaysUnderAFullAnswerThatStillHoldsIt(t *testing.T) {
	t.Parallel()
	server := recordstest.NewScript(t)
	server.Then(
		recordstest.JSON(recordstest.Full("2.a", book("b", 2, 5))),
		recordstest.JSON(recordstest.Full("4.z", recordstest.Item("b", 4, bad))),
	)
	f := follow(t, records.Options{URLs: []string{server.URL}})
	f.reach(t, "4.z", "b@2!4")
}

func TestNoAnswerThatIsWrongChangesARecord(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		step http.HandlerFunc
		want string // part of the error
	}{
		"server error":      {recordstest.Answer(500, "text/plain", "boom"), "500 Internal Server Error"},
		"unavailable":       {recordstest.Answer(503, "application/problem+json", `{"code":"stopping"}`), "503 Service Unavailable (stopping)"},
		"unauthorized":      {recordstest.Answer(401, "application/problem+json", `{"code":7}`), "401 Unauthorized"},
		"a page":            {recordstest.Answer(200, "text/html", "<html>"), "not application/json"},
		"garbage":           {recordstest.JSON("{{{"), "no envelope"},
		"nothing":           {recordstest.JSON(""), "no envelope"},
		"null":              {recordstest.JSON("null"), "cursor"},
		"another document":  {recordstest.JSON(`{"status":"ok"}`), "cursor"},
		"a list":            {recordstest.JSON(`[]`), "no envelope"},
		"two documents":     {recordstest.JSON(recordstest.Full("9.x") + "{}"), "no envelope"},
		"cut short":         {recordstest.JSON(recordstest.Full("9.x")[:40]), "no envelope"},
		"no records":        {recordstest.JSON(`{"cursor":"9.x","full":true}`), "no list of records"},
		"null records":      {recordstest.JSON(`{"cursor":"9.x","full":true,"records":null}`), "no list of records"},
		"cursor in case":    {recordstest.JSON(`{"Cursor":"9.x","full":true,"records":[]}`), "cursor"},
		"cursor of control": {recordstest.JSON(`{"cursor":"9\n","full":true,"records":[]}`), "cursor"},
		"cursor too long":   {recordstest.JSON(`{"cursor":"` + strings.Repeat("9", 129) + `","full":true,"records":[]}`), "cursor"},
		"too long":          {recordstest.JSON(recordstest.Full("9.x", book(strings.Repeat("n", 20_000), 1, 5))), "longer than 10000 bytes"},
		"redirect":          {http.RedirectHandler("/elsewhere", http.StatusFound).ServeHTTP, "302 Found"},
		"hang before head":  {hang(""), "no complete answer in time"},
		"hang in body":      {hang(`{"cursor":"9.x","full":true,"records":[`), "no complete answer in time"},
		"endless":           {trickle, "no complete answer in time"},
		"reset in body":     {reset, "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := recordstest.NewScript(t)
			times := quick()
			times.Wait, times.Slack, times.Body = 10*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
			f := follow(t, records.Options{URLs: []string{server.URL}, Times: times, MaxAnswer: 10_000})
			server.Then(recordstest.JSON(recordstest.Full("2.a", book("a", 1, 5), book("b", 2, 5))))
			f.reach(t, "2.a", "a@1 b@2")
			server.Then(test.step)
			eventually(t, "an error with "+test.want, func() bool {
				t.Log(f.Status().LastError)
				return strings.Contains(f.Status().LastError, test.want)
			})
			f.reach(t, "2.a", "a@1 b@2")
			// An idle server fails questions too, in these short times; all that counts
			// is that the next good answer is taken.
			server.Then(recordstest.JSON(recordstest.Changed("3.a", []string{book("a", 3, 9)})))
			f.reach(t, "3.a", "a@3 b@2")
		})
	}
}

// hang is a step that sends a beginning and then nothing.
func hang(beginning string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if beginning != "" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(beginning))
			_ = http.NewResponseController(w).Flush()
		}
		<-req.Context().Done()
	}
}

// trickle is a step that sends a space now and then, for ever.
func trickle(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	for req.Context().Err() == nil {
		_, _ = w.Write([]byte(" "))
		_ = http.NewResponseController(w).Flush()
		select {
		case <-req.Context().Done():
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// reset is a step that closes the connection in the body of an answer.
func reset(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"))
		_ = conn.Close()
	}
}

func TestAFirstAnswerThatIsNotFullIsRefused(t *testing.T) {
	t.Parallel()
	server := recordstest.NewScript(t)
	server.Then(
		recordstest.JSON(recordstest.Changed("3.a", []string{book("a", 3, 5)})),
		recordstest.JSON(recordstest.Full("4.a", book("b", 4, 5))),
	)
	f := follow(t, records.Options{URLs: []string{server.URL}})
	f.reach(t, "4.a", "b@4")
	if st := f.Status(); !st.FailingSince.IsZero() || st.LastErrorAt.IsZero() || st.AsOf.Before(st.LastErrorAt) {
		t.Errorf("the end of the failures: got %+v", st)
	}
	if st := f.Status(); st.Errors != 1 || st.Recoveries != 1 || !strings.Contains(st.LastError, "not full") {
		t.Errorf("Status: got %+v", st)
	}
}

// The log does not tell of records where there have never been any, and the status tells
// since when nothing has come.
func TestWithoutSpecialroutesFromTheStart(t *testing.T) {
	t.Parallel()
	lines := make(chan string, 100)
	f := follow(t, records.Options{
		URLs: []string{"http://127.0.0.1:1"}, Log: slog.New(slog.NewTextHandler(lineWriter(lines), nil)),
	})
	if line := <-lines; !strings.Contains(line, "there are no records yet") || strings.Contains(line, "stay in force") {
		t.Errorf("the log says %s", line)
	}
	if st := f.Status(); st.FailingSince.IsZero() || st.LastErrorAt.Before(st.FailingSince) {
		t.Errorf("Status: got %+v", st)
	}
}

// lineWriter sends what is written, as long as there is room.
type lineWriter chan string

func (w lineWriter) Write(p []byte) (int, error) {
	select {
	case w <- string(p):
	default:
	}
	return len(p), nil
}

func TestUnknownMembersOfTheEnvelopeAreIgnored(t *testing.T) {
	t.Parallel()
	server := recordstest.NewScript(t)
	server.Then(recordstest.JSON(`{"new":{"x":[1]},"cursor":"1.a","full":true,"records":[{"why":"x","service":"a","revision":1,"record":` +
		recordstest.BookRecord("a", 5, endpoint) + `}]}`))
	f := follow(t, records.Options{URLs: []string{server.URL}})
	f.reach(t, "1.a", "a@1")
}

func TestMistakesInOneItemCostThatItemAlone(t *testing.T) {
	t.Parallel()
	items := []string{
		book("a", 1, 5),
		`7`,
		`{"service":"b","record":` + recordstest.BookRecord("b", 5, endpoint) + `}`,
		`{"service":"c","revision":1.5,"record":{}}`,
		`{"service":"d","revision":4}`,
		recordstest.Item("e", 5, recordstest.BookRecord("other", 5, endpoint)),
		recordstest.Item("f", 6, strings.Replace(recordstest.BookRecord("f", 5, endpoint), `"active":true`, `"active":true,"active":true`, 1)),
		recordstest.Item("g", 7, "{\"service\":\"g\",\"active\":true,\"owner\":\"\xff\"}"),
		recordstest.Item("h", 8, `null`),
		recordstest.Item("Not A Name", 9, recordstest.BookRecord("Not A Name", 5, endpoint)),
	}
	server := recordstest.NewScript(t)
	server.Then(recordstest.JSON(recordstest.Full("9.a", items...)))
	f := follow(t, records.Options{URLs: []string{server.URL}})
	f.reach(t, "9.a", "@0!-1 Not A Name@0!9 a@1 b@0!-1 c@0!-1 d@0!-1 e@0!5 f@0!6 g@0!7 h@0!8")
}

func TestInstantEmptyAnswersAreNoHotLoop(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(n int) string{
		"empty": func(int) string { return recordstest.Changed("1.a", nil) },
		"full":  func(n int) string { return recordstest.Full(fmt.Sprintf("%d.a", n%2+1), book("a", 1, 5)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := recordstest.NewScript(t)
			server.Then(recordstest.JSON(recordstest.Full("1.a", book("a", 1, 5))))
			for n := range 900 {
				server.Then(recordstest.JSON(answer(n)))
			}
			times := quick()
			times.Least, times.Most = 20*time.Millisecond, 100*time.Millisecond
			f := follow(t, records.Options{URLs: []string{server.URL}, Times: times})
			f.reach(t, "1.a", "a@1")
			const window = 500 * time.Millisecond
			<-time.After(window) // the length of the window is what is measured
			f.stop()
			// Delays of at least 10, 20, 40, 50, 50 … ms.
			if n := server.Asked(); n < 3 || n > 16 {
				t.Errorf("got %d questions in %s, want a few", n, window)
			}
		})
	}
}

func TestURLsAreAskedInTurnWhenOneFails(t *testing.T) {
	t.Parallel()
	dead, broken, good := recordstest.NewScript(t), recordstest.NewScript(t), recordstest.NewScript(t)
	dead.Server.Listener.Close()
	for range 100 {
		broken.Then(recordstest.Answer(500, "text/plain", ""))
	}
	good.Then(recordstest.JSON(recordstest.Full("1.a", book("a", 1, 5))))
	times := quick()
	times.Least, times.Most = time.Hour, time.Hour // a back-off would be noticed
	f := follow(t, records.Options{
		URLs: []string{dead.URL, broken.URL, good.URL}, Times: times, Random: func() float64 { return 0 },
	})
	f.reach(t, "1.a", "a@1")
	if st := f.Status(); st.Errors != 2 || st.URL != good.URL {
		t.Errorf("Status: got %+v, want two errors and then %s", st, good.URL)
	}
}

func TestAStoppingReplicaIsLeftForTheNextOne(t *testing.T) {
	t.Parallel()
	first, second := recordstest.NewScript(t), recordstest.NewScript(t)
	first.Then(
		recordstest.JSON(recordstest.Full("1.a", book("a", 1, 5))),
		recordstest.JSON(recordstest.Changed("1.a", nil)), // at once: it is stopping
	)
	second.Then(recordstest.JSON(recordstest.Changed("2.a", []string{book("a", 2, 6)})))
	f := follow(t, records.Options{URLs: []string{first.URL, second.URL}, Random: func() float64 { return 0 }})
	f.reach(t, "2.a", "a@2")
	if st := f.Status(); st.Errors != 0 {
		t.Errorf("Status: got %+v, want no error", st)
	}
}

func TestTheTokenIsSentAndReadAnew(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("first\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := recordstest.NewTLSScript(t)
	server.Then(recordstest.JSON(recordstest.Full("1.a")))
	f := follow(t, records.Options{URLs: []string{server.URL}, TokenFile: file, CAFile: caFile(t, server)})
	f.reach(t, "1.a", "")
	if got := server.Next(t).Header.Get("Authorization"); got != "Bearer first" {
		t.Errorf("Authorization: got %q, want Bearer first", got)
	}
	server.Next(t) // waits already
	if err := os.WriteFile(file, []byte("second"), 0o600); err != nil {
		t.Fatal(err)
	}
	server.Then(recordstest.JSON(recordstest.Changed("2.a", nil)))
	if got := server.Next(t).Header.Get("Authorization"); got != "Bearer second" {
		t.Errorf("Authorization after a change of the file: got %q, want Bearer second", got)
	}
}

// caFile writes the server's certificate as PEM.
func caFile(t *testing.T, server *recordstest.Script) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestACertificateThatIsNotTrustedIsRefused(t *testing.T) {
	t.Parallel()
	server := recordstest.NewTLSScript(t)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Then(recordstest.JSON(recordstest.Full("1.a")))
	f := follow(t, records.Options{URLs: []string{server.URL}})
	eventually(t, "an error", func() bool { return f.Status().Errors > 0 })
	if got := f.Status().LastError; !strings.Contains(got, "certificate") {
		t.Errorf("LastError: got %q, want it to name the certificate", got)
	}
}

func TestFilesThatCannotBeUsedStopTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for name, o := range map[string]records.Options{
		"no CA file":      {CAFile: filepath.Join(dir, "none")},
		"no certificates": {CAFile: write("ca", "hello")},
		"no token file":   {TokenFile: filepath.Join(dir, "none")},
		"empty token":     {TokenFile: write("empty", "\n")},
		"two tokens":      {TokenFile: write("two", "a\nb\n")},
	} {
		o.URLs = []string{"http://127.0.0.1:1"}
		if _, err := records.NewFollower(o, new(records.Store)); err == nil {
			t.Errorf("%s: NewFollower: got no error", name)
		}
	}
}

func TestReadyWithoutAnyRecordsAfterTheGrace(t *testing.T) {
	t.Parallel()
	server := recordstest.NewScript(t) // answers nothing
	times := quick()
	times.Grace = 50 * time.Millisecond
	f := follow(t, records.Options{URLs: []string{server.URL}, Times: times})
	select {
	case <-f.Ready():
	case <-time.After(10 * time.Second):
		t.Fatal("not ready after the grace")
	}
	if st := f.Status(); st.Source != records.SourceNone || st.Revision != -1 || !st.AsOf.IsZero() {
		t.Errorf("Status: got %+v, want none", st)
	}
	if got := variant(f.store.Load().Route("a")); got != "default no-record" {
		t.Errorf("got %s, want default no-record", got)
	}
}

func TestAStopIsToldToTheFirstThatHearsIt(t *testing.T) {
	t.Parallel()
	dead := recordstest.NewScript(t)
	dead.Close()
	s := recordstest.NewScript(t)
	s.Then(recordstest.JSON(recordstest.Full("7.x")))
	// It may begin with either; the one that is dead is left for the next.
	f := follow(t, records.Options{URLs: []string{dead.URL, s.URL}})
	s.Next(t)
	s.Next(t) // waits; the stop ends it
	s.Then(recordstest.JSON(recordstest.Changed("7.x", nil)), recordstest.JSON(recordstest.Changed("7.x", nil)))
	s.Next(t)
	f.stop()
	for s.Asked() > 1 {
		s.Next(t)
	}
	last := s.Next(t).URL.Query()
	if last.Get("leaving") != "true" || last.Get("gateway") != "gw-test" || last.Get("after") != "7.x" || last.Has("wait") {
		t.Errorf("the last question is %v, want a goodbye", last)
	}
}

func TestAStopIsNotHeldUpByTheGoodbye(t *testing.T) {
	t.Parallel()
	s := recordstest.NewScript(t)
	s.Then(recordstest.JSON(recordstest.Full("7.x")))
	f := follow(t, records.Options{URLs: []string{s.URL}})
	s.Next(t)
	s.Next(t)
	begin := time.Now()
	f.stop() // nobody answers
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("the stop took %v", took)
	}
}

func TestStopEndsAQuestionAtOnce(t *testing.T) {
	t.Parallel()
	server := recordstest.NewScript(t)
	times := quick()
	times.Wait = time.Hour
	f := follow(t, records.Options{URLs: []string{server.URL}, Times: times})
	server.Next(t)
	started := time.Now()
	f.stop()
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("stopping took %s", took)
	}
	if st := f.Status(); st.Errors != 0 {
		t.Errorf("Status: got %+v, want no error for a stop", st)
	}
}

// Both records and labels are told, the longest IDs too, in a head that is not too long.
func TestLabelsSetAsideAreToldBesideRecords(t *testing.T) {
	t.Parallel()
	server := recordstest.NewScript(t)
	labels := []string{recordstest.LabelItem("org", "org-1", 5, `"labels":{"a=b":""}`)}
	for n := range 100 {
		labels = append(labels, recordstest.LabelItem("z", strings.Repeat(",", 250)+strconv.Itoa(n), 5, `"labels":{"a=b":""}`))
	}
	server.Then(recordstest.JSON(recordstest.Envelope("5.b", true, []string{recordstest.Item("b", 4, bad)}, nil, labels, nil)))
	follow(t, records.Options{URLs: []string{server.URL}})
	server.Next(t)
	u := server.Next(t).URL
	if told := u.Query().Get("setAside"); !strings.HasPrefix(told, "b,org/org-1,z/%2C") || len(u.RawQuery) > 16<<10 {
		t.Errorf("it tells %.200q in %d bytes, want that b and org/org-1 are set aside, in at most 16 KiB", told, len(u.RawQuery))
	}
}

// A row that was written by hand may have any name, of any length. It must not
// spoil the question that the gateway asks from then on.
func TestOnlyNamesAreToldAsSetAside(t *testing.T) {
	t.Parallel()
	server := recordstest.NewScript(t)
	long := strings.Repeat("x", 90_000)
	server.Then(recordstest.JSON(recordstest.Full("5.b", recordstest.Item("b", 4, bad),
		recordstest.Item("Not A,Name", 5, `{}`), recordstest.Item(long, 5, `{}`))))
	follow(t, records.Options{URLs: []string{server.URL}})
	server.Next(t)
	if q := server.Next(t).URL.Query(); q.Get("setAside") != "b" {
		t.Errorf("it tells %.200q, want that b is set aside", q.Get("setAside"))
	}
}
