// Package records holds the route records of the moment: it follows
// specialroutes with a blocking query, keeps the last good version of each record
// in memory and on disk, and hands requests an immutable snapshot. No request
// ever waits for it.
package records

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"specialroutes.example/services/routing"
)

// Snapshot is the records of one moment, compiled. It is immutable and safe for
// concurrent use; a request takes one and keeps it to its end. A nil *Snapshot
// has no records.
type Snapshot struct {
	cursor   string
	entries  map[string]*entry // by service
	wildcard *routing.Record   // the record "*" in force, nil when there is none
	others   *routing.Route    // of services without a record
	headers  []string          // see RoutingHeaders
	setAside int
	labels   labelBook
}

// entry is what is known of one service's record. It is immutable.
type entry struct {
	version version         // the one in force
	record  *routing.Record // nil: none is in force
	route   *routing.Route
	aside   *setAside // a later version that cannot be used
}

// noRevision is that of a version that came without a usable one.
const noRevision = -1

// version is one state of a record as it was received.
type version struct {
	revision int64
	raw      jsontext.Value
}

func (v version) equal(w version) bool {
	return v.revision == w.revision && bytes.Equal(v.raw, w.raw)
}

// setAside is a version that cannot be used, and why.
type setAside struct {
	version version
	reason  string
	since   time.Time
}

// Route returns the compiled record of a service. For a service without one it is
// a route that holds what the record "*" says, or nil; both decide as well: all
// goes to the service's own instances.
func (s *Snapshot) Route(service string) *routing.Route {
	if s == nil {
		return nil
	}
	if e := s.entries[service]; e != nil && e.route != nil {
		return e.route
	}
	return s.others
}

// RoutingHeaders returns the headers that the label rules of any service read, in
// canonical form, sorted and each once. The slice must not be modified.
func (s *Snapshot) RoutingHeaders() []string {
	if s == nil {
		return nil
	}
	return s.headers
}

// routingHeaders collects what RoutingHeaders returns.
func (s *Snapshot) routingHeaders() []string {
	var names []string
	note := func(rt *routing.Route) {
		for _, rule := range rt.LabelRules() {
			names = append(names, rule.Header)
		}
	}
	note(s.others)
	for _, e := range s.entries {
		note(e.route)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Cursor is the place in the order of changes that the snapshot has reached, ""
// for none. It is opaque.
func (s *Snapshot) Cursor() string {
	if s == nil {
		return ""
	}
	return s.cursor
}

// Len is the number of records in force.
func (s *Snapshot) Len() int {
	n := 0
	if s != nil {
		for _, e := range s.entries {
			if e.record != nil {
				n++
			}
		}
	}
	return n
}

// SetAside is the number of records whose latest version cannot be used.
func (s *Snapshot) SetAside() int {
	if s == nil {
		return 0
	}
	return s.setAside
}

// setAsideServices names the services whose record is set aside, in order and at
// most so many. What is no name is left out: a row that was written by hand may
// have any, and the question must stay one that is answered.
func (s *Snapshot) setAsideServices(most int) []string {
	if s.SetAside() == 0 {
		return nil
	}
	var names []string
	for service, e := range s.entries {
		if e.aside != nil && routing.ValidService(service) {
			names = append(names, service)
		}
	}
	slices.Sort(names)
	return names[:min(len(names), most)]
}

// State is a service's record as the admin port shows it.
type State struct {
	Service  string         `json:"service"`
	Revision int64          `json:"revision,omitempty"` // of the version in force
	Record   jsontext.Value `json:"record,omitzero"`    // the version in force; absent: none
	SetAside *SetAside      `json:"setAside,omitempty"`
}

// SetAside is a version that was received and cannot be used, as the admin port
// shows it.
type SetAside struct {
	Revision int64          `json:"revision"` // -1: it came without one
	Reason   string         `json:"reason"`
	Since    time.Time      `json:"since"`
	Record   jsontext.Value `json:"record,omitzero"`
}

// States lists all records by service. The values must not be modified.
func (s *Snapshot) States() []State {
	if s == nil {
		return nil
	}
	states := make([]State, 0, len(s.entries))
	for service, e := range s.entries {
		st := State{Service: service}
		if e.record != nil {
			st.Revision, st.Record = e.version.revision, e.version.raw
		}
		if a := e.aside; a != nil {
			st.SetAside = &SetAside{Revision: a.version.revision, Reason: a.reason, Since: a.since, Record: a.version.raw}
		}
		states = append(states, st)
	}
	slices.SortFunc(states, func(a, b State) int { return cmp.Compare(a.Service, b.Service) })
	return states
}

// Store holds the snapshot in force. The zero value holds none. It is safe for
// concurrent use.
type Store struct {
	current atomic.Pointer[Snapshot]
}

// Load returns the snapshot in force. It is nil while there is none, which reads
// as one without records.
func (s *Store) Load() *Snapshot { return s.current.Load() }

// services returns the services with an entry, in order.
func (s *Snapshot) services() []string { return slices.Sorted(maps.Keys(s.entries)) }
