package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/schema"
)

// Schemas that hold everything that a run creates. They are dropped at the end,
// and at the beginning, should an earlier run have been killed.
const (
	benchSchema = "pawl_bench"
	fullSchema  = benchSchema + "_full"
)

// sequence numbers the floor's transitions.
const sequence = "{pawl}.floor_position"

// Application names. The engine names its connections after what they are for, all
// beginning with "pawl"; the admin's does not.
const (
	poolName  = "pawl bench"
	adminName = "bench"
)

// database is the server as the bench sees it: one connection that prepares,
// cleans and counts, and is idle while something is measured.
type database struct {
	url        string
	schema     string
	admin      *pgx.Conn
	tables     string // all that hold data, for SQL
	statements string // the query that counts statements; "" where the server does not
	about      about
}

// about is what of the server bears on the figures.
type about struct {
	version, fsync, synchronous, fullPages, buffers string
}

// in puts the schema's name into a statement.
func (d *database) in(sql string) string { return schema.In(d.schema, sql) }

func (d *database) exec(ctx context.Context, sql string, args ...any) error {
	_, err := d.admin.Exec(ctx, d.in(sql), args...)
	return err
}

// openDatabase makes the schema anew.
func openDatabase(ctx context.Context, url, schemaName string) (_ *database, err error) {
	d := &database{url: url, schema: schemaName}
	if d.admin, err = d.connectAs(ctx, adminName); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	for _, step := range []func(context.Context) error{d.create, d.ready} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("bench: prepare the database: %w", err), d.admin.Close(ctx))
		}
	}
	d.countStatements(ctx)
	return d, nil
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
	_, err = schema.Migrate(ctx, pool, d.schema)
	return err
}

// ready readies the tables and finds out about the server. What is written by hand
// claims a command within its transaction, and is in no phase then; that should
// not cost the floor a write to more indexes.
func (d *database) ready(ctx context.Context) error {
	const tables = `SELECT string_agg(oid::regclass::text, ', ') FROM pg_class
		WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = $1::regnamespace AND relname NOT IN ('migration', 'definition')`
	const settings = `SELECT current_setting('server_version'), current_setting('fsync'),
		current_setting('synchronous_commit'), current_setting('full_page_writes'), current_setting('shared_buffers')`
	a := &d.about
	return errors.Join(
		d.exec(ctx, "ALTER TABLE {pawl}.command DROP CONSTRAINT command_phase, DROP CONSTRAINT command_lease"),
		d.exec(ctx, "CREATE SEQUENCE "+sequence),
		d.exec(ctx, leanTables),
		d.exec(ctx, withoutAutovacuum(d.schema)), // it would come to some scenarios and not to others
		d.admin.QueryRow(ctx, tables, d.schema).Scan(&d.tables),
		d.admin.QueryRow(ctx, settings).Scan(&a.version, &a.fsync, &a.synchronous, &a.fullPages, &a.buffers))
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
	return d.exec(ctx, "DROP SCHEMA IF EXISTS "+d.schema+" CASCADE")
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

// prewarm reads what a replay reads into PostgreSQL's memory.
func (d *database) prewarm(ctx context.Context) error {
	if err := d.exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_prewarm"); err != nil {
		return err
	}
	return d.exec(ctx, "SELECT pg_prewarm(oid::regclass) FROM pg_class WHERE relnamespace = $1::regnamespace AND relname = ANY ($2)",
		d.schema, []string{"command", "command_pkey", "audit_pkey"})
}

func (d *database) empty(ctx context.Context) error { return d.exec(ctx, "TRUNCATE "+d.tables) }

// settle makes the tables what they are after a while: visible to all, with
// statistics.
func (d *database) settle(ctx context.Context, head int64) error {
	return errors.Join(d.exec(ctx, "VACUUM (ANALYZE) "+d.tables), d.exec(ctx, "SELECT setval('"+sequence+"', $1)", max(head, 1)))
}

// head is how far the log of the tenant is that all scenarios write to.
func (d *database) head(ctx context.Context) (n int64, err error) {
	err = d.admin.QueryRow(ctx, d.in("SELECT coalesce((SELECT head FROM {pawl}.log WHERE tenant = $1), 0)"), tenant).Scan(&n)
	return n, err
}

