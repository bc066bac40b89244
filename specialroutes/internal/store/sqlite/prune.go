package sqlite

import (
	"context"

	"specialroutes.example/specialroutes/internal/store"
)

// pruneStep is how many entries are removed at a time, so that none of the
// statements runs into its limit and writers need not wait for all of them.
const pruneStep = 5000

// Prune implements store.Store. The clock may have been set back, so the times in
// history need not grow with the revisions: what is kept begins at the first entry
// that is young enough.
func (s *Store) Prune(ctx context.Context, p store.Prune) (removed int64, err error) {
	var before any
	if !p.Before.IsZero() {
		before = p.Before.UTC().Format(timeLayout)
	}
	for {
		n, err := s.pruneStep(ctx, before, p.Keep)
		removed += n
		if err != nil || n < pruneStep {
			return removed, err
		}
	}
}

func (s *Store) pruneStep(ctx context.Context, before any, keep int64) (int64, error) {
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	result, err := s.writer.ExecContext(limited, `
		DELETE FROM history WHERE revision IN (
			SELECT revision FROM history
			WHERE revision <= (SELECT n FROM counter) - ?2
			AND revision < COALESCE((SELECT min(revision) FROM history WHERE at >= ?1), 9223372036854775807)
			ORDER BY revision LIMIT ?3)`,
		before, keep, pruneStep)
	if err != nil {
		return 0, meaning(ctx, "prune", err)
	}
	n, err := result.RowsAffected()
	return n, meaning(ctx, "prune", err)
}
