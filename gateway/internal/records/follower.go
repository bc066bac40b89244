package records

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"specialroutes.example/services/routing"
)

// Times are the durations of a Follower. A zero field takes that of DefaultTimes.
type Times struct {
	Wait  time.Duration // how long an answer may wait for a change
	Slack time.Duration // on top of that, until the head of the answer
	Body  time.Duration // from there to the end of the answer
	Grace time.Duration // after which Ready is closed without any records
	Pause time.Duration // between the starts of two questions, at least
	Least time.Duration // first delay after an error
	Most  time.Duration // longest delay after errors
	Save  time.Duration // between two writings of the file, at least
}

// DefaultTimes returns the durations of a gateway in service.
func DefaultTimes() Times {
	return Times{
		Wait:  55 * time.Second,
		Slack: 5 * time.Second,
		Body:  60 * time.Second,
		Grace: 10 * time.Second,
		Pause: 50 * time.Millisecond,
		Least: 200 * time.Millisecond,
		Most:  2 * time.Second,
		Save:  time.Second,
	}
}

// DefaultMaxAnswer is the longest answer that is read, in bytes.
const DefaultMaxAnswer = 256 << 20

// Options is what a Follower needs.
type Options struct {
	URLs           []string // base URLs of specialroutes, asked in turn; at least one
	GatewayID      string   // tells specialroutes who asks
	TokenFile      string   // "" sends no token
	CAFile         string   // "" trusts the system's
	File           string   // keeps the last good records; "" is none
	AllowLinkLocal bool     // permits endpoints that are refused otherwise

	// Prepare is called with the records that are about to be in force and returns when
	// what they need is there, soon in any case. Nil needs nothing.
	Prepare func(ctx context.Context, next *Snapshot)

	// Instances are kept in the file beside the records. Nil keeps none.
	Instances InstanceKeeper

	Version string // of this gateway; tells specialroutes, too

	Log       *slog.Logger     // nil discards
	Now       func() time.Time // nil is time.Now; for ages only
	Random    func() float64   // [0, 1), for jitter; nil is math/rand/v2
	Times     Times
	MaxAnswer int64 // bytes; 0 is DefaultMaxAnswer
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.MaxAnswer == 0 {
		o.MaxAnswer = DefaultMaxAnswer
	}
	o.Times = o.Times.withDefaults()
	return o
}

func (t Times) withDefaults() Times {
	d := DefaultTimes()
	for _, f := range []struct{ set, other *time.Duration }{
		{&t.Wait, &d.Wait},
		{&t.Slack, &d.Slack},
		{&t.Body, &d.Body},
		{&t.Grace, &d.Grace},
		{&t.Pause, &d.Pause},
		{&t.Least, &d.Least},
		{&t.Most, &d.Most},
		{&t.Save, &d.Save},
	} {
		if *f.set == 0 {
			*f.set = *f.other
		}
	}
	return t
}

// Follower keeps a Store equal to the records of specialroutes. Run does the
// work; the other methods are safe for concurrent use.
type Follower struct {
	o        Options
	store    *Store
	client   *client
	compiler compiler
	saver    *saver
	ready    chan struct{}
	once     sync.Once
	status   statusBox

	// Of Run alone.
	url      int // index into o.URLs
	failures int // exchanges that failed, in a row
	idle     int // answers that came early and brought nothing, in a row

	// withoutLabels says that the records are of a file that an older gateway wrote:
	// its cursor may be past changes of labels that it did not keep, so everything is
	// asked for.
	withoutLabels bool
}

// NewFollower returns a Follower for store, which nobody else may fill. It fails
// when the CA file or the token file cannot be used.
func NewFollower(o Options, store *Store) (*Follower, error) {
	o = o.withDefaults()
	c, err := newClient(o)
	if err != nil {
		return nil, err
	}
	f := &Follower{o: o, store: store, client: c, ready: make(chan struct{})}
	if o.AllowLinkLocal {
		f.compiler.options = append(f.compiler.options, routing.AllowLinkLocal())
	}
	f.saver = newSaver(o, f.status.fileFailed)
	// Gateways that start together do not all ask the first replica.
	f.url = int(o.Random() * float64(len(o.URLs)))
	return f, nil
}

// Ready is closed when there are records from specialroutes or from the file, or
// when Times.Grace is over.
func (f *Follower) Ready() <-chan struct{} { return f.ready }

func (f *Follower) markReady() { f.once.Do(func() { close(f.ready) }) }

// Run loads the file and follows specialroutes until ctx ends. It returns nil,
// after the last state has been written to the file.
func (f *Follower) Run(ctx context.Context) error {
	f.loadFile()
	grace := time.AfterFunc(f.o.Times.Grace, f.markReady)
	defer grace.Stop()
	defer f.client.http.CloseIdleConnections()

	var saving sync.WaitGroup
	saving.Go(func() { f.saver.run(ctx) })
	for ctx.Err() == nil {
		pause(ctx, f.round(ctx))
	}
	f.sayGoodbye()
	saving.Wait()
	f.saver.finish() // with what the last exchange brought
	return nil
}

