package records

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"specialroutes.example/services/routing"
	"specialroutes.example/services/strictjson"
)

// endedFor is how long changes of labels that have ended are still kept. They hold no
// more from their end on; the time is for a clock that was wrong for a while.
const endedFor = 24 * time.Hour

// InstanceLabels is what an operator has changed of one instance's labels. It is
// immutable.
type InstanceLabels struct {
	Service  string
	ID       string
	Revision int64
	Labels   routing.LabelChanges
	Ends     time.Time // it holds no more from then on
}

// Overlays is the changes of labels in force, for some services. It is immutable; the
// same pointer is in later snapshots while nothing about it changes. A nil *Overlays
// has none.
type Overlays struct {
	services map[string]map[string]*InstanceLabels // by service and ID
}

// Services returns the changes by service and instance. Do not change the maps: that
// of a service is the same one in later Overlays while nothing about it changes.
func (o *Overlays) Services() map[string]map[string]*InstanceLabels {
	if o == nil {
		return nil
	}
	return o.services
}

// Overlays returns the changes of instances' labels in force, nil when there are none.
// Some of them may have ended.
func (s *Snapshot) Overlays() *Overlays {
	if s == nil {
		return nil
	}
	return s.labels.overlays
}

// overlayCounts returns how many instances' changes are in force and set aside.
func (s *Snapshot) overlayCounts() (inForce, setAside int) {
	if s == nil {
		return 0, 0
	}
	for _, labels := range s.labels.overlays.Services() {
		inForce += len(labels)
	}
	return inForce, s.labels.setAside
}

// labelBook is all that is known of changes of labels. It is immutable.
type labelBook struct {
	entries  map[labelKey]*labelEntry
	overlays *Overlays // nil: none
	setAside int
}

// labelKey names an instance.
type labelKey struct{ service, id string }

// labelEntry is what is known of one instance's changes.
type labelEntry struct {
	version version         // the one in force; its raw text is the document
	labels  *InstanceLabels // nil: none is in force
	aside   *setAside       // a later version that cannot be used
}

