package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/app/dialerror"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/internal/localpg"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/schema/pooler"
)

// database is a pool of connections, with its private server if no other was named.
type database struct {
	pool  *pgxpool.Pool
	local *localpg.Server
}

// openDatabase connects to the named database, or to a private server that it starts for "".
func openDatabase(ctx context.Context, url string, log *slog.Logger) (_ *database, err error) {
	d := &database{}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	if url == "" {
		step := func(format string, args ...any) { log.Info(fmt.Sprintf(format, args...)) }
		if d.local, err = localpg.Start(ctx, localpg.Options{Log: step}); err != nil {
			return nil, fmt.Errorf("start a private PostgreSQL: %w", err)
		}
		url = d.local.URL()
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, usage.Errorf("the connection string of the database: %w", err)
	}
	if params := config.ConnConfig.RuntimeParams; params["application_name"] == "" {
		params["application_name"] = "pawl"
	}
	pooler.Configure(config.ConnConfig)
	if d.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	if err := d.pool.Ping(ctx); err != nil {
		return nil, fmt.Errorf("connect to the database: %w", dialerror.OneLine(err))
	}
	return d, nil
}

func (d *database) close() error {
	if d.pool != nil {
		d.pool.Close()
	}
	if d.local != nil {
		return d.local.Stop()
	}
	return nil
}

// migrate brings the schema up to date, logs what it did, and checks the rights of the role.
func (d *database) migrate(ctx context.Context, name string, log *slog.Logger) error {
	applied, err := schema.Migrate(ctx, d.pool, name)
	if err == nil && applied > 0 {
		log.Info("migrated the database", "schema", name, "applied", applied, "version", len(schema.Migrations))
	}
	if err != nil {
		return err
	}
	return schema.CheckRights(ctx, d.pool, name)
}
