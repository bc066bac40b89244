// Package migrations holds the steps that bring a database to the schema which
// this version of specialroutes expects: numbered pairs of SQL files for each kind
// of database, and nothing else. A step is never changed once it was released, and
// steps only add, so that two versions of specialroutes can work on one database
// during an upgrade.
//
// Each step runs in one transaction together with the row that records it:
// CREATE INDEX CONCURRENTLY and other statements that refuse a transaction can not
// be used.
package migrations

import (
	"embed"
	"io/fs"
)

//go:embed postgres/*.sql
var postgres embed.FS

//go:embed sqlite/*.sql
var sqlite embed.FS

// Postgres returns the steps for PostgreSQL: NNNNNN_verb_noun.up.sql and
// .down.sql, at the root.
func Postgres() fs.FS { return sub(postgres, "postgres") }

// SQLite returns the steps for SQLite, named as those of Postgres.
func SQLite() fs.FS { return sub(sqlite, "sqlite") }

func sub(files embed.FS, dir string) fs.FS {
	s, err := fs.Sub(files, dir)
	if err != nil {
		panic(err) // only for a name that is not a path
	}
	return s
}
