package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/workflow"
)

// Rollout is which nodes there are, what they know, and what new instances begin with.
type Rollout struct {
	pool                             *pgxpool.Pool
	seen, gone, begin, newest, nodes string
	begins                           string
}

// NewRollout prepares to work. in puts the schema's name into a statement.
func NewRollout(pool *pgxpool.Pool, in func(sql string) string) *Rollout {
	return &Rollout{
		pool: pool,
		seen: in(`WITH seen AS (
	INSERT INTO pawl.node (name, versions, begun_at, seen_at) VALUES ($1, $2, clock_timestamp(), clock_timestamp())
	ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at)
SELECT workflow, version FROM pawl.begins`),
		gone: in("DELETE FROM pawl.node WHERE name = $1 OR seen_at < clock_timestamp() - interval '1 hour'"),
		begin: in(`INSERT INTO pawl.begins (workflow, version, actor, at) VALUES ($1, $2, $3, $4)
ON CONFLICT (workflow) DO UPDATE SET version = excluded.version, actor = excluded.actor, at = excluded.at`),
		newest: in("DELETE FROM pawl.begins WHERE workflow = $1"),
		nodes: in(`SELECT name, versions, begun_at, seen_at, clock_timestamp() - seen_at < $1::bigint * interval '1 microsecond' FROM pawl.node
ORDER BY begun_at, name`),
		begins: in("SELECT workflow, version FROM pawl.begins"),
	}
}

// Seen says that a node serves, and what it knows. It returns what new instances begin with, by workflow.
func (r *Rollout) Seen(ctx context.Context, node string, versions []string) (map[string]int, error) {
	return r.collect(ctx, r.seen, node, versions)
}

// Begins is what new instances begin with, by workflow.
func (r *Rollout) Begins(ctx context.Context) (map[string]int, error) {
	return r.collect(ctx, r.begins)
}

func (r *Rollout) collect(ctx context.Context, sql string, args ...any) (map[string]int, error) {
	found, err := r.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, ReadError("what new instances begin with", err)
	}
	begins := map[string]int{}
	var name string
	var version int
	if _, err := pgx.ForEachRow(found, []any{&name, &version}, func() error { begins[name] = version; return nil }); err != nil {
		return nil, ReadError("what new instances begin with", err)
	}
	return begins, nil
}

// Gone says that a node serves no more, and forgets those that have not said so.
func (r *Rollout) Gone(ctx context.Context, node string) error {
	_, err := r.pool.Exec(ctx, r.gone, node)
	return err
}

// Begin says with which version new instances of a workflow begin; 0 is the newest.
func (r *Rollout) Begin(ctx context.Context, name string, version int, actor string, at time.Time) error {
	var err error
	if version == 0 {
		_, err = r.pool.Exec(ctx, r.newest, name)
	} else {
		_, err = r.pool.Exec(ctx, r.begin, name, version, actor, at)
	}
	if err != nil {
		return &workflow.Error{Code: workflow.Unavailable, Message: "the database could not be written; try again", Cause: err}
	}
	return nil
}

// Nodes lists the nodes that have served lately, the oldest first. One is alive that was seen within
// so long.
func (r *Rollout) Nodes(ctx context.Context, alive time.Duration) ([]inspect.Node, error) {
	found, err := r.pool.Query(ctx, r.nodes, alive.Microseconds())
	if err == nil {
		var list []inspect.Node
		if list, err = pgx.CollectRows(found, pgx.RowToStructByPos[inspect.Node]); err == nil {
			return list, nil
		}
	}
	return nil, ReadError("nodes", err)
}
