package store

import (
	"context"
	"encoding/json"
	"time"
)

// What is kept about gateways: the newest MaxGateways, for GatewayAge.
const (
	MaxGateways = 1000
	GatewayAge  = 7 * 24 * time.Hour
)

// Gateway is what a gateway has told about itself by asking for changes.
type Gateway struct {
	ID       string
	Version  string   // "" when it does not say
	Cursor   Cursor   // the place up to which everything is in force there, or set aside; zero when that is not of this database's history
	SetAside []string // what it cannot use: a service's record by its name, an instance's labels as Instance.Name has it
	Seen     time.Time

	// Age is how long ago that was, by the clock that Seen is of.
	Age time.Duration

	// Follows says that it has asked, now or earlier, from a place in this database's
	// history, and so has taken an answer in. Anybody can ask without one.
	Follows bool

	// KnownFor is how long ago it was heard of first.
	KnownFor time.Duration

	// Left says that it has said that it ends, and was not heard of since.
	Left bool
}

// Gateways keeps what gateways tell, for all processes on a database to see. It is
// a part of every Store, apart from its records: losing it loses nothing that the
// gateways do not tell again within a minute.
type Gateways interface {
	// SeeGateway keeps what a gateway tells, in the place of what it told before. Seen,
	// Age, Follows, KnownFor and Left are the store's to set. Gateways not heard of for
	// GatewayAge are forgotten, and those beyond MaxGateways: first those that do not
	// follow, then those that were not heard of for longest.
	SeeGateway(ctx context.Context, g Gateway) error

	// LeaveGateway keeps that a gateway has said that it ends, until it is seen again. One
	// that was never seen is none.
	LeaveGateway(ctx context.Context, id string) error

	// ListGateways returns the gateways that were heard of within a time, by their ID.
	ListGateways(ctx context.Context, within time.Duration) ([]Gateway, error)
}

// SetAsideRow returns what a gateway has set aside as the JSON of its
// row. The error is ErrInvalid when a database cannot keep what the gateway tells.
func SetAsideRow(g Gateway) (string, error) {
	if err := CheckText(append([]string{g.ID, g.Version}, g.SetAside...)...); err != nil {
		return "", err
	}
	raw, err := json.Marshal(append([]string{}, g.SetAside...))
	return string(raw), err
}