// labelItem is one element of envelope.InstanceLabels and of what is around it.
type labelItem struct {
	Service  string         `json:"service"`
	ID       string         `json:"id"`
	Revision jsontext.Value `json:"revision,omitzero"`
	Labels   jsontext.Value `json:"labels,omitzero"`
	Ends     jsontext.Value `json:"ends,omitzero"`

	// Of the file's LabelsSetAside only.
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// apply returns the book that e makes of b. An answer that is full and says nothing
// of labels is one of an earlier version, and leaves them as they are.
func (b labelBook) apply(e *envelope, now time.Time) labelBook {
	next := labelBook{entries: maps.Clone(b.entries)}
	if next.entries == nil || e.Full && e.InstanceLabels != nil {
		next.entries = make(map[labelKey]*labelEntry, len(e.InstanceLabels))
	}
	for _, text := range e.InstanceLabelsDeleted {
		var it labelItem
		if json.Unmarshal(text, &it, lenient) == nil {
			delete(next.entries, labelKey{it.Service, it.ID})
		}
	}
	for _, text := range slices.Concat(e.InstanceLabels, e.LabelsSetAside) {
		cand := decodeLabelItem(text)
		prior := next.entries[cand.key]
		if prior == nil && e.Full {
			prior = b.entries[cand.key]
		}
		next.entries[cand.key] = cand.after(prior, now)
	}
	maps.DeleteFunc(next.entries, func(_ labelKey, e *labelEntry) bool {
		return e.aside == nil && now.Sub(e.labels.Ends) > endedFor
	})
	if maps.Equal(b.entries, next.entries) {
		return b
	}
	next.settle(b.overlays)
	return next
}

// settle counts what is set aside and collects what is in force.
func (b *labelBook) settle(before *Overlays) {
	services := make(map[string]map[string]*InstanceLabels)
	for key, e := range b.entries {
		if e.aside != nil {
			b.setAside++
		}
		if e.labels == nil {
			continue
		}
		if services[key.service] == nil {
			services[key.service] = make(map[string]*InstanceLabels)
		}
		services[key.service][key.id] = e.labels
	}
	for service, labels := range services {
		if was := before.Services()[service]; maps.Equal(was, labels) {
			services[service] = was
		}
	}
	if len(services) > 0 {
		b.overlays = &Overlays{services}
	}
}

// labelCandidate is an item that was taken apart; reason says why it cannot be used.
type labelCandidate struct {
	key     labelKey
	version version
	labels  *InstanceLabels
	reason  string
	since   time.Time // zero: now
}

func decodeLabelItem(text jsontext.Value) labelCandidate {
	var it labelItem
	if err := json.Unmarshal(text, &it, lenient); err != nil {
		return labelCandidate{version: version{noRevision, text}, reason: "the item of the answer cannot be read"}
	}
	c := labelCandidate{key: labelKey{it.Service, it.ID}, version: version{noRevision, it.document()}, since: it.Since}
	n, err := strconv.ParseInt(string(it.Revision), 10, 64)
	switch {
	case !routing.ValidService(it.Service):
		c.reason = "the item of the answer names no service"
	case !routing.ValidInstance(it.ID):
		c.reason = "the item of the answer names no instance"
	case err != nil || n < 0:
		c.reason = "the item of the answer has no revision"
	default:
		c.version.revision = n
		c.labels, c.reason = c.decode()
	}
	return c
}

// document is the part of the item that was written by the operator.
func (it *labelItem) document() jsontext.Value {
	text, err := json.Marshal(struct {
		Labels jsontext.Value `json:"labels,omitzero"`
		Ends   jsontext.Value `json:"ends,omitzero"`
	}{it.Labels, it.Ends}, lenient)
	if err != nil { // both came out of a JSON document
		panic("records: an item that was read cannot be written: " + err.Error())
	}
	return text
}

// decode reads the document strictly.
func (c *labelCandidate) decode() (*InstanceLabels, string) {
	doc := new(routing.InstanceLabels)
	if err := strictjson.Decode(c.version.raw, doc); err != nil {
		return nil, err.Error()
	}
	if err := doc.Validate().Err(); err != nil {
		return nil, err.Error()
	}
	return &InstanceLabels{
		Service: c.key.service, ID: c.key.id, Revision: c.version.revision, Labels: doc.Labels, Ends: doc.EndsAt(),
	}, ""
}

// after returns the entry that the candidate makes of the prior one.
func (c *labelCandidate) after(prior *labelEntry, now time.Time) *labelEntry {
	if prior == nil {
		prior = new(labelEntry)
	}
	if a := prior.aside; a != nil && a.version.equal(c.version) ||
		a == nil && prior.labels != nil && prior.version.equal(c.version) {
		return prior
	}
	if c.reason == "" {
		return &labelEntry{version: c.version, labels: c.labels}
	}
	next := *prior
	next.aside = newSetAside(candidate{version: c.version, since: c.since}, c.reason, now)
	return &next
}

// setAsideInstances names the instances whose latest change of labels is set aside, as
// service/ID with the ID escaped like in a path, in order, at most so many and so many
// bytes. What is no name is left out, as with records.
func (s *Snapshot) setAsideInstances(most, mostBytes int) []string {
	if s == nil || s.labels.setAside == 0 {
		return nil
	}
	var names []string
	for key, e := range s.labels.entries {
		if e.aside != nil && routing.ValidService(key.service) && routing.ValidInstance(key.id) {
			names = append(names, key.service+"/"+url.PathEscape(key.id))
		}
	}
	slices.Sort(names)
	names = names[:min(len(names), most)]
	for i, n := range names {
		if mostBytes -= len(n); mostBytes < 0 {
			return names[:i]
		}
	}
	return names
}

// LabelState is an instance's changes of labels as the admin port shows them.
type LabelState struct {
	Service  string         `json:"service"`
	ID       string         `json:"id"`
	Revision int64          `json:"revision,omitempty"` // of the version in force
	Changes  jsontext.Value `json:"changes,omitzero"`   // the version in force; absent: none
	Ends     time.Time      `json:"-"`                  // of that
	SetAside *SetAside      `json:"setAside,omitempty"`
}

// LabelStates lists all changes of labels by service and instance. The values must not
// be modified.
func (s *Snapshot) LabelStates() []LabelState {
	if s == nil {
		return nil
	}
	states := make([]LabelState, 0, len(s.labels.entries))
	for key, e := range s.labels.entries {
		st := LabelState{Service: key.service, ID: key.id}
		if e.labels != nil {
			st.Revision, st.Changes, st.Ends = e.version.revision, e.version.raw, e.labels.Ends
		}
		if a := e.aside; a != nil {
			st.SetAside = &SetAside{Revision: a.version.revision, Reason: a.reason, Since: a.since, Record: a.version.raw}
		}
		states = append(states, st)
	}
	slices.SortFunc(states, func(a, b LabelState) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.ID, b.ID))
	})
	return states
}

// items returns the book as a full envelope holds it.
func (b *labelBook) items() (inForce, setAside []jsontext.Value) {
	inForce = []jsontext.Value{}
	for _, st := range (&Snapshot{labels: *b}).LabelStates() {
		if st.Changes != nil {
			inForce = append(inForce, marshalLabelItem(&st, st.Revision, st.Changes, nil))
		}
		if a := st.SetAside; a != nil {
			setAside = append(setAside, marshalLabelItem(&st, a.Revision, a.Record, a))
		}
	}
	return inForce, setAside
}

func marshalLabelItem(st *LabelState, revision int64, document jsontext.Value, aside *SetAside) jsontext.Value {
	var it labelItem
	_ = json.Unmarshal(document, &it, lenient) // what was no object has no members
	it.Service, it.ID, it.Revision = st.Service, st.ID, nil
	if revision != noRevision {
		it.Revision = fmt.Appendf(nil, "%d", revision)
	}
	if aside != nil {
		it.Reason, it.Since = aside.Reason, aside.Since
	}
	text, err := json.Marshal(it, lenient)
	if err != nil { // all of it came out of a JSON document
		panic("records: an item that was read cannot be written: " + err.Error())
	}
	return text
}
