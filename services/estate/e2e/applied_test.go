package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// gatewayEntry is a gateway as GET /v1/gateways tells of it.
type gatewayEntry struct {
	ID, Version, Cursor string
	Revision            int64
	SetAside            []string
	Seen                time.Time
	Live, Left          bool
}

func (r routes) gateways(t testing.TB) map[string]gatewayEntry {
	t.Helper()
	got := call(t, "GET", r.url+"/v1/gateways", nil, nil)
	if got.status != 200 {
		t.Fatalf("GET /v1/gateways: status %d: %s", got.status, got.body)
	}
	found := map[string]gatewayEntry{}
	for _, g := range decoded[struct{ Gateways []gatewayEntry }](t, got).Gateways {
		if _, twice := found[g.ID]; twice {
			t.Errorf("%s is listed twice", g.ID)
		}
		found[g.ID] = g
	}
	return found
}

// setApplied writes a record and waits as `wait=applied` does. It returns what the
// answer says of the gateways, and how long it took.
func (r routes) setApplied(t testing.TB, service, document string) (applied, time.Duration) {
	t.Helper()
	began := time.Now()
	got := sendJSON(t, "PUT", r.full(service)+"?wait=applied", document)
	took := time.Since(began)
	w := decoded[written](t, got)
	if (got.status != 200 && got.status != 201) || w.Applied == nil {
		t.Fatalf("PUT %s: status %d without or with applied: %s", service, got.status, got.body)
	}
	return *w.Applied, took
}

// fleet is a lab with three gateways, lab, lab-2 and lab-3. All of them have asked.
func fleet(t testing.TB) (*lab, []*lab) {
	t.Helper()
	l := newLab(t, labOptions{})
	gateways := []*lab{l, l.twin(t, "lab-2", nil), l.twin(t, "lab-3", nil)}
	l.set(t, l.record(1, 0))
	poll(t, 5*time.Second, "specialroutes knows three gateways", func() error {
		if known := l.gateways(t); len(known) != 3 {
			return fmt.Errorf("it knows %v", known)
		}
		return nil
	})
	return l, gateways
}

// wantApplied checks how far a change has got, and that the answer came in time.
func wantApplied(t testing.TB, got applied, want applied, took, least, most time.Duration) {
	t.Helper()
	if got.Of != want.Of || got.Now != want.Now || !slices.Equal(got.Behind, want.Behind) || !slices.Equal(got.SetAside, want.SetAside) {
		t.Errorf("applied = %+v, want %+v", got, want)
	}
	if took < least || took > most {
		t.Errorf("the answer took %v, want %v to %v", took, least, most)
	}
}

func TestACallMadeAfterTheAnswerObeysTheNewRecordOnEveryGateway(t *testing.T) {
	t.Parallel()
	l, gateways := fleet(t)
	for i := range 20 {
		want := []string{"old", "new"}[i%2]
		document := l.record(int64(1-i%2), int64(i%2), fmt.Sprintf(`"owner":"o-%d"`, i))
		a, took := l.setApplied(t, labService, document)
		for n, g := range gateways {
			if got := g.get(t, "/x"); routeOf(got).variant != want {
				t.Errorf("change %d, gateway %d: answered by %q after the answer, want %q", i, n, routeOf(got).variant, want)
			}
		}
		wantApplied(t, a, applied{Of: 3, Now: 3}, took, 0, 5*time.Second)
	}
}

func TestWithOneGatewayStoppedTheAnswerNamesItAndTheTwoOthersObey(t *testing.T) {
	t.Parallel()
	l, gateways := fleet(t)
	third := gateways[2].gateway
	third.signal(t, syscall.SIGSTOP)
	resumed := false
	defer func() {
		if !resumed {
			third.signal(t, syscall.SIGCONT)
		}
	}()
	a, took := l.setApplied(t, labService, l.record(0, 1))
	for n, g := range gateways[:2] {
		wantRouted(t, g.get(t, "/x"), "new", "draw")
		if t.Failed() {
			t.Errorf("gateway %d does not obey", n)
		}
	}
	wantApplied(t, a, applied{Of: 3, Now: 2, Behind: []string{"lab-3"}}, took, 9*time.Second, 15*time.Second)
	known := l.gateways(t)
	if known["lab-3"].Revision >= known["lab"].Revision || known["lab"].Revision != known["lab-2"].Revision || !known["lab-3"].Live {
		t.Errorf("GET /v1/gateways: %+v, want lab-3 live and behind", known)
	}

	third.signal(t, syscall.SIGCONT)
	resumed = true
	a, took = l.setApplied(t, labService, l.record(1, 0))
	wantApplied(t, a, applied{Of: 3, Now: 3}, took, 0, 9*time.Second)
	wantRouted(t, gateways[2].get(t, "/x"), "old", "draw")
}

func TestAGatewayThatIsStoppedInOrderIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	l, gateways := fleet(t)
	if code := gateways[2].gateway.stop(t); code != 0 {
		t.Errorf("the gateway ended with %d", code)
	}
	if g := l.gateways(t)["lab-3"]; !g.Left || g.Live {
		t.Errorf("GET /v1/gateways: %+v, want it to have left", g)
	}
	a, took := l.setApplied(t, labService, l.record(0, 1))
	wantApplied(t, a, applied{Of: 2, Now: 2}, took, 0, 5*time.Second)
}

func TestEveryChangeCanBeWaitedFor(t *testing.T) {
	t.Parallel()
	l, gateways := fleet(t)
	wait := func(method, url, body string, status int) {
		t.Helper()
		got := sendJSON(t, method, url+"?wait=applied", body)
		if got.status != status {
			t.Fatalf("%s %s: status = %d, want %d: %s", method, url, got.status, status, got.body)
		}
		w := decoded[written](t, got)
		if w.Applied == nil || w.Applied.Of != 3 || w.Applied.Now != 3 {
			t.Errorf("%s %s: applied = %+v", method, url, w.Applied)
		}
	}
	answered := func(variant, reason string) {
		t.Helper()
		for _, g := range gateways {
			wantRouted(t, g.get(t, "/x"), variant, reason)
		}
	}
	wait("PUT", l.full(labService, "weights"), `{"old":0,"new":1}`, 200)
	answered("new", "draw")
	wait("PUT", l.full(labService, "active"), `{"active":false}`, 200)
	answered("old", "inactive")
	wait("DELETE", l.full(labService), "", 200)
	answered("default", "no-record")
	entries := l.history(t, labService)
	wait("POST", l.full(labService, "rollback"), fmt.Sprintf(`{"revision":%d}`, entries[2].Revision), 201)
	answered("new", "draw")
	wait("PUT", l.full(labService, "weights"), `{"old":5,"new":5}`, 200)
	wait("PUT", l.of(labService), `{"serviceName":"`+labService+`","active":"Y","endpoint":"`+l.new.URL+`","weight":10}`, 200)
	answered("old", "draw")
	wait("PUT", l.full("*"), `{"service":"*","active":true,"onUnavailable":"fail"}`, 201)
}

func TestNoCallReachesAVariantAfterTheAnswerThatTookItsWeight(t *testing.T) {
	t.Parallel()
	l, gateways := fleet(t)
	l.setApplied(t, labService, l.record(1, 1))
	stop := make(chan struct{})
	var group sync.WaitGroup
	for i := range 6 {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := variantOf(gateways[i%3].base + "/load"); err != nil {
					t.Errorf("a call failed: %v", err)
					return
				}
			}
		})
	}
	poll(t, 10*time.Second, "both variants are called", func() error {
		if l.old.count() < 50 || l.new.count() < 50 {
			return fmt.Errorf("old %d, new %d", l.old.count(), l.new.count())
		}
		return nil
	})
	for range 5 {
		l.setApplied(t, labService, l.record(1, 0))
		// What was on its way when the answer came had been decided before.
		poll(t, 5*time.Second, "the calls on their way arrive", func() error {
			before, old := l.new.count(), l.old.count()
			for l.old.count() < old+12 {
				if _, err := variantOf(gateways[0].base + "/more"); err != nil {
					return err
				}
			}
			if now := l.new.count(); now != before {
				return fmt.Errorf("%d calls more", now-before)
			}
			return nil
		})
		before := l.new.count()
		old := l.old.count()
		poll(t, 10*time.Second, "200 calls more", func() error {
			if now := l.old.count(); now < old+200 {
				return fmt.Errorf("%d", now-old)
			}
			return nil
		})
		if now := l.new.count(); now != before {
			t.Errorf("%d calls reached new after its weight was taken", now-before)
		}
		l.setApplied(t, labService, l.record(1, 1))
	}
	close(stop)
	group.Wait()
}

