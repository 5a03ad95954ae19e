package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/internal/localpg"
	"github.com/pawlhq/pawl/schema"
)

// name is that of the database on the demo's own server, and that of the schema on
// any other. Both are dropped and made again at each start; the schema only where
// its comment says that a demo made it.
const name = "pawl_demo"

// mark is the comment on the schema. It says what will become of it.
const mark = "Made by the demo of Pawl, which drops it at its next start."

// stage is the place of the story: empty tables that are nobody else's.
type stage struct {
	url    string // of the database
	schema string
	local  *localpg.Server
	lock   *pgx.Conn     // holds the demo's lock, in a transaction: a second demo would drop the first one's tables
	pool   *pgxpool.Pool // for what no interface of Pawl can do
}

// openStage prepares the named database, or a database on a private server of the
// demo's own for "".
func openStage(ctx context.Context, url string, p *printer) (_ *stage, err error) {
	st := &stage{url: url, schema: name}
	defer func() {
		if err != nil {
			err = errors.Join(err, st.close())
		}
	}()
	if url == "" {
		dir, err := localpg.UserDir("demo") // not where other programs have theirs
		if err != nil {
			return nil, err
		}
		if st.local, err = localpg.Start(ctx, localpg.Options{Dir: dir, Log: p.aside}); err != nil {
			return nil, fmt.Errorf("start a private PostgreSQL: %w", err)
		}
		url = st.local.URL()
	}
	if st.lock, err = pgx.Connect(ctx, url); err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	if err := st.takeLock(ctx); err != nil {
		return nil, err
	}
	if err := st.clear(ctx, url, p); err != nil {
		return nil, err
	}
	if st.pool, err = pgxpool.New(ctx, st.url); err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	return st, nil
}

// takeLock takes the lock in a transaction that stays open: behind a pooler a
// session is not ours.
func (st *stage) takeLock(ctx context.Context) error {
	var free bool
	_, err := st.lock.Exec(ctx, "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0")
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

// clear drops what an earlier demo left.
func (st *stage) clear(ctx context.Context, url string, p *printer) (err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	var foreign bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1
		AND obj_description(oid, 'pg_namespace') IS DISTINCT FROM $2)`, pgx.QueryExecModeExec, name, mark).Scan(&foreign); err != nil {
		return fmt.Errorf("look for the schema %s: %w", name, err)
	}
	if foreign {
		return fmt.Errorf("the schema %s was not made by this demo, which would drop it: drop it yourself, or name another database", name)
	}
	statements := []string{"DROP SCHEMA IF EXISTS " + name + " CASCADE", "CREATE SCHEMA " + name, "COMMENT ON SCHEMA " + name + " IS '" + mark + "'"}
	what := "schema"
	if st.local != nil {
		st.schema, st.url = schema.Default, st.local.URLFor(name)
		statements = []string{"DROP DATABASE IF EXISTS " + name + " WITH (FORCE)", "CREATE DATABASE " + name}
		what = "database"
	}
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("make the %s %s anew: %w", what, name, err)
		}
	}
	p.aside("made the %s %s anew", what, name)
	return nil
}

// operators is how an operator's command finds what was shown, as flags. The address
// of a database that somebody named is not printed: it may have a password.
func (st *stage) operators() string {
	if st.local == nil {
		return "--schema " + st.schema + "  # on the same --database"
	}
	return "--database '" + st.url + "'"
}

func (st *stage) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var errs []error
	if st.pool != nil {
		st.pool.Close()
	}
	if st.lock != nil {
		errs = append(errs, st.lock.Close(ctx))
	}
	if st.local != nil {
		errs = append(errs, st.local.Stop())
	}
	return errors.Join(errs...)
}
