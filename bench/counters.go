package bench

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/pause"
)

// poolName is the application name of the connections that do the work. The
// engine names its own after what they are for, all beginning with "pawl"; the
// admin's does not.
const (
	poolName  = "pawl bench"
	adminName = "bench"
)

// counters are the server's, since some beginning.
type counters struct {
	statements   int64 // -1: not counted
	transactions int64
	wal          int64 // bytes
}

// cost is what something took from the server.
type cost counters

func (c counters) since(before counters) cost {
	d := cost{statements: c.statements - before.statements, transactions: c.transactions - before.transactions, wal: c.wal - before.wal}
	if c.statements < 0 || before.statements < 0 {
		d.statements = -1
	}
	return d
}

// findStatements returns the query that counts the statements of this database,
// "" where the extension is missing, is not loaded, or is not for our eyes.
func (d *database) findStatements(ctx context.Context) string {
	// In a transaction, because an attempt may fail. Where it is not installed yet
	// it goes into our schema, and away with it.
	var query string
	err := pgx.BeginFunc(ctx, d.admin, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements WITH SCHEMA "+benchSchema); err != nil {
			return err
		}
		const where = `SELECT format('SELECT coalesce(sum(calls), 0)::bigint FROM %I.pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())', nspname)
			FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE extname = 'pg_stat_statements'`
		if err := tx.QueryRow(ctx, where).Scan(&query); err != nil {
			return err
		}
		var n int64
		return tx.QueryRow(ctx, query).Scan(&n)
	})
	if err != nil {
		return ""
	}
	return query
}

// How long the server may take to end the connections that were closed, and to
// make their figures visible.
const quietLimit = 30 * time.Second

// count reads the counters. A backend reports its figures at its own pace, but
// at the latest when it ends: so no connection but the admin's may be open.
func (d *database) count(ctx context.Context) (counters, error) {
	if err := d.quiet(ctx); err != nil {
		return counters{}, err
	}
	last, err := d.read(ctx)
	// Up to PostgreSQL 14 a collector process gathers them, which takes a moment.
	for begun := time.Now(); err == nil && d.collects(); {
		if !pause.For(ctx, 600*time.Millisecond) {
			err = ctx.Err()
			break
		}
		var next counters
		if next, err = d.read(ctx); err == nil && next.transactions-last.transactions <= 2 {
			return next, nil
		}
		if last = next; time.Since(begun) > quietLimit {
			return counters{}, errors.New("the server's counters do not come to rest")
		}
	}
	return last, err
}

// collects reports whether the server is older than 15.
func (d *database) collects() bool { return len(d.about.version) > 1 && d.about.version[:2] < "15" }

func (d *database) quiet(ctx context.Context) error {
	for begun := time.Now(); ; {
		var open int
		err := d.admin.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name LIKE 'pawl%'`).Scan(&open)
		if err != nil || open == 0 {
			return err
		}
		if time.Since(begun) > quietLimit {
			return errors.New("a Pawl engine is using this database; the counters would count its work too")
		}
		if !pause.For(ctx, 10*time.Millisecond) {
			return ctx.Err()
		}
	}
}

func (d *database) read(ctx context.Context) (counters, error) {
	c := counters{statements: -1}
	err := d.admin.QueryRow(ctx, `SELECT xact_commit + xact_rollback, (pg_current_wal_lsn() - '0/0')::bigint
		FROM pg_stat_database WHERE datname = current_database()`).Scan(&c.transactions, &c.wal)
	if err == nil && d.statements != "" {
		err = d.admin.QueryRow(ctx, d.statements).Scan(&c.statements)
	}
	return c, err
}
