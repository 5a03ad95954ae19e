package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/internal/localpg"
)

// name is that of the schema, which is dropped and made again at each start; only where its comment says that a demo made it.
const name = "pawl_demo"

// mark is the comment on the schema.
const mark = "Made by the demo of Pawl, which drops it at its next start."

// stage is the database of the story: empty tables for the demo alone.
type stage struct {
	url   string // of the database
	local *localpg.Server
	pool  *pgxpool.Pool // for what no interface of Pawl can do
	lock  pgx.Tx        // holds the demo's lock: a second demo would drop the first one's tables
}

// openStage prepares the named database, or for "" a private server of the demo's own, which ends with it.
func openStage(ctx context.Context, url string, p *printer) (_ *stage, err error) {
	st := &stage{url: url}
	defer func() {
		if err != nil {
			err = errors.Join(err, st.close())
		}
	}()
	if url == "" {
		if st.local, err = localpg.Start(ctx, localpg.Options{Ephemeral: true, Log: p.aside}); err != nil {
			return nil, fmt.Errorf("start a private PostgreSQL: %w", err)
		}
		st.url = st.local.URL()
	}
	if st.pool, err = pgxpool.New(ctx, st.url); err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	if err := st.takeLock(ctx); err != nil {
		return nil, err
	}
	return st, st.clear(ctx)
}

// takeLock takes the lock in a transaction that stays open: behind a pooler a session is not ours.
func (st *stage) takeLock(ctx context.Context) (err error) {
	if st.lock, err = st.pool.Begin(ctx); err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	var free bool
	_, err = st.lock.Exec(ctx, "SET LOCAL idle_in_transaction_session_timeout = 0")
	if err == nil {
		err = st.lock.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))", name).Scan(&free)
	}
	if err != nil {
		return fmt.Errorf("take the demo's lock: %w", err)
	}
	if !free {
		return errors.New("another demo is running on this database: stop it first, it would lose its tables")
	}
	return nil
}

// clear drops the schema of an earlier demo.
func (st *stage) clear(ctx context.Context) (err error) {
	var foreign bool
	if err := st.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1
		AND obj_description(oid, 'pg_namespace') IS DISTINCT FROM $2)`, pgx.QueryExecModeExec, name, mark).Scan(&foreign); err != nil {
		return fmt.Errorf("look for the schema %s: %w", name, err)
	}
	if foreign {
		return fmt.Errorf("the schema %s was not made by this demo, which would drop it: drop it yourself, or name another database", name)
	}
	for _, sql := range []string{"DROP SCHEMA IF EXISTS " + name + " CASCADE", "CREATE SCHEMA " + name,
		"COMMENT ON SCHEMA " + name + " IS '" + mark + "'"} {
		if _, err := st.pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("make the schema %s anew: %w", name, err)
		}
	}
	return nil
}

// operators are the flags of an operator's command.
func (st *stage) operators() string {
	if st.local == nil {
		return "--schema " + name + "  # on the same --database"
	}
	return "--schema " + name + " --database '" + st.url + "'"
}

func (st *stage) close() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if st.lock != nil {
		err = st.lock.Rollback(ctx)
	}
	if st.pool != nil {
		st.pool.Close()
	}
	if st.local != nil {
		err = errors.Join(err, st.local.Stop())
	}
	return err
}
