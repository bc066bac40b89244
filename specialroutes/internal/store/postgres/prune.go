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

// Prune implements store.Store. The clocks of the processes that write differ, so
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
			tag, err := c.Exec(ctx, `
				DELETE FROM history WHERE revision IN (
					SELECT revision FROM history
					WHERE revision <= (SELECT n FROM counter) - $2::bigint
					AND revision < COALESCE((SELECT min(revision) FROM history
						WHERE at >= $1::timestamptz), 9223372036854775807)
					ORDER BY revision LIMIT $3::bigint)`, before, p.Keep, pruneStep)
			n = tag.RowsAffected()
			return err
		})
		removed += n
		if err != nil || n < pruneStep {
			return removed, err
		}
	}
}
