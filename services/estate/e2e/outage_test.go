package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"specialroutes.example/services/estate"
)

// load is a stream of the book's calls at a steady rate.
type load struct {
	cancel context.CancelFunc
	done   chan struct{}
	mu     sync.Mutex
	result loadResult
}

// loadResult is what became of the calls.
type loadResult struct {
	old, new int
	slowest  time.Duration
	failures []string
}

// startLoad makes calls to a URL, so many a second, until stop.
func startLoad(t testing.TB, url string, perSecond int) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		var calls sync.WaitGroup
		defer calls.Wait()
		tick := time.NewTicker(time.Second / time.Duration(perSecond))
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				calls.Go(func() { l.one(url) })
			}
		}
	}()
	t.Cleanup(func() { l.stop() })
	return l
}

func (l *load) one(url string) {
	began := time.Now()
	from, err := ask(url)
	took := time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.result.slowest = max(l.result.slowest, took)
	switch {
	case err != nil:
		l.result.failures = append(l.result.failures, err.Error())
	case from == "OLD":
		l.result.old++
	default:
		l.result.new++
	}
}

// stop ends the load, waits for the calls under way, and returns the result.
func (l *load) stop() loadResult {
	l.cancel()
	<-l.done
	return l.result
}

func (l *load) seen() loadResult {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.result
}

// wantNoFailure stops the load and checks that every call was answered and that
// both sides took part.
func (l *load) wantNoFailure(t testing.TB, least int) {
	t.Helper()
	got := l.stop()
	t.Logf("under load: OLD %d, NEW %d, slowest %v", got.old, got.new, got.slowest)
	if len(got.failures) > 0 {
		t.Errorf("%d calls failed, the first: %s", len(got.failures), got.failures[0])
	}
	if got.old+got.new < least {
		t.Errorf("%d calls were made, want at least %d", got.old+got.new, least)
	}
	if got.old == 0 || got.new == 0 {
		t.Errorf("OLD %d, NEW %d: the split is gone", got.old, got.new)
	}
}

func stopProcess(t testing.TB, est *estate.Estate, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 45*time.Second)
	defer cancel()
	if err := est.Process(name).Stop(ctx); err != nil {
		t.Fatalf("stop %s: %v", name, err)
	}
}

func restartProcess(t testing.TB, est *estate.Estate, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 45*time.Second)
	defer cancel()
	if err := est.Process(name).Start(ctx); err != nil {
		t.Fatalf("start %s again: %v", name, err)
	}
}

// outage is how long specialroutes stays away.
func outage() time.Duration {
	if long() {
		return time.Minute
	}
	return 20 * time.Second
}

func TestSpecialRoutesStoppedForAMinuteUnderLoadFailsNoCall(t *testing.T) {
	est, r := demo(t)
	r.put(t, bookRecord(est, 5))
	away := time.NewTimer(outage())
	defer away.Stop()
	calls := startLoad(t, est.GatewayURL(0)+licensingPath, 60)
	stopProcess(t, est, "specialroutes")
	// Whatever happens here, later tests need it again.
	back := false
	defer func() {
		if !back {
			restartProcess(t, est, "specialroutes")
		}
	}()

	t.Run("the gateway restarted meanwhile still splits", func(t *testing.T) {
		stopProcess(t, est, "gateway-1")
		restartProcess(t, est, "gateway-1")
		oldAnswers, newAnswers := count(t, est.GatewayURL(1)+organizationPath, 200)
		if oldAnswers < 65 || newAnswers < 65 { // five standard deviations around 100
			t.Errorf("OLD %d, NEW %d after the restart, want about half each", oldAnswers, newAnswers)
		}
	})
	t.Run("the gateway restarted meanwhile says that its records come from the file", func(t *testing.T) {
		got := call(t, "GET", est.GatewayAdminURL(1)+"/readyz", nil, nil)
		var ready struct{ Records, Registry any }
		if err := json.Unmarshal(got.body, &ready); err != nil || got.status != 200 {
			t.Fatalf("status %d, %v: %s", got.status, err, got.body)
		}
		if text := fmt.Sprint(ready.Records); !strings.Contains(text, "file") {
			t.Errorf("records = %v, want file: %s", ready.Records, got.body)
		}
	})
	<-away.C
	calls.wantNoFailure(t, int(outage().Seconds())*60/2)

	restartProcess(t, est, "specialroutes")
	back = true
	r.put(t, bookRecord(est, 10)) // put waits until both gateways have it
	for i := range 2 {
		if oldAnswers, newAnswers := count(t, est.GatewayURL(i)+organizationPath, 200); newAnswers != 0 {
			t.Errorf("gateway %d after the change: OLD %d, NEW %d, want only OLD", i, oldAnswers, newAnswers)
		}
	}
}

