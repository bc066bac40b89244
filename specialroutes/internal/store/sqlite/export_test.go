package sqlite

import "context"

// LockAsMigration takes the lock of a file as a process that migrates does.
func LockAsMigration(ctx context.Context, path string) (release func() error, err error) {
	l, err := acquire(ctx, path, migrating, Options{}.withDefaults())
	if err != nil {
		return nil, err
	}
	return l.release, nil
}
