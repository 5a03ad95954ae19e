package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/auth/apikey"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/localpg"
	"github.com/pawlhq/pawl/schema"
)

// StopTimeout bounds how long what is under way may take to end.
const StopTimeout = 20 * time.Second

// Migrate brings the tables up to date, and returns how many steps it took. It
// needs only the database and the schema of c.
//
// Errors: a *usage.Error for a schema name that cannot be; those of package schema.
func Migrate(ctx context.Context, c Config) (applied int, err error) {
	if err := schema.CheckName(c.Schema); err != nil {
		return 0, &usage.Error{Err: err}
	}
	d, err := openDatabase(ctx, c.Database, c.Log)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	return schema.Migrate(ctx, d.pool, c.Schema)
}

// SchemaStatus reads how far the tables are, and changes nothing. It needs only the
// database and the schema of c.
//
// Errors: a *usage.Error for a schema name that cannot be; those of package schema.
func SchemaStatus(ctx context.Context, c Config) (s schema.Status, err error) {
	if err := schema.CheckName(c.Schema); err != nil {
		return s, &usage.Error{Err: err}
	}
	if err := c.hasDatabase(); err != nil {
		return s, err
	}
	d, err := openDatabase(ctx, c.Database, c.Log)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	return schema.StatusOf(ctx, d.pool, c.Schema)
}

// Grant gives a role the rights of a node on the tables, and returns the statements. A dry run only returns them. It needs
// only the database and the schema of c.
//
// Errors: a *usage.Error for a schema name that cannot be; those of package schema.
func Grant(ctx context.Context, c Config, role string, dryRun bool) (list []string, err error) {
	if err := schema.CheckName(c.Schema); err != nil {
		return nil, &usage.Error{Err: err}
	}
	grant := schema.Grant
	if dryRun {
		grant = schema.PlanGrants
	}
	err = withDatabase(ctx, c, func(d *database) error {
		list, err = grant(ctx, d.pool, c.Schema, role)
		return err
	})
	return list, err
}

// WithDatabase calls do with the connection string of the database of c, or of a private server that runs meanwhile if c names none. It
// does not connect.
//
// Errors: a *usage.Error for an invalid schema name; those of do.
func WithDatabase(ctx context.Context, c Config, do func(url string) error) (err error) {
	if err := schema.CheckName(c.Schema); err != nil {
		return &usage.Error{Err: err}
	}
	if c.Database != "" {
		return do(c.Database)
	}
	if err := c.hasDatabase(); err != nil {
		return err
	}
	d, err := openDatabase(ctx, "", c.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	return do(d.local.URL())
}

// WithKeys does something with the table of API keys. It needs only the database and the schema of c.
//
// Errors: a *usage.Error for a schema name that cannot be; those of package schema and of do.
func WithKeys(ctx context.Context, c Config, do func(context.Context, *apikey.Table) error) error {
	if err := schema.CheckName(c.Schema); err != nil {
		return &usage.Error{Err: err}
	}
	return withDatabase(ctx, c, func(d *database) error { return do(ctx, keysOf(d, c.Schema)) })
}

// withDatabase does something with a database that has the tables.
func withDatabase(ctx context.Context, c Config, do func(*database) error) (err error) {
	if err := c.hasDatabase(); err != nil {
		return err
	}
	d, err := openDatabase(ctx, c.Database, c.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if err := schema.Check(ctx, d.pool, c.Schema); err != nil {
		if d.local != nil {
			err = ofPrivate(err)
		}
		return err
	}
	return do(d)
}

// hasDatabase refuses a configuration without a database if there is no private one either: a command that reads existing data does not
// create one. Error: a *usage.Error.
func (c *Config) hasDatabase() error {
	if c.Database != "" {
		return nil
	}
	there, err := localpg.Exists()
	if err == nil && !there {
		return usage.Errorf("no database is named, and there is no private one: set DATABASE_URL or --database")
	}
	return err
}

// WithEngine does something with an engine that is not started. Should it be, it
// works on nothing that waits.
func WithEngine(ctx context.Context, c Config, do func(context.Context, *engine.Engine) error, change ...func(*engine.Config)) (err error) {
	if c, err = c.withDefaults(); err != nil {
		return err
	}
	return withDatabase(ctx, c, func(d *database) error { return withEngine(ctx, c, d, do, change) })
}

func withEngine(
	ctx context.Context, c Config, d *database, do func(context.Context, *engine.Engine) error, change []func(*engine.Config),
) error {
	config := engine.Config{Pool: d.pool, Workflows: c.Workflows, Schema: c.Schema, Log: c.Log, Transient: true,
		InFlight: engine.InFlightConfig{Workers: -1}, Retention: engine.RetentionConfig{Off: true}}
	for _, f := range change {
		f(&config)
	}
	e, err := engine.New(config)
	if err != nil {
		return err
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), StopTimeout)
		defer cancel()
		e.Stop(stopping)
	}()
	return do(ctx, e)
}

// ofPrivate adds the location of the private database to an error about it.
func ofPrivate(err error) error {
	dir, notFound := localpg.UserDir("postgres")
	if notFound != nil {
		return err
	}
	return fmt.Errorf("%w; no database was named, so it is the private one in %s: %s names another folder", err, dir, localpg.EnvHome)
}
