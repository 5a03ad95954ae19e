package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/schema"
)

// benchSchema holds everything that a run creates. It is dropped at the end,
// and at the beginning, should an earlier run have been killed.
const benchSchema = "pawl_bench"

// sequence numbers the floor's transitions.
const sequence = "pawl.floor_position"

func in(sql string) string { return schema.In(benchSchema, sql) }

// in puts the schema's name into a statement.
func (d *database) in(sql string) string { return schema.In(d.schema, sql) }

// database is the server as the bench sees it: one connection that prepares,
// cleans and counts, and is idle while something is measured.
type database struct {
	url        string
	schema     string
	admin      *pgx.Conn
	tables     string // all that hold data, for SQL
	statements string // the query that counts statements; "" where the server does not
	checkpoint bool   // whether we may
	about      about
}

// about is what of the server bears on the figures.
type about struct {
	version, fsync, synchronous, fullPages, buffers string
}

func openDatabase(ctx context.Context, url string) (*database, error) {
	d, err := connectDatabase(ctx, url, benchSchema)
	if err != nil {
		return nil, err
	}
	if err := d.create(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("bench: prepare the database: %w", err), d.admin.Close(ctx))
	}
	return d, nil
}

// connectDatabase connects to the server and sees to it that no other bench uses
// the schema.
func connectDatabase(ctx context.Context, url, schemaName string) (_ *database, err error) {
	d := &database{url: url, schema: schemaName, checkpoint: true}
	if d.admin, err = d.connectAs(ctx, adminName); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	err = d.occupy(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bench: prepare the database: %w", err), d.admin.Close(ctx))
	}
	return d, nil
}

// occupy keeps others out of the schema. The session of a bench that has just ended
// may hold it for a moment longer.
func (d *database) occupy(ctx context.Context) error {
	if _, err := d.admin.Exec(ctx, "SET lock_timeout = '5s'"); err != nil {
		return err
	}
	_, err := d.admin.Exec(ctx, "SELECT pg_advisory_lock(hashtextextended($1, 0))", d.schema)
	if failed, ok := errors.AsType[*pgconn.PgError](err); ok && failed.Code == "55P03" {
		return errors.New("another bench is running in it")
	}
	if err != nil {
		return err
	}
	_, err = d.admin.Exec(ctx, "RESET lock_timeout")
	return err
}

func (d *database) create(ctx context.Context) error {
	if err := d.drop(ctx); err != nil {
		return err
	}
	pool, err := d.pool(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := schema.Migrate(ctx, pool, d.schema); err != nil {
		return err
	}
	return d.ready(ctx)
}

// ready readies the tables, whoever made them, and finds out about the server.
func (d *database) ready(ctx context.Context) error {
	// What is written by hand claims a command within its transaction, and is in no
	// phase then; that should not cost the floor a write to more indexes.
	if _, err := d.admin.Exec(ctx, d.in("ALTER TABLE pawl.command DROP CONSTRAINT command_phase, DROP CONSTRAINT command_lease")); err != nil {
		return err
	}
	if _, err := d.admin.Exec(ctx, d.in("CREATE SEQUENCE "+sequence)); err != nil {
		return err
	}
	// Autovacuum would come at its own time, to some scenarios and not to others.
	if _, err := d.admin.Exec(ctx, withoutAutovacuum(d.schema)); err != nil {
		return err
	}
	const tables = `SELECT string_agg(oid::regclass::text, ', ') FROM pg_class
		WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = $1::regnamespace AND relname NOT IN ('migration', 'definition')`
	if err := d.admin.QueryRow(ctx, tables, d.schema).Scan(&d.tables); err != nil {
		return err
	}
	const settings = `SELECT current_setting('server_version'), current_setting('fsync'),
		current_setting('synchronous_commit'), current_setting('full_page_writes'), current_setting('shared_buffers')`
	if err := d.admin.QueryRow(ctx, settings).Scan(&d.about.version, &d.about.fsync, &d.about.synchronous, &d.about.fullPages, &d.about.buffers); err != nil {
		return err
	}
	d.statements = d.findStatements(ctx)
	return nil
}

// withoutAutovacuum is a statement that keeps autovacuum away from the tables of a
// schema.
func withoutAutovacuum(schemaName string) string {
	return `DO $$ DECLARE t regclass; BEGIN
		FOR t IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = '` + schemaName + `'::regnamespace LOOP
			EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = off)', t);
		END LOOP; END $$`
}

func (d *database) drop(ctx context.Context) error {
	_, err := d.admin.Exec(ctx, "DROP SCHEMA IF EXISTS "+d.schema+" CASCADE")
	return err
}

// close drops what the run created, also when ctx has ended.
func (d *database) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if d.admin.IsClosed() { // as pgx leaves it when a context ends during a statement
		admin, err := d.connectAs(ctx, adminName)
		if err != nil {
			return err
		}
		d.admin = admin
	}
	return errors.Join(d.drop(ctx), d.admin.Close(ctx))
}

// pool makes a pool as a program that uses the engine would have it.
func (d *database) pool(ctx context.Context) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(d.url)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.RuntimeParams["application_name"] = poolName
	return pgxpool.NewWithConfig(ctx, config)
}

// connectAs opens a connection that the server knows by that name.
func (d *database) connectAs(ctx context.Context, name string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(d.url)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["application_name"] = name
	return pgx.ConnectConfig(ctx, config)
}

// check makes a checkpoint. It stands before everything else, so that a scenario
// neither writes the pages of the one before nor, of the rows that are prepared
// then, full pages into the log.
func (d *database) check(ctx context.Context) error {
	if !d.checkpoint {
		return nil
	}
	_, err := d.admin.Exec(ctx, "CHECKPOINT")
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "42501" {
		d.checkpoint, err = false, nil // it takes a superuser
	}
	return err
}

// prewarm reads what a replay reads into PostgreSQL's memory.
func (d *database) prewarm(ctx context.Context) error {
	if _, err := d.admin.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_prewarm"); err != nil {
		return err
	}
	_, err := d.admin.Exec(ctx, "SELECT pg_prewarm(oid::regclass) FROM pg_class WHERE relnamespace = $1::regnamespace AND relname = ANY ($2)",
		d.schema, []string{"command", "command_pkey", "audit_pkey"})
	return err
}

func (d *database) empty(ctx context.Context) error {
	_, err := d.admin.Exec(ctx, "TRUNCATE "+d.tables)
	return err
}

// settle makes the tables what they are after a while: visible to all, with
// statistics.
func (d *database) settle(ctx context.Context, head int64) error {
	if _, err := d.admin.Exec(ctx, "VACUUM (ANALYZE) "+d.tables); err != nil {
		return err
	}
	_, err := d.admin.Exec(ctx, d.in("SELECT setval('"+sequence+"', $1)"), max(head, 1))
	return err
}
