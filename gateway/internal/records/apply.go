package records

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"specialroutes.example/services/routing"
)

// longestReason bounds what a bad record can make us log and show.
const longestReason = 1024

// compiler turns envelopes into snapshots. It is a plain value without state.
type compiler struct {
	options []routing.Option
}

// apply returns the snapshot that e makes of before, which may be nil. A full
// envelope replaces everything; one that is not is applied over before. A record
// that cannot be used leaves its last good version in force, also under a full
// envelope; all others apply. Equal versions keep what was compiled.
func (c compiler) apply(before *Snapshot, e *envelope, now time.Time) *Snapshot {
	if before == nil {
		before = new(Snapshot)
	}
	s := &Snapshot{cursor: e.Cursor, entries: make(map[string]*entry, len(e.Records))}
	if !e.Full {
		s.entries = maps.Clone(before.entries)
		if s.entries == nil {
			s.entries = make(map[string]*entry, len(e.Records))
		}
		for _, service := range e.Deleted {
			delete(s.entries, service)
		}
	}
	candidates := decodeItems(e)
	c.settleWildcard(s, before, e.Full, candidates, now)
	for _, cand := range candidates {
		if cand.service != routing.Wildcard {
			s.entries[cand.service] = c.next(s.prior(before, e.Full, cand.service), cand, s.wildcard, now)
		}
	}
	if s.wildcard != before.wildcard {
		c.recompile(s, now)
	}
	for _, entry := range s.entries {
		if entry.aside != nil {
			s.setAside++
		}
	}
	s.headers = s.routingHeaders()
	s.labels = before.labels.apply(e, now)
	return s
}

// decodeItems returns the candidates of e. Those that were set aside come last, so
// that they meet the good version of the same service.
func decodeItems(e *envelope) []candidate {
	all := make([]candidate, 0, len(e.Records)+len(e.SetAside))
	for _, list := range [][]jsontext.Value{e.Records, e.SetAside} {
		for _, text := range list {
			all = append(all, decodeItem(text))
		}
	}
	return all
}

// prior returns the entry that a candidate of the service comes after, nil for
// none. Under a full envelope that is the one before, whose good version may have
// to stay.
func (s *Snapshot) prior(before *Snapshot, full bool, service string) *entry {
	if e := s.entries[service]; e != nil || !full {
		return e
	}
	return before.entries[service]
}

// settleWildcard decides on the record "*" before all others, for they are
// compiled over it.
func (c compiler) settleWildcard(s, before *Snapshot, full bool, candidates []candidate, now time.Time) {
	for _, cand := range candidates {
		if cand.service == routing.Wildcard {
			s.entries[routing.Wildcard] = c.next(s.prior(before, full, routing.Wildcard), cand, nil, now)
		}
	}
	if e := s.entries[routing.Wildcard]; e != nil {
		s.wildcard = e.record
	}
	if s.wildcard == before.wildcard {
		s.others = before.others
		return
	}
	s.others, _ = c.compile(nil, s.wildcard) // it has been validated
}

// next returns the entry that a candidate makes of the prior one.
func (c compiler) next(prior *entry, cand candidate, wildcard *routing.Record, now time.Time) *entry {
	if prior == nil {
		prior = new(entry)
	}
	if a := prior.aside; a != nil && a.version.equal(cand.version) {
		return prior
	}
	if prior.aside == nil && prior.record != nil && prior.version.equal(cand.version) {
		return prior
	}
	reason := cand.reason
	if reason == "" {
		route, err := c.compile(cand.record, wildcard)
		if err == nil {
			return &entry{version: cand.version, record: cand.record, route: route}
		}
		reason = err.Error()
	}
	next := *prior
	next.aside = newSetAside(cand, reason, now)
	return &next
}

func newSetAside(cand candidate, reason string, now time.Time) *setAside {
	since := cand.since
	if since.IsZero() {
		since = now
	}
	if len(reason) > longestReason {
		reason = strings.ToValidUTF8(reason[:longestReason], "") + "…"
	}
	return &setAside{version: cand.version, reason: reason, since: since}
}

// recompile compiles the records that take something from the record "*" again.
func (c compiler) recompile(s *Snapshot, now time.Time) {
	for service, e := range s.entries {
		if e.record == nil || service == routing.Wildcard || e.record.LabelRules != nil && e.record.OnUnavailable != nil {
			continue
		}
		next := *e
		route, err := c.compile(e.record, s.wildcard)
		if err != nil { // both are valid, so only what they are together can be wrong
			next.aside = newSetAside(candidate{version: e.version}, err.Error(), now)
		} else {
			next.route = route
		}
		s.entries[service] = &next
	}
}

// compile compiles a record. A fault in the compiler that a record brings to
// light must cost that record and not the gateway, which would meet it again at
// every start.
func (c compiler) compile(r, wildcard *routing.Record) (route *routing.Route, err error) {
	defer func() {
		if p := recover(); p != nil {
			route, err = nil, fmt.Errorf("the record brings out a fault in the gateway: %v", p)
		}
	}()
	if r != nil && r.Service == routing.Wildcard {
		return nil, r.Validate(c.options...).Err()
	}
	return routing.Compile(r, wildcard, c.options...)
}