func TestAChangeCanBeWaitedForAfterADatabaseWasRestoredToAnEarlierRevision(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, addr := filepath.Join(dir, "special.db"), shared.ports.free(t)
	special, url := startSpecialRoutes(t, file, addr)
	l := newLab(t, labOptions{records: url})
	l.setApplied(t, labService, l.record(1, 0))
	special.stop(t)
	backup := snapshot(t, dir)
	special, _ = startSpecialRoutes(t, file, addr)
	for i := range 8 {
		l.setApplied(t, labService, l.record(0, int64(i+1)))
	}
	wantRouted(t, l.get(t, "/x"), "new", "draw")
	special.stop(t)
	restore(t, dir, backup)
	_, _ = startSpecialRoutes(t, file, addr)
	// The gateway is far ahead by its number, of a history that is no more.
	a, took := l.setApplied(t, labService, l.record(2, 0))
	wantRouted(t, l.get(t, "/x"), "old", "draw")
	wantApplied(t, a, applied{Of: 1, Now: 1}, took, 0, 9*time.Second)
}

// replica starts a second specialroutes on the same database.
func (p *pgLab) replica(t testing.TB) *pgLab {
	t.Helper()
	other := *p
	other.addr = shared.ports.free(t)
	other.url = "http://" + other.addr
	other.start(t)
	return &other
}

func TestTheGatewaysAreKnownToEveryReplicaOfSpecialRoutes(t *testing.T) {
	p := postgresLab(t)
	other := p.replica(t)
	first := newLab(t, labOptions{records: p.url})
	second := newLab(t, labOptions{records: other.url, old: first.old, new: first.new, config: map[string]string{"id": "lab-2"}})
	for _, r := range []routes{{url: p.url}, {url: other.url}} {
		poll(t, 10*time.Second, "both gateways are known", func() error {
			if known := r.gateways(t); len(known) != 2 || !known["lab"].Live || !known["lab-2"].Live {
				return fmt.Errorf("%s knows %+v", r.url, known)
			}
			return nil
		})
	}
	for i, r := range []routes{{url: p.url}, {url: other.url}, {url: p.url}} {
		want := []string{"new", "old"}[i%2]
		a, took := r.setApplied(t, labService, first.record(int64(i%2), int64(1-i%2)))
		for _, g := range []*lab{first, second} {
			if got := g.get(t, "/x"); routeOf(got).variant != want {
				t.Errorf("change %d: answered by %q after the answer, want %q", i, routeOf(got).variant, want)
			}
		}
		wantApplied(t, a, applied{Of: 2, Now: 2}, took, 0, 5*time.Second)
	}
	// Their rows outlive a restart of both.
	for _, s := range []*pgLab{p, other} {
		s.special.stop(t)
	}
	p.start(t)
	if known := (routes{url: p.url}).gateways(t); len(known) != 2 {
		t.Errorf("after a restart: %+v", known)
	}
}

func TestAGatewayIsListedWithWhatItHasInForceAndWhenItAsked(t *testing.T) {
	t.Parallel()
	began := time.Now().Add(-time.Second)
	l := newLab(t, labOptions{})
	a, _ := l.setApplied(t, labService, l.record(1, 1))
	if a.Of != 1 || a.Now != 1 {
		t.Errorf("applied = %+v", a)
	}
	known := l.gateways(t)
	g := known["lab"]
	page := decoded[struct{ Cursor string }](t, call(t, "GET", l.admin+"/records", nil, nil))
	if len(known) != 1 || g.Cursor != page.Cursor || g.Revision != 1 || !g.Live || len(g.SetAside) != 0 || g.Version == "" {
		t.Errorf("GET /v1/gateways: %+v, the gateway is at %s", known, page.Cursor)
	}
	if g.Seen.Before(began) || g.Seen.After(time.Now().Add(time.Second)) {
		t.Errorf("seen = %v", g.Seen)
	}
	// Who follows without an ID is nobody's concern.
	if _, err := changes(l.url, "", "0s"); err != nil {
		t.Fatal(err)
	}
	if known := l.gateways(t); len(known) != 1 {
		t.Errorf("GET /v1/gateways: %+v", known)
	}
}