func TestAllProcessesRestartedOneByOneKeepTheRecord(t *testing.T) {
	est, r := demo(t)
	r.put(t, bookRecord(est, 0))
	for _, name := range []string{"specialroutes", "gateway", "gateway-1", "orgservice-old", "orgservice-new", "licensingservice"} {
		stopProcess(t, est, name)
		if code := est.Process(name).ExitCode(); code != 0 {
			t.Errorf("%s ended with code %d, want 0", name, code)
		}
		restartProcess(t, est, name)
	}
	if got := r.readBook(t, organization); got != bookRecord(est, 0) {
		t.Errorf("record = %+v, want %+v", got, bookRecord(est, 0))
	}
	if oldAnswers, newAnswers := count(t, est.GatewayURL(0)+licensingPath, 100); oldAnswers != 0 {
		t.Errorf("OLD %d, NEW %d, want only NEW", oldAnswers, newAnswers)
	}
}

// source is a records' source in the test's own hands: it speaks the protocol of
// GET /v1/changes, or fails as the test says.
type source struct {
	*httptest.Server
	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at each change
	cursor   int
	envelope map[string]any
	fail     http.HandlerFunc // answers instead, if set
	asked    int
}

func newSource(t testing.TB) *source {
	t.Helper()
	s := &source{changed: make(chan struct{}), envelope: map[string]any{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.failWith(nil)
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *source) serve(w http.ResponseWriter, r *http.Request) {
	wait, _ := time.ParseDuration(r.URL.Query().Get("wait"))
	over := time.NewTimer(wait)
	defer over.Stop()
	s.mu.Lock()
	s.asked++
	s.mu.Unlock()
	for {
		s.mu.Lock()
		changed, fail, cursor := s.changed, s.fail, fmt.Sprintf("%d.n%d", s.cursor, s.cursor)
		body, _ := json.Marshal(s.envelope)
		s.mu.Unlock()
		if fail != nil {
			fail(w, r)
			return
		}
		if after := r.URL.Query().Get("after"); after != cursor {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(body)
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		case <-over.C:
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"cursor":%q,"full":false,"records":[],"deleted":[]}`, cursor)
			return
		}
	}
}

// publish makes the given records the whole state and wakes the followers. extra
// members are put into the envelope.
func (s *source) publish(extra map[string]any, records ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cursor++
	list := []any{}
	for _, record := range records {
		var named struct{ Service string }
		_ = json.Unmarshal([]byte(record), &named)
		list = append(list, map[string]any{"service": named.Service, "revision": s.cursor, "record": json.RawMessage(record)})
	}
	s.envelope = map[string]any{
		"cursor": fmt.Sprintf("%d.n%d", s.cursor, s.cursor), "full": true, "records": list, "deleted": []string{},
	}
	for name, value := range extra {
		s.envelope[name] = value
	}
	s.wake()
}

// failWith makes the source answer every question so from now on, also those that
// wait; nil mends it.
func (s *source) failWith(fail http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fail
	s.wake()
}

func (s *source) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *source) questions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// twoVariants is a whole record that sends everybody to one of two variants.
func twoVariants(service, endpoint string, toNew bool) string {
	oldWeight, newWeight := 1, 0
	if toNew {
		oldWeight, newWeight = 0, 1
	}
	return fmt.Sprintf(`{"service":%q,"active":true,"variants":[{"name":"old","weight":%d},{"name":"new","weight":%d,"endpoint":%q}],"default":"old"}`,
		service, oldWeight, newWeight, endpoint)
}

// answers waits until a call to the lab is answered by one of its upstreams.
func (l *lab) answers(t testing.TB, want string) {
	t.Helper()
	poll(t, 10*time.Second, want+" answers", func() error {
		got, err := do("GET", l.base+"/x", nil, nil)
		if err == nil && (got.status != 200 || string(got.body) != want) {
			err = fmt.Errorf("status %d, body %.200q", got.status, got.body)
		}
		return err
	})
}

func TestASourceThatIsSlowOrWrongNeverDelaysOrFailsACall(t *testing.T) {
	t.Parallel()
	src := newSource(t)
	alternate := newUpstream(t, "new", nil)
	src.publish(nil, twoVariants(labService, alternate.URL, true))
	l := newLab(t, labOptions{records: src.URL, new: alternate})
	l.answers(t, "new")
	next := make(chan struct{})
	for _, test := range []struct {
		name string
		fail http.HandlerFunc
	}{
		{"never answers", func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-next: // so that the next case need not wait until the gateway gives up
			case <-r.Context().Done():
			}
		}},
		{"answers 500", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", 500) }},
		{"answers 404", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "nothing", 404) }},
		{"answers 200 with a page", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "<html>a captive portal</html>")
		}},
		{"answers 200 with nothing", func(http.ResponseWriter, *http.Request) {}},
		{"answers an empty object", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }},
		{"answers null", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "null") }},
		{"answers half an object", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"cursor":"9.x","full":true,"records":[`)
		}},
		{"redirects", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }},
		{"cuts the connection", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		{"answers without end", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"cursor":"`)
			for r.Context().Err() == nil {
				if _, err := w.Write(bytes.Repeat([]byte("9"), 64<<10)); err != nil {
					return
				}
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			asked := src.questions()
			src.failWith(test.fail)
			if test.name == "never answers" {
				asked = -1 // it is the question that waits already
				defer close(next)
			}
			poll(t, 40*time.Second, "the gateway has met it", func() error {
				if src.questions() == asked {
					return fmt.Errorf("not asked again")
				}
				return nil
			})
			for range 50 {
				began := time.Now()
				got := call(t, "GET", l.base+"/x", nil, nil)
				if got.status != 200 || string(got.body) != "new" {
					t.Fatalf("status %d, body %.200q: the last good record is gone", got.status, got.body)
				}
				if took := time.Since(began); took > time.Second {
					t.Fatalf("a call took %v", took)
				}
			}
		})
	}
	memory := peakMemory(t, l.gateway.pid())
	if memory > 600*mib {
		t.Errorf("the gateway's peak memory is %d MiB after an answer without end", memory/mib)
	}
	// And when it is well again, changes flow.
	src.failWith(nil)
	src.publish(nil, twoVariants(labService, alternate.URL, false))
	poll(t, 90*time.Second, "the next change is in force", func() error {
		if got := call(t, "GET", l.base+"/x", nil, nil); string(got.body) != "old" {
			return fmt.Errorf("body %q", got.body)
		}
		return nil
	})
}

