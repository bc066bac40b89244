package postgres

// MigrationLock is the number of the lock that those who migrate take.
const MigrationLock = int64(migrationLock)
