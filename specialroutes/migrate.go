package main

import (
	"context"

	"specialroutes.example/services/service"
	"specialroutes.example/specialroutes/internal/config"
)

// migrate brings the schema up to date. It does not wait for a database that is
// away: whoever runs it decides whether to run it again.
func (p *program) migrate(ctx context.Context, c config.Config) error {
	log := service.NewLogger(p.stderr, c.LogLevel, "specialroutes")
	db, err := databaseOf(ctx, c, log)
	if err != nil {
		return err
	}
	if err := db.migrate(ctx); err != nil {
		return err
	}
	log.Info("the database's schema is up to date")
	return nil
}