func TestTheGatewayDoesNotAskAFailingSourceInALoop(t *testing.T) {
	t.Parallel()
	src := newSource(t)
	src.publish(nil)
	newLab(t, labOptions{records: src.URL})
	src.failWith(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", 500) })
	before := src.questions()
	<-time.After(2 * time.Second) // a rate is measured over a time, not waited for
	if asked := src.questions() - before; asked > 40 {
		t.Errorf("asked %d times in two seconds", asked)
	}
}

func TestTheGatewayOpensWithoutASourceAndAServiceWithoutARecordIsServed(t *testing.T) {
	t.Parallel()
	nobody := "http://" + shared.ports.free(t)
	began := time.Now()
	l := newLab(t, labOptions{records: nobody}) // returns when it is ready
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the gateway was ready after %v, want about 10 s", took)
	}
	if got := call(t, "GET", l.base+"/x", nil, nil); got.status != 200 || string(got.body) != "old" {
		t.Errorf("status %d, body %q; want the default's answer", got.status, got.body)
	}
	got := call(t, "GET", l.admin+"/readyz", nil, nil)
	if !strings.Contains(string(got.body), "none") {
		t.Errorf("readyz does not say that there are no records: %s", got.body)
	}
}

func TestTheGatewayAsksTheSourcesInTurn(t *testing.T) {
	t.Parallel()
	src := newSource(t)
	alternate := newUpstream(t, "new", nil)
	src.publish(nil, twoVariants(labService, alternate.URL, true))
	nobody := "http://" + shared.ports.free(t)
	l := newLab(t, labOptions{new: alternate, config: map[string]string{
		"records": fmt.Sprintf("{url: [%q, %q], file: %q}", nobody, src.URL, t.TempDir()+"/records.json"),
	}})
	l.answers(t, "new")
}

