package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"specialroutes.example/specialroutes/internal/store"
)

// SeeGateway implements store.Gateways. Times are the server's, so that the clocks
// of the processes do not matter.
func (s *Store) SeeGateway(ctx context.Context, g store.Gateway) error {
	setAside, err := store.SetAsideRow(g)
	if err != nil {
		return err
	}
	return s.with(ctx, "see a gateway", s.limits.Read, func(ctx context.Context, c *pgxpool.Conn) error {
		tag, err := c.Exec(ctx, `
			INSERT INTO gateways (id, version, revision, nonce, set_aside, seen_at, follows, since)
			VALUES ($1, $2, $3, $4, $5::text::jsonb, now(), $6, now())
			ON CONFLICT (id) DO UPDATE SET version = EXCLUDED.version, revision = EXCLUDED.revision,
				nonce = EXCLUDED.nonce, set_aside = EXCLUDED.set_aside, seen_at = EXCLUDED.seen_at, left_at = NULL,
				follows = COALESCE(gateways.follows, true) OR EXCLUDED.follows
			WHERE gateways.seen_at <= EXCLUDED.seen_at`,
			g.ID, g.Version, g.Cursor.Revision, g.Cursor.Nonce, setAside, !g.Cursor.IsZero())
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		_, err = c.Exec(ctx, `
			DELETE FROM gateways WHERE seen_at < now() - $1::bigint * interval '1 second'
			OR id IN (SELECT id FROM gateways ORDER BY COALESCE(follows, true) DESC, seen_at DESC OFFSET $2)`,
			int64(store.GatewayAge/time.Second), store.MaxGateways)
		return err
	})
}

// LeaveGateway implements store.Gateways.
func (s *Store) LeaveGateway(ctx context.Context, id string) error {
	if err := store.CheckText(id); err != nil {
		return err
	}
	return s.with(ctx, "see a gateway leave", s.limits.Read, func(ctx context.Context, c *pgxpool.Conn) error {
		_, err := c.Exec(ctx, `UPDATE gateways SET left_at = now() WHERE id = $1`, id)
		return err
	})
}

// ListGateways implements store.Gateways.
func (s *Store) ListGateways(ctx context.Context, within time.Duration) (list []store.Gateway, err error) {
	err = s.with(ctx, "list gateways", s.limits.Bulk, func(ctx context.Context, c *pgxpool.Conn) error {
		list, err = collect(scanGateway)(c.Query(ctx, `
			SELECT id, version, revision, nonce, set_aside::text, seen_at,
				(extract(epoch FROM now() - seen_at) * 1000000)::bigint, COALESCE(follows, true),
				(extract(epoch FROM now() - COALESCE(since, 'epoch')) * 1000000)::bigint,
				COALESCE(left_at >= seen_at, false)
			FROM gateways WHERE seen_at >= now() - $1::bigint * interval '1 microsecond' ORDER BY id`,
			within.Microseconds()))
		return err
	})
	return list, err
}

func scanGateway(row pgx.Row) (store.Gateway, error) {
	var g store.Gateway
	var setAside string
	var age, known int64
	err := row.Scan(&g.ID, &g.Version, &g.Cursor.Revision, &g.Cursor.Nonce, &setAside, &g.Seen, &age, &g.Follows, &known, &g.Left)
	if err != nil {
		return g, err
	}
	g.Seen, g.Age = g.Seen.UTC(), time.Duration(age)*time.Microsecond
	g.KnownFor = time.Duration(known) * time.Microsecond
	return g, json.Unmarshal([]byte(setAside), &g.SetAside)
}
