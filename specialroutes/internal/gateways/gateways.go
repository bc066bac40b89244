// Package gateways knows how far each gateway has got. A gateway that asks for the
// changes after a place says by it that everything up to there is in force with it,
// or set aside; that is kept in a table that all replicas share, so that a write
// through one of them can wait for gateways that follow another.
package gateways

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"specialroutes.example/specialroutes/internal/store"
)

const (
	// LiveFor is how long after its last question a gateway counts as one that runs.
	// A question comes at least once a minute.
	LiveFor = 2 * time.Minute

	// Patience is how long Await waits at most.
	Patience = 10 * time.Second

	// Newcomer is how long after its first question a gateway counts that has not
	// asked again from where the answer brought it. A real one does within moments;
	// anybody can make up the ID of one that never will.
	Newcomer = 5 * time.Second

	// MostOfPeer is how many IDs of gateways that run are listened to from one address
	// (IPv6: one /64).
	MostOfPeer = 200

	// interval is the time between two looks at the table while somebody waits.
	interval = 50 * time.Millisecond

	// refresh is how old what the table says of a gateway may get before the same is
	// written again.
	refresh = 20 * time.Second

	// tellTimeout bounds a write to the table: the gateway waits for its changes.
	tellTimeout = time.Second
)

// Tracker follows the gateways. It is safe for concurrent use.
type Tracker struct {
	store store.Gateways
	log   *slog.Logger

	mu     sync.Mutex
	told   map[string]told // what was written last, by gateway
	warned time.Time       // when it was told last that there are too many
}

type told struct {
	gateway store.Gateway
	peer    netip.Prefix
	at      time.Time
}

// New returns a tracker on a table.
func New(s store.Gateways, log *slog.Logger) *Tracker {
	return &Tracker{store: s, log: log, told: map[string]told{}}
}

// Tell keeps what a gateway says that asks from an address. That it cannot be kept is
// logged and no error, for the gateway needs its changes all the more.
func (t *Tracker) Tell(ctx context.Context, from netip.Addr, g store.Gateway) {
	if !t.isNews(peerOf(from), g) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	if err := t.store.SeeGateway(ctx, g); err != nil {
		t.log.Warn("what a gateway says cannot be kept", "gateway", g.ID, "error", err)
		t.forget(g.ID)
	}
}

// Leave keeps that a gateway has said that it ends: it is waited for no longer. That it
// cannot be kept is logged and no error: it is then waited for as one that was killed.
func (t *Tracker) Leave(ctx context.Context, id string) {
	t.forget(id) // what it says next is news
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	if err := t.store.LeaveGateway(ctx, id); err != nil {
		t.log.Warn("that a gateway ends cannot be kept", "gateway", id, "error", err)
	}
}

// peerOf returns what addresses of one sender have in common.
func peerOf(a netip.Addr) netip.Prefix {
	const network = 64 // bits, of IPv6
	a = a.Unmap().WithZone("")
	if !a.Is6() {
		return netip.PrefixFrom(a, a.BitLen())
	}
	p, _ := a.Prefix(network) // fails only for more bits than there are
	return p
}

// isNews says whether something is to be written, and takes it for written. It is not
// when the same was written a short while ago, or when the peer has told of as many
// gateways as may be.
func (t *Tracker) isNews(peer netip.Prefix, g store.Gateway) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, ok := t.told[g.ID]
	if ok && time.Since(last.at) < refresh && same(last.gateway, g) {
		return false
	}
	if !ok && !t.hasRoom(peer) {
		return false
	}
	t.told[g.ID] = told{gateway: g, peer: peer, at: time.Now()}
	return true
}

// hasRoom says whether one more ID of a peer is listened to, and drops what is old.
// t.mu is held.
func (t *Tracker) hasRoom(peer netip.Prefix) bool {
	maps.DeleteFunc(t.told, func(_ string, last told) bool { return time.Since(last.at) > LiveFor })
	mine := 0
	for _, last := range t.told {
		if last.peer == peer {
			mine++
		}
	}
	if mine < MostOfPeer && len(t.told) < store.MaxGateways {
		return true
	}
	if time.Since(t.warned) > LiveFor {
		t.warned = time.Now()
		t.log.Warn("more gateways ask than are listened to; wait=applied and the list leave out those that came last",
			"peer", peer.String(), "ofPeer", mine, "ofAll", len(t.told))
	}
	return false
}

func (t *Tracker) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.told, id)
}

func same(a, b store.Gateway) bool {
	return a.Version == b.Version && a.Cursor == b.Cursor && slices.Equal(a.SetAside, b.SetAside)
}

// List returns the gateways that were heard of, by their ID.
func (t *Tracker) List(ctx context.Context) ([]store.Gateway, error) {
	return t.store.ListGateways(ctx, store.GatewayAge)
}

// Progress is how far a change has got.
type Progress struct {
	Of       int      `json:"of"`       // gateways that run and follow
	Now      int      `json:"now"`      // those that are at or past the change
	Behind   []string `json:"behind"`   // the others
	SetAside []string `json:"setAside"` // those past it that cannot use it
}

// Await waits until every gateway that runs and follows, and has not left, is at or past a change, but no
// longer than Patience, until stop is closed, or ctx ends. changed is what was changed, as
// store.Gateway has it in SetAside. It returns how far the change has got then; the error
// is one of the table.
func (t *Tracker) Await(ctx context.Context, changed string, change store.Cursor, stop <-chan struct{}) (Progress, error) {
	over := time.NewTimer(Patience)
	defer over.Stop()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		live, err := t.store.ListGateways(ctx, LiveFor)
		if err != nil {
			return Progress{}, err
		}
		p := progress(live, changed, change)
		if p.Now == p.Of {
			return p, nil
		}
		select {
		case <-ticker.C:
		case <-over.C:
			return p, nil
		case <-stop:
			return p, nil
		case <-ctx.Done():
			return p, ctx.Err()
		}
	}
}

func progress(live []store.Gateway, changed string, change store.Cursor) Progress {
	p := Progress{Behind: []string{}, SetAside: []string{}}
	for _, g := range live {
		if g.Left || !g.Follows && g.KnownFor > Newcomer {
			continue
		}
		p.Of++
		if g.Cursor.Revision < change.Revision {
			p.Behind = append(p.Behind, g.ID)
			continue
		}
		p.Now++
		if slices.Contains(g.SetAside, changed) {
			p.SetAside = append(p.SetAside, g.ID)
		}
	}
	return p
}