func TestAGatewayTellsItsVersionAndWhatItHasSetAside(t *testing.T) {
	p := postgresLab(t)
	r := routes{url: p.url}
	l := newLab(t, labOptions{records: p.url})
	l.set(t, l.record(1, 1))
	if g := r.gateways(t)["lab"]; g.Version == "" || len(g.SetAside) != 0 {
		t.Errorf("GET /v1/gateways: %+v, want a version and nothing set aside", g)
	}
	p.sql(t, p.database, `INSERT INTO routes (service, record) VALUES ('by-hand', '{"service": "by-hand", "active": true, "mirror": "x"}')`)
	p.sql(t, p.database, `UPDATE counter SET n = n + 1, nonce = 'byhand1'`)
	for _, want := range [][]string{{"by-hand"}, {}} {
		poll(t, 10*time.Second, "the gateway tells what it has set aside", func() error {
			if g := r.gateways(t)["lab"]; !slices.Equal(g.SetAside, want) {
				return fmt.Errorf("set aside %v, want %v", g.SetAside, want)
			}
			return nil
		})
		if got := call(t, "DELETE", r.full("by-hand"), nil, nil); got.status != 200 && got.status != 404 {
			t.Errorf("DELETE: status %d: %s", got.status, got.body)
		}
	}
}

// Changes of labels are told beside records, until they are taken back.
func TestAGatewayTellsWhichChangesOfLabelsItHasSetAside(t *testing.T) {
	p := postgresLab(t)
	r := routes{url: p.url}
	l := newLab(t, labOptions{records: p.url})
	l.set(t, l.record(1, 1))
	p.sql(t, p.database, `INSERT INTO instance_labels (service, instance, labels, ends) VALUES ('by-hand', 'org/1', '{"a=b": "c"}', now() + interval '1 hour')`)
	p.sql(t, p.database, `UPDATE counter SET n = n + 1, nonce = 'byhand1'`)
	for _, want := range [][]string{{"by-hand/org/1"}, {}} {
		poll(t, 10*time.Second, "the gateway tells what it has set aside", func() error {
			if g := r.gateways(t)["lab"]; !slices.Equal(g.SetAside, want) {
				return fmt.Errorf("set aside %v, want %v", g.SetAside, want)
			}
			return nil
		})
		if got := call(t, "DELETE", r.url+"/v1/instances/by-hand/org%2F1/labels", nil, nil); got.status != 200 && got.status != 404 {
			t.Errorf("DELETE: status %d: %s", got.status, got.body)
		}
	}
}

// asks does as a gateway does: it says what it has and what it cannot use.
func asks(t testing.TB, base, id, after, setAside, wait string) changesPage {
	t.Helper()
	query := url.Values{"gateway": {id}, "version": {"test"}, "after": {after}, "setAside": {setAside}, "wait": {wait}}
	got := call(t, "GET", base+"/v1/changes?"+query.Encode(), nil, nil)
	if got.status != 200 {
		t.Fatalf("GET /v1/changes: status %d: %s", got.status, got.body)
	}
	return decoded[changesPage](t, got)
}

func TestAGatewayThatCannotUseARecordIsNamedForIt(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	r.save(t, "first", pair("first", 1, 1))
	page := asks(t, r.url, "older-gateway", "", "", "0s")
	page = asks(t, r.url, "older-gateway", page.Cursor, "", "0s")
	type result struct {
		applied applied
		took    time.Duration
	}
	done := make(chan result, 1)
	go func() {
		a, took := r.setApplied(t, "second", pair("second", 1, 1))
		done <- result{a, took}
	}()
	for page.Cursor == "" || len(page.Records) == 0 {
		page = asks(t, r.url, "older-gateway", page.Cursor, "", "1s")
	}
	select {
	case got := <-done:
		t.Errorf("applied = %+v before the gateway said that it has the change", got.applied)
	default:
	}
	asks(t, r.url, "older-gateway", page.Cursor, "second", "0s")
	got := <-done
	wantApplied(t, got.applied, applied{Of: 1, Now: got.applied.Now, SetAside: []string{"older-gateway"}}, got.took, 0, 9*time.Second)
	g := r.gateways(t)["older-gateway"]
	if !slices.Equal(g.SetAside, []string{"second"}) || g.Version != "test" || !g.Live {
		t.Errorf("GET /v1/gateways: %+v", g)
	}
	// IDs that could not be told apart, or that are none, are refused.
	for _, id := range []string{"a b", strings.Repeat("x", 65), "-", "a\nb", "ü"} {
		got := call(t, "GET", r.url+"/v1/changes?gateway="+url.QueryEscape(id), nil, nil)
		if got.status != 400 {
			t.Errorf("gateway=%q: status %d", id, got.status)
		}
	}
}