// goodbyeLimit bounds the last word to specialroutes: it is a courtesy, and the process is
// to end.
const goodbyeLimit = time.Second

// sayGoodbye tells specialroutes that this gateway ends, so that no change waits for it.
// The first one that hears it passes it on to the others. When none does, they find out
// when it has not asked for a while.
func (f *Follower) sayGoodbye() {
	ctx, cancel := context.WithTimeout(context.Background(), goodbyeLimit)
	defer cancel()
	var err error
	for i := range f.o.URLs {
		base := f.o.URLs[(f.url+i)%len(f.o.URLs)]
		if err = f.client.leave(ctx, base, f.store.Load()); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		f.o.Log.Info("specialroutes cannot be told that this gateway ends", "error", err)
	}
}

// InstancesChanged tells that what the InstanceKeeper saves has changed. It returns at
// once.
func (f *Follower) InstancesChanged() { f.saver.wake() }

// loadFile starts from the last good records and instances on disk. Nothing that is
// wrong with the file stops the gateway.
func (f *Follower) loadFile() {
	if f.o.File == "" {
		return
	}
	e, written, err := readFile(f.o.File, f.o.MaxAnswer)
	if err != nil {
		f.status.fileFailed()
		f.o.Log.Error("the file of records cannot be used; starting without it", "file", f.o.File, "error", err)
		return
	}
	if e == nil {
		f.o.Log.Info("there is no file of records yet", "file", f.o.File)
		return
	}
	f.restoreInstances(e)
	if e.Cursor == "" {
		f.o.Log.Info("the file of records holds instances only", "file", f.o.File)
		return
	}
	f.withoutLabels = e.InstanceLabels == nil
	asOf := f.believable(e.AsOf, written)
	s := f.compiler.apply(nil, e, f.o.Now())
	f.logSetAside(nil, s)
	f.saver.seen(s, asOf, false)
	f.publish(s, SourceFile, asOf)
	f.o.Log.Info("started from the file of records", "file", f.o.File, "records", s.Len(), "setAside", s.SetAside(),
		"cursor", s.Cursor(), "age", f.o.Now().Sub(asOf))
}

// skew is how far two readings of the clock may be apart without a reason.
const skew = time.Minute

// believable returns the time of which the file's records are. One that is missing or
// to come says nothing; then it is the time of the writing, or, where that is to come
// as well, so long ago that nobody takes the records for fresh.
func (f *Follower) believable(asOf, written time.Time) time.Time {
	latest := f.o.Now().Add(skew)
	switch {
	case !asOf.IsZero() && asOf.Before(latest):
		return asOf
	case written.Before(latest):
		f.o.Log.Warn("the file of records does not say of when it is; taking the time of its writing", "file", f.o.File, "asOf", asOf, "written", written)
		return written
	}
	f.o.Log.Warn("it cannot be told how old the file of records is; taking it for very old", "file", f.o.File, "asOf", asOf, "written", written)
	return time.Unix(0, 0)
}

// restoreInstances hands the file's instances to their keeper.
func (f *Follower) restoreInstances(e *envelope) {
	if f.o.Instances == nil || len(e.Instances) == 0 {
		return
	}
	if err := f.o.Instances.Restore(e.Instances); err != nil {
		f.status.fileFailed()
		f.o.Log.Error("the instances in the file of records cannot be used; starting without them", "file", f.o.File, "error", err)
	}
}

func (f *Follower) publish(s *Snapshot, from Source, asOf time.Time) {
	f.store.current.Store(s)
	f.status.inForce(s, from, asOf)
	f.markReady()
}

// round makes one exchange and returns how long to wait before the next.
func (f *Follower) round(ctx context.Context) time.Duration {
	before := f.store.Load()
	base := f.o.URLs[f.url]
	// A first answer, or one after an error, is wanted at once: until then it is
	// not known whether what is in force is still right.
	wait := time.Duration(0)
	if f.failures == 0 && f.status.load().Source == SourceLive {
		wait = f.o.Times.Wait
	}
	started := time.Now()
	asked := before
	if f.withoutLabels {
		asked = nil
	}
	e, err := f.client.ask(ctx, base, asked, wait)
	if err == nil && !e.Full && asked.Cursor() == "" {
		err = errNotFull
	}
	if ctx.Err() != nil {
		return 0
	}
	if err != nil {
		return f.failed(base, err)
	}
	took := time.Since(started)
	f.withoutLabels = false
	f.succeeded(base)
	news := e.Full || e.Cursor != before.Cursor() ||
		len(e.Records)+len(e.Deleted)+len(e.InstanceLabels)+len(e.InstanceLabelsDeleted) > 0
	if news {
		f.change(ctx, before, e)
	} else {
		f.publish(before, SourceLive, f.o.Now())
	}
	f.saver.seen(f.store.Load(), f.o.Now(), news)
	return f.nextDelay(e, before, news, wait, took)
}

