// Package records holds the route records of the moment: it follows
// specialroutes with a blocking query, keeps the last good version of each record
// in memory and on disk, and hands requests an immutable snapshot. No request
// ever waits for it.
package records

import (
	"sync/atomic"

	"specialroutes.example/services/routing"
)

// Snapshot is the records of one moment, compiled. It is immutable and safe for
// concurrent use; a request takes one and keeps it to its end.
type Snapshot struct {
	routes map[string]*routing.Route
}

// Route returns the compiled record of a service, or nil when it has none. A nil
// *routing.Route decides as well: all goes to the service's own instances. A nil
// snapshot has no records.
func (s *Snapshot) Route(service string) *routing.Route {
	if s == nil {
		return nil
	}
	return s.routes[service]
}

// Store holds the snapshot in force. The zero value holds an empty one. It is
// safe for concurrent use.
type Store struct {
	current atomic.Pointer[Snapshot]
}

// Load returns the snapshot in force. It is nil while there is none, which reads
// as one without records.
func (s *Store) Load() *Snapshot { return s.current.Load() }