func TestWithoutAGatewayNothingIsWaitedFor(t *testing.T) {
	t.Parallel()
	r := specialOnly(t)
	a, took := r.setApplied(t, "alone", pair("alone", 1, 1))
	wantApplied(t, a, applied{}, took, 0, 5*time.Second)
	// What is refused is not waited for.
	began := time.Now()
	wantProblem(t, sendJSON(t, "PUT", r.full("alone")+"?wait=applied", pair("alone", 0, 0)), 422)
	wantProblem(t, sendJSON(t, "PUT", r.full("alone")+"?wait=applied", pair("alone", 1, 1), [2]string{"If-None-Match", "*"}), 412)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("two refusals took %v", took)
	}
}

func TestRecordsShowsWhatIsInForceAndWhatWasSetAside(t *testing.T) {
	t.Parallel()
	src := newSource(t)
	alternate := newUpstream(t, "new", nil)
	good := recordOf(labService, []string{`{"name":"old","weight":0}`, fmt.Sprintf(`{"name":"new","weight":1,"endpoint":%q}`, alternate.URL)},
		`"sticky":{"by":"header","name":"tmx-user-id"}`, `"owner":"team"`)
	src.publish(nil, good, pair("steady", 1, 1))
	l := newLab(t, labOptions{records: src.URL, new: alternate})
	l.answers(t, "new")
	inForce := func() (text string, setAside map[string]string) {
		setAside = map[string]string{}
		page := decoded[struct {
			InForce, SetAside int
			Records           []struct {
				Service  string
				Record   json.RawMessage
				SetAside *struct{ Reason string }
			}
		}](t, call(t, "GET", l.admin+"/records", nil, nil))
		for _, r := range page.Records {
			if r.Service == labService {
				text = string(r.Record)
			}
			if r.SetAside != nil {
				setAside[r.Service] = r.SetAside.Reason
			}
		}
		if page.InForce < 1 || page.SetAside != len(setAside) {
			t.Errorf("/records counts %d in force and %d set aside, and shows %v", page.InForce, page.SetAside, setAside)
		}
		return text, setAside
	}
	if text, setAside := inForce(); !sameJSON(t, []byte(text), []byte(good)) || len(setAside) != 0 {
		t.Errorf("in force %s, set aside %v; want what was published", text, setAside)
	}
	for name, bad := range map[string]string{
		"a member of a later version": strings.TrimSuffix(good, "}") + `,"mirror":"x"}`,
		"a match of a later version":  strings.TrimSuffix(good, "}") + `,"rules":[{"name":"r","match":[{"on":"body","in":["a"]}],"variant":"old"}]}`,
		"all weights 0":               strings.Replace(good, `"weight":1`, `"weight":0`, 1),
		"a regex that is none":        strings.TrimSuffix(good, "}") + `,"rules":[{"name":"r","match":[{"on":"path","regex":"("}],"variant":"old"}]}`,
		"a default that is none":      strings.Replace(good, `"default":"old"`, `"default":"older"`, 1),
	} {
		src.publish(nil, bad, pair("steady", 1, 1))
		poll(t, 10*time.Second, name+" is set aside", func() error {
			if _, setAside := inForce(); setAside[labService] == "" || len(setAside) != 1 {
				return fmt.Errorf("set aside: %v", setAside)
			}
			return nil
		})
		if text, _ := inForce(); !sameJSON(t, []byte(text), []byte(good)) {
			t.Errorf("%s: in force is %s, want the last good version", name, text)
		}
		wantRouted(t, l.get(t, "/x", [2]string{"tmx-user-id", "u-17"}), "new", "sticky")
		src.publish(nil, good, pair("steady", 1, 1))
		poll(t, 10*time.Second, "nothing is set aside", func() error {
			if _, setAside := inForce(); len(setAside) != 0 {
				return fmt.Errorf("set aside: %v", setAside)
			}
			return nil
		})
	}
	if got := call(t, "GET", l.admin+"/records?service=steady", nil, nil); strings.Contains(string(got.body), labService) || !strings.Contains(string(got.body), "steady") {
		t.Errorf("/records?service=steady shows %s", got.body)
	}
}
