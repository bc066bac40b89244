package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"specialroutes.example/specialroutes/internal/store"
)

// SeeGateway implements store.Gateways.
func (s *Store) SeeGateway(ctx context.Context, g store.Gateway) error {
	setAside, err := store.SetAsideRow(g)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	return meaning(ctx, "see a gateway", s.seeGateway(limited, g, setAside))
}

func (s *Store) seeGateway(ctx context.Context, g store.Gateway, setAside string) error {
	tx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	// After a commit this does nothing; after a failure err says what matters.
	defer func() { _ = tx.Rollback() }()
	now := s.sources.Now().UTC()
	_, err = tx.ExecContext(ctx, `
		INSERT INTO gateways (id, version, revision, nonce, set_aside, seen_at, follows, since)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?6)
		ON CONFLICT (id) DO UPDATE SET version = excluded.version, revision = excluded.revision,
			nonce = excluded.nonce, set_aside = excluded.set_aside, seen_at = excluded.seen_at, left_at = NULL,
			follows = COALESCE(gateways.follows, true) OR excluded.follows`,
		g.ID, g.Version, g.Cursor.Revision, g.Cursor.Nonce, setAside, now.Format(timeLayout), !g.Cursor.IsZero())
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		DELETE FROM gateways WHERE seen_at < ?
		OR id IN (SELECT id FROM gateways ORDER BY COALESCE(follows, true) DESC, seen_at DESC LIMIT -1 OFFSET ?)`,
		now.Add(-store.GatewayAge).Format(timeLayout), store.MaxGateways)
	if err != nil {
		return err
	}
	return tx.Commit()
}

// LeaveGateway implements store.Gateways.
func (s *Store) LeaveGateway(ctx context.Context, id string) error {
	if err := store.CheckText(id); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	_, err := s.writer.ExecContext(limited, `UPDATE gateways SET left_at = ? WHERE id = ?`,
		s.sources.Now().UTC().Format(timeLayout), id)
	return meaning(ctx, "see a gateway leave", err)
}

// ListGateways implements store.Gateways.
func (s *Store) ListGateways(ctx context.Context, within time.Duration) ([]store.Gateway, error) {
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	now := s.sources.Now().UTC()
	list, err := query(limited, s.reader, scanGateway(now), `
		SELECT id, version, revision, nonce, set_aside, seen_at, COALESCE(follows, true), since,
			COALESCE(left_at >= seen_at, false) FROM gateways
		WHERE seen_at >= ? ORDER BY id`, now.Add(-within).Format(timeLayout))
	return list, meaning(ctx, "list gateways", err)
}

// scanGateway makes a function that reads a gateway, and how long it was heard of
// before now.
func scanGateway(now time.Time) func(*sql.Rows) (store.Gateway, error) {
	return func(rows *sql.Rows) (store.Gateway, error) {
		var g store.Gateway
		var setAside []byte
		var seen string
		var since sql.NullString
		err := rows.Scan(&g.ID, &g.Version, &g.Cursor.Revision, &g.Cursor.Nonce, &setAside, &seen, &g.Follows, &since, &g.Left)
		if err != nil {
			return g, err
		}
		if g.Seen, err = time.Parse(timeLayout, seen); err != nil {
			return g, err
		}
		first, _ := time.Parse(timeLayout, since.String) // the zero time: long ago
		g.Age, g.KnownFor = max(0, now.Sub(g.Seen)), max(0, now.Sub(first))
		return g, json.Unmarshal(setAside, &g.SetAside)
	}
}
