package sqlite

import (
	"context"
	"database/sql"

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

// pruneStep removes the oldest of what may go, from both histories, for they are one
// order.
func (s *Store) pruneStep(ctx context.Context, before any, keep int64) (removed int64, err error) {
	err = s.inTx(ctx, "prune", func(ctx context.Context, tx *sql.Tx) error {
		var last sql.NullInt64
		err := tx.QueryRowContext(ctx, `
			WITH entries AS (
				SELECT revision, at FROM history UNION ALL SELECT revision, at FROM instance_labels_history
			)
			SELECT max(revision) FROM (
				SELECT revision FROM entries
				WHERE revision <= (SELECT n FROM counter) - ?2
				AND revision < COALESCE((SELECT min(revision) FROM entries WHERE at >= ?1), 9223372036854775807)
				ORDER BY revision LIMIT ?3)`, before, keep, pruneStep).Scan(&last)
		if err != nil || !last.Valid {
			return err
		}
		for _, statement := range []string{
			`DELETE FROM history WHERE revision <= ?`,
			`DELETE FROM instance_labels_history WHERE revision <= ?`,
		} {
			result, err := tx.ExecContext(ctx, statement, last.Int64)
			if err != nil {
				return err
			}
			n, err := result.RowsAffected()
			if err != nil {
				return err
			}
			removed += n
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}