// Every position after a base, with what belongs to it, and how far the logs go in all.
const storedSQL = `WITH stored AS (SELECT o.tenant, o.position, a.hash, c.key
FROM {pawl}.outbox AS o
LEFT JOIN LATERAL (SELECT a.*, {pawl}.scope_of(a) AS of FROM {pawl}.audit AS a WHERE a.tenant = o.tenant AND a.instance = o.instance
	AND a.version = o.version AND a.position = o.position LIMIT 1) AS a ON true
LEFT JOIN LATERAL (SELECT * FROM {pawl}.command AS c WHERE c.tenant = a.tenant AND c.scope = a.of AND c.key = a.key
	AND c.status = 'succeeded' LIMIT 1) AS c ON true
WHERE o.tenant = ANY ($1) AND o.position > $2)
SELECT count(*), count(DISTINCT (tenant, position)), count(hash), count(key),
	coalesce((SELECT sum(last) FROM (SELECT max(position) AS last FROM stored GROUP BY tenant) AS l), $2)::bigint,
	(SELECT coalesce(sum(head), 0) FROM {pawl}.log WHERE tenant = ANY ($1))::bigint FROM stored`

// verify checks that n transitions of the tenants have been committed since the log was at
// base, which is 0 for several, each with its event, its audit row, its command and a position
// of its own; and that the heads of the logs say so too, where they are moved.
func (d *database) verify(ctx context.Context, tenants []string, base, n int64, headed bool) error {
	type stored struct{ events, positions, entries, commands, last, head int64 }
	var s stored
	if err := d.admin.QueryRow(ctx, d.in(storedSQL), tenants, base).Scan(&s.events, &s.positions, &s.entries, &s.commands,
		&s.last, &s.head); err != nil {
		return fmt.Errorf("count the rows: %w", err)
	}
	want := stored{n, n, n, n, base + n, base + n}
	if !headed {
		want.head = s.head
	}
	if s != want {
		return fmt.Errorf("the tables do not hold what was claimed to be committed: %d transitions since %d, but found %+v", n, base, s)
	}
	return nil
}

// counters are the server's since some beginning, or what something took from it.
type counters struct {
	statements   int64 // -1: not counted
	transactions int64
	wal          int64 // bytes
	processor    int64 // microseconds, of this program and the server; -1: not counted
}

func (c counters) since(before counters) counters {
	d := counters{c.statements - before.statements, c.transactions - before.transactions, c.wal - before.wal, c.processor - before.processor}
	if c.statements < 0 || before.statements < 0 {
		d.statements = -1
	}
	if c.processor < 0 || before.processor < 0 {
		d.processor = -1
	}
	return d
}

// countStatements sees to it that statements are counted, where the server can. The
// extension goes into our schema if it is not installed yet, and away with it.
func (d *database) countStatements(ctx context.Context) {
	if d.exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements WITH SCHEMA "+d.schema) != nil {
		return
	}
	const query = `SELECT format('SELECT coalesce(sum(calls), 0)::bigint FROM %I.pg_stat_statements
			WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())', nspname)
		FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE extname = 'pg_stat_statements'`
	if d.admin.QueryRow(ctx, query).Scan(&d.statements) != nil || d.exec(ctx, d.statements) != nil {
		d.statements = "" // it is not loaded
	}
}

// How long the server may take to end the connections that were closed.
const quietLimit = 30 * time.Second

// count reads the counters. A backend reports its figures at its own pace, but
// at the latest when it ends: so no connection but the admin's may be open. (Up to
// PostgreSQL 14 another process gathers them, and transactions may be missing.)
func (d *database) count(ctx context.Context) (counters, error) {
	c := counters{statements: -1}
	err := poll(ctx, 10*time.Millisecond, quietLimit, "a Pawl engine is using this database; the counters would count its work too",
		func() (bool, error) {
			var open int
			err := d.admin.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity
				WHERE datname = current_database() AND application_name LIKE 'pawl%'`).Scan(&open)
			return open == 0, err
		})
	if err != nil {
		return c, err
	}
	err = d.admin.QueryRow(ctx, `SELECT xact_commit + xact_rollback, (pg_current_wal_lsn() - '0/0')::bigint
		FROM pg_stat_database WHERE datname = current_database()`).Scan(&c.transactions, &c.wal)
	if err == nil && d.statements != "" {
		err = d.admin.QueryRow(ctx, d.statements).Scan(&c.statements)
	}
	if err == nil {
		c.processor, err = d.processorTime(ctx)
	}
	return c, err
}

// poll asks until something is so, or for so long.
func poll(ctx context.Context, every, limit time.Duration, what string, met func() (bool, error)) error {
	for begun := time.Now(); ; {
		if ok, err := met(); ok || err != nil {
			return err
		}
		if time.Since(begun) > limit {
			return fmt.Errorf("%s (for %v)", what, limit)
		}
		if !backoff.Sleep(ctx, every) {
			return ctx.Err()
		}
	}
}