// nextDelay spaces the questions after an answer. One that was to wait and came
// early without news is a replica about to stop; full answers one after the other
// are replicas that do not agree. Neither may be asked in a hot loop.
func (f *Follower) nextDelay(e *envelope, before *Snapshot, news bool, wait, took time.Duration) time.Duration {
	early := !news && wait > 0 && took < wait/2
	fullAgain := e.Full && before.Cursor() != ""
	if early {
		f.url = (f.url + 1) % len(f.o.URLs)
	}
	if early || fullAgain {
		f.idle++
		return f.backoff(f.idle - 1)
	}
	f.idle = 0
	return f.o.Times.Pause - took
}

// failed notes an error, turns to the next URL and returns the delay. While some
// URLs have not been tried, the next one is tried at once.
func (f *Follower) failed(base string, err error) time.Duration {
	f.failures++
	f.status.failed(base, err, f.o.Now())
	f.url = (f.url + 1) % len(f.o.URLs)
	if f.failures&(f.failures-1) == 0 { // the first, second, fourth, eighth …
		what := "specialroutes cannot be followed; the last good records stay in force"
		if f.status.load().Source == SourceNone {
			what = "specialroutes cannot be followed; there are no records yet"
		}
		f.o.Log.Warn(what, "url", base, "error", err, "failures", f.failures)
	}
	if f.failures < len(f.o.URLs) {
		return f.o.Times.Pause
	}
	return f.backoff(f.failures - len(f.o.URLs))
}

func (f *Follower) succeeded(base string) {
	if f.failures > 0 {
		f.o.Log.Info("specialroutes is followed again", "url", base, "failures", f.failures)
	}
	f.status.succeeded(base, f.failures > 0)
	f.failures = 0
}

// backoff returns the n-th delay: doubling up to a bound, and a random half of it
// so that gateways do not come back all at once.
func (f *Follower) backoff(n int) time.Duration {
	d := f.o.Times.Most
	if n < 16 {
		d = min(d, f.o.Times.Least<<n)
	}
	return d/2 + time.Duration(f.o.Random()*float64(d/2))
}

// change puts the records of e in force.
func (f *Follower) change(ctx context.Context, before *Snapshot, e *envelope) {
	s := f.compiler.apply(before, e, f.o.Now())
	f.logChange(before, s, e)
	f.logSetAside(before, s)
	if f.o.Prepare != nil {
		f.o.Prepare(ctx, s)
	}
	f.publish(s, SourceLive, f.o.Now())
	f.status.changed(e.Full)
}

func (f *Follower) logChange(before, s *Snapshot, e *envelope) {
	if e.Full && before.Cursor() != "" {
		f.o.Log.Warn("all records are replaced: specialroutes does not know where we were, as after a restored database",
			"from", before.Cursor(), "to", s.Cursor(), "recordsBefore", before.Len(), "records", s.Len())
		return
	}
	f.o.Log.Info("records changed", "full", e.Full, "written", len(e.Records), "deleted", len(e.Deleted),
		"labelsWritten", len(e.InstanceLabels), "labelsDeleted", len(e.InstanceLabelsDeleted), "records", s.Len(), "setAside", s.SetAside(), "cursor", s.Cursor())
}

// logSetAside tells of each record, and of each change of labels, that was set aside
// since before.
func (f *Follower) logSetAside(before, s *Snapshot) {
	f.logLabelsSetAside(before, s)
	if s.setAside == 0 {
		return
	}
	for _, service := range s.services() {
		e := s.entries[service]
		if e.aside == nil || before != nil && before.entries[service] == e {
			continue
		}
		f.o.Log.Error("a record cannot be used; its last good version stays in force",
			"record", service, "revision", e.aside.version.revision, "reason", e.aside.reason,
			"inForce", e.record != nil, "revisionInForce", e.version.revision)
	}
}

func (f *Follower) logLabelsSetAside(before, s *Snapshot) {
	if s.labels.setAside == 0 {
		return
	}
	for key, e := range s.labels.entries {
		if e.aside == nil || before != nil && before.labels.entries[key] == e {
			continue
		}
		f.o.Log.Error("a change of an instance's labels cannot be used; its last good version stays in force",
			"of", key.service, "instance", key.id, "revision", e.aside.version.revision, "reason", e.aside.reason,
			"inForce", e.labels != nil, "revisionInForce", e.version.revision)
	}
}

// pause waits for d or for the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
