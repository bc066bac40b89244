package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"specialroutes.example/specialroutes/internal/store"
)

// pruneStep is how many entries are removed at a time, so that none of the
// statements runs into its limit.
const pruneStep = 5000

// Prune implements store.Store. Both histories are cut at one place, in one statement,
// for they are one order. The clocks of the processes that write differ, so
// the times in history need not grow with the revisions: what is kept begins at the
// first entry that is young enough.
func (s *Store) Prune(ctx context.Context, p store.Prune) (removed int64, err error) {
	var before *time.Time
	if !p.Before.IsZero() {
		before = &p.Before
	}
	for {
		var n int64
		err := s.with(ctx, "prune", s.limits.Write, func(ctx context.Context, c *pgxpool.Conn) error {
			return c.QueryRow(ctx, `
				WITH entries AS (
					SELECT revision, at FROM history UNION ALL SELECT revision, at FROM instance_labels_history
				), old AS (
					SELECT revision FROM entries
					WHERE revision <= (SELECT n FROM counter) - $2::bigint
					AND revision < COALESCE((SELECT min(revision) FROM entries
						WHERE at >= $1::timestamptz), 9223372036854775807)
					ORDER BY revision LIMIT $3::bigint
				), records AS (
					DELETE FROM history WHERE revision IN (SELECT revision FROM old) RETURNING 1
				), labels AS (
					DELETE FROM instance_labels_history WHERE revision IN (SELECT revision FROM old) RETURNING 1
				)
				SELECT (SELECT count(*) FROM records) + (SELECT count(*) FROM labels)`, before, p.Keep, pruneStep).Scan(&n)
		})
		removed += n
		if err != nil || n < pruneStep {
			return removed, err
		}
	}
}
