package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/app/dialerror"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/schema/pooler"
	"github.com/pawlhq/pawl/workflow"
)

// DefaultTimeout bounds an examination by default.
const DefaultTimeout = 30 * time.Second

const (
	connectTimeout = 10 * time.Second
	lockTimeout    = time.Second
)

// Config configures an examination.
type Config struct {
	URL       string // the connection string of the nodes
	Schema    string // of the tables
	Workflows []workflow.Source
	Timeout   time.Duration // of the examination; zero means DefaultTimeout

	now    func() time.Time // nil: the system's clock
	limits *limits          // nil: the defaults
}

// Examine runs all checks. An unreachable database is a finding, not an error. It returns errors for an invalid connection string, invalid
// workflows, and ctx.
func Examine(ctx context.Context, c Config) (*Report, error) {
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.limits == nil {
		c.limits = &defaults
	}
	bounded, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	began := time.Now()
	x, err := newExam(bounded, c)
	if err != nil {
		return nil, err
	}
	defer x.close()
	r := &Report{At: c.now().UTC(), Schema: c.Schema}
	for _, check := range Checks {
		if !x.run(bounded, check, r) {
			break
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r.Server, r.Database, r.Role, r.Took = x.facts.version, x.facts.database, x.facts.role, time.Since(began)
	return r, nil
}

// exam is a running examination.
type exam struct {
	config Config
	limits *limits
	asked  *pgx.ConnConfig // how the nodes connect
	conns  int             // how many connections their pools have at most
	pool   *pgxpool.Pool
	engine *engine.Engine
	facts  facts
	bare   bool                          // the tables cannot be checked
	keys   func() (*inspect.Keys, error) // nil before the first use
	said   []setting                     // nil before the first use
}

func newExam(ctx context.Context, c Config) (*exam, error) {
	config, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, fmt.Errorf("the connection string of the database: %w", err)
	}
	x := &exam{config: c, limits: c.limits, asked: config.ConnConfig.Copy(), conns: int(config.MaxConns)}
	// Without prepared statements it works with and without a pooler.
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.ConnConfig.ConnectTimeout = connectTimeout
	if params := config.ConnConfig.RuntimeParams; params["application_name"] == "" {
		params["application_name"] = "pawl doctor"
	}
	pooler.Configure(config.ConnConfig)
	config.MaxConns, config.MinConns, config.MinIdleConns = 2, 0, 0
	if x.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("the connection string of the database: %w", err)
	}
	x.engine, err = engine.New(engine.Config{
		Pool: x.pool, Workflows: c.Workflows, Schema: c.Schema, Transient: true, PollOnly: true, Log: slog.New(slog.DiscardHandler),
		InFlight: engine.InFlightConfig{Workers: -1}, Retention: engine.RetentionConfig{Off: true},
	})
	if err != nil {
		x.pool.Close()
		return nil, err
	}
	return x, nil
}

func (x *exam) close() {
	ctx, cancel := context.WithTimeout(context.Background(), x.limits.check)
	defer cancel()
	x.engine.Stop(ctx)
	x.pool.Close()
}

// run runs a check, and reports whether to continue.
func (x *exam) run(ctx context.Context, c Check, r *Report) bool {
	if c.tables && x.bare {
		return true
	}
	each := x.limits.check
	if c.Name == connection {
		each = connectTimeout
	}
	bounded, cancel := context.WithTimeout(ctx, each)
	defer cancel()
	fine, found, err := c.look(bounded, x)
	switch {
	case err != nil && c.Name == connection:
		do := todo("check that the server runs, and the host and port of the connection string")
		if e, ok := errors.AsType[*pgconn.PgError](err); ok && advice[e.Code] != "" {
			do = advice[e.Code]
		}
		found = []Finding{problem("", do, "the database does not answer: %s", dialerror.OneLine(err))}
	case err != nil:
		found = append(found, x.notSeen(ctx, err))
	case len(found) == 0:
		found = []Finding{{Severity: OK, Found: fine}}
	}
	r.add(c.Name, found...)
	return err == nil || c.Name != connection
}

// read queries the database in a read-only transaction with a short lock timeout.
func read[T any](ctx context.Context, x *exam, scan pgx.RowToFunc[T], sql string, args ...any) (list []T, err error) {
	err = pgx.BeginTxFunc(ctx, x.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		bounds := fmt.Sprintf("SET LOCAL statement_timeout = %d; SET LOCAL lock_timeout = %d",
			x.limits.check.Milliseconds(), lockTimeout.Milliseconds())
		if _, err := tx.Exec(ctx, bounds); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, scan)
		return err
	})
	return list, err
}

// one reads a single row.
func one[T any](ctx context.Context, x *exam, sql string, args ...any) (value T, err error) {
	list, err := read(ctx, x, pgx.RowToStructByPos[T], sql, args...)
	if err == nil && len(list) != 1 {
		err = fmt.Errorf("%d rows instead of one", len(list))
	}
	if err == nil {
		value = list[0]
	}
	return value, err
}

// SQLSTATEs of checks that failed.
const (
	mayNot      = "42501"
	lockTaken   = "55P03"
	tookTooLong = "57014"
)

// notSeen returns the finding of a failed check.
func (x *exam) notSeen(ctx context.Context, err error) Finding {
	refused, _ := errors.AsType[*pgconn.PgError](err)
	switch {
	case ctx.Err() != nil:
		return unknown(`run it again, with a longer "--timeout"`, "the time limit ended before this check")
	case refused != nil && refused.Code == mayNot:
		return unknown(rights(x.facts.role), "the role %s lacks a right: %s", x.facts.role, refused.Message)
	case refused != nil && refused.Code == lockTaken:
		return x.locked(ctx, unknown("find its holder in pg_locks, and run it again",
			"a lock was held for longer than %s", span(lockTimeout)))
	case errors.Is(err, context.DeadlineExceeded), refused != nil && refused.Code == tookTooLong:
		return x.locked(ctx, unknown("run it again when the database is less busy", "the database did not answer within %s",
			span(x.limits.check)))
	}
	return unknown("run it again", "the check failed: %s", dialerror.OneLine(err))
}

// rights returns the remedy for missing rights.
func rights(role string) todo {
	return dof(`as the owner of the tables, run "migrate grants %s"; for a monitoring role see docs/doctor.md`, role)
}

// blind returns the finding of a check that needs to see other roles' sessions.
func (x *exam) blind(what string) Finding {
	return unknown(dof("GRANT pg_monitor TO %s", pgx.Identifier{x.facts.role}.Sanitize()),
		"the role %s may not see %s of other roles", x.facts.role, what)
}

// in adds the schema of the tables to a statement or the name of a table.
func (x *exam) in(sql string) string { return schema.In(x.config.Schema, sql) }

// standing returns the counts of keys, which are read once.
func (x *exam) standing(ctx context.Context) (*inspect.Keys, error) {
	if x.keys == nil {
		k, err := x.engine.Admin().Keys(ctx, "")
		x.keys = func() (*inspect.Keys, error) { return &k, err }
	}
	return x.keys()
}
