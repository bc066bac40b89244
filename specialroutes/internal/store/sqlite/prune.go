package sqlite

import (
	"context"

	"specialroutes.example/specialroutes/internal/store"
)

// Prune implements store.Store. The clock may have been set back, so the times in
// history need not grow with the revisions: what is kept begins at the first entry
// that is young enough.
func (s *Store) Prune(ctx context.Context, p store.Prune) (int64, error) {
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	var before any
	if !p.Before.IsZero() {
		before = p.Before.UTC().Format(timeLayout)
	}
	result, err := s.writer.ExecContext(limited, `
		DELETE FROM history
		WHERE revision <= (SELECT n FROM counter) - ?2
		AND revision < COALESCE((SELECT min(revision) FROM history WHERE at >= ?1), 9223372036854775807)`,
		before, p.Keep)
	if err != nil {
		return 0, meaning(ctx, "prune", err)
	}
	n, err := result.RowsAffected()
	return n, meaning(ctx, "prune", err)
}
