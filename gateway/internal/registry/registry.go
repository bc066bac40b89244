// Package registry knows the instances of the moment. Adapters follow a source of
// them (consul) or list what the configuration says (static); a request reads one
// immutable snapshot and waits for nobody.
package registry

import (
	"time"

	"specialroutes.example/services/routing"
)

// Instance is one running copy of a service. It is immutable once it is in a
// snapshot, and the same pointer stays in later snapshots while nothing about the
// instance changes.
type Instance struct {
	ID      string // unique in its service
	Service string
	Address string // host:port, an IPv6 host in brackets
	ByName  bool   // the host is a name, so no network is known to hold it
	Labels  map[string]string

	// FromMeta are the names of those labels that are from the registry's meta, in
	// order. All others are from its tags, or from the settings.
	FromMeta []string

	// Warnings say what is odd about an instance that can be used all the same.
	Warnings []string

	// Operator is what an operator has changed of the labels; nil: nothing. Registered
	// are the labels without that, and nil where Operator is.
	Operator   *Operator
	Registered map[string]string

	// Unconfirmed is an instance that the registry listed before it was away and has
	// not listed since. It may be gone: a connect to it that fails takes it out.
	Unconfirmed bool
}

// Operator is an operator's change of an instance's labels. It is immutable.
type Operator struct {
	Labels   routing.LabelChanges
	Ends     time.Time // the change is none from then on
	Revision int64     // of the change at specialroutes
}

// Registry is a source of instances. All methods are safe for concurrent use.
type Registry interface {
	// Load returns the snapshot in force. It never blocks and never returns nil.
	Load() *Snapshot

	// Ready is closed when every service of the gateway's table has had one good
	// answer, be it that it has no instances.
	Ready() <-chan struct{}

	// Status says where the instances come from.
	Status() Status

	// ConnectFailed tells that a connect to an instance of a service failed. It
	// takes an unconfirmed instance out of the snapshot; about all others the
	// registry knows better. It never blocks for long.
	ConnectFailed(service, id string)
}

// Known is what is known of one service's instances, to be kept over a restart.
type Known struct {
	Service   string
	AsOf      time.Time // when the registry last said so
	Instances []Instance
}

// Source says where data in force come from.
type Source string

// The sources, as /readyz names them.
const (
	Live Source = "live" // from the registry itself
	File Source = "file" // from the file of the last good state
	None Source = "none" // nothing is known yet
)

// Status is the state of a registry.
type Status struct {
	Source Source
	Since  time.Time // when the data were last known to be right; zero: always

	Errors      int64     // questions to the registry that failed since the start
	LastError   string    // of the last of them
	LastErrorAt time.Time // zero: there was none

	// FailingSince is when the questions began to fail about a service of which there
	// has been no good answer since; zero: all is well.
	FailingSince time.Time
}