func TestAFullAnswerReplacesEverythingEvenAtALowerRevision(t *testing.T) {
	t.Parallel()
	src := newSource(t)
	alternate := newUpstream(t, "new", nil)
	src.mu.Lock()
	src.cursor = 1000
	src.mu.Unlock()
	src.publish(nil, twoVariants(labService, alternate.URL, true))
	l := newLab(t, labOptions{records: src.URL, new: alternate})
	l.answers(t, "new")
	src.mu.Lock()
	src.cursor = 3 // the database was restored from a backup
	src.mu.Unlock()
	src.publish(nil) // where this service had no record yet
	l.answers(t, "old")
}

func TestARecordThatTheGatewayCannotReadKeepsItsLastGoodVersion(t *testing.T) {
	t.Parallel()
	src := newSource(t)
	alternate := newUpstream(t, "new", nil)
	good := twoVariants(labService, alternate.URL, true)
	src.publish(map[string]any{"aMemberOfTheFuture": []int{1}}, good)
	l := newLab(t, labOptions{records: src.URL, new: alternate})
	l.answers(t, "new")
	for name, broken := range map[string]string{
		"an unknown field":         strings.Replace(good, `"active":true`, `"active":true,"mirror":"x"`, 1),
		"a wrong type":             strings.Replace(good, `"active":true`, `"active":"true"`, 1),
		"an unknown default":       strings.Replace(good, `"default":"old"`, `"default":"other"`, 1),
		"a refused endpoint":       strings.Replace(good, alternate.URL, "ftp://x", 1),
		"a missing weight":         strings.Replace(good, `,"weight":0`, ``, 1),
		"all weights zero":         strings.Replace(good, `"weight":1`, `"weight":0`, 1),
		"another's service":        strings.Replace(good, `"service":"`+labService, `"service":"other-service`, 1),
		"a duplicate name":         strings.Replace(good, `"active":true`, `"active":false,"active":true`, 1),
		"a differently-cased name": strings.Replace(good, `"active":true`, `"Active":true`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			src.publish(map[string]any{"full": false, "records": []any{
				map[string]any{"service": labService, "revision": 77, "record": json.RawMessage(broken)},
				map[string]any{"service": "neighbour", "revision": 78, "record": json.RawMessage(twoVariants("neighbour", "http://neighbour-"+fmt.Sprint(src.cursor)+".invalid", true))},
			}})
			neighbour := fmt.Sprintf("neighbour-%d.invalid", src.cursor-1)
			poll(t, 10*time.Second, "the neighbour's record applies and the broken one is shown with a reason", func() error {
				got := call(t, "GET", l.admin+"/records", nil, nil)
				return wantSetAside(got.body, labService, neighbour)
			})
			if got := call(t, "GET", l.base+"/x", nil, nil); string(got.body) != "new" {
				t.Errorf("body = %q: the last good version is not in force", got.body)
			}
		})
	}
	src.publish(nil, twoVariants(labService, alternate.URL, false))
	l.answers(t, "old")
	poll(t, 5*time.Second, "nothing is set aside any more", func() error {
		got := call(t, "GET", l.admin+"/records", nil, nil)
		if err := wantSetAside(got.body, labService, ""); err == nil {
			return fmt.Errorf("still set aside: %s", got.body)
		}
		return nil
	})
}

// wantSetAside looks in the gateway's page of records for a service that is set
// aside with a reason, and for a text of another record that must be in force.
func wantSetAside(page []byte, service, other string) error {
	var doc struct {
		Records []struct {
			Service  string
			SetAside *struct{ Reason string }
		}
	}
	if err := json.Unmarshal(page, &doc); err != nil {
		return fmt.Errorf("/records: %w: %s", err, page)
	}
	if other != "" && !strings.Contains(string(page), other) {
		return fmt.Errorf("/records does not show %s: %s", other, page)
	}
	for _, record := range doc.Records {
		if record.Service == service && record.SetAside != nil {
			if record.SetAside.Reason == "" {
				return fmt.Errorf("%s is set aside without a reason", service)
			}
			return nil
		}
	}
	return fmt.Errorf("%s is not set aside: %s", service, page)
}
