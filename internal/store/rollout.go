package store

import (
	"context"
	"strconv"
	"strings"
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
	begins, elsewhere                string
}

// NewRollout prepares to work. in puts the schema's name into a statement.
func NewRollout(pool *pgxpool.Pool, in func(sql string) string) *Rollout {
	return &Rollout{
		pool: pool,
		seen: in(`WITH seen AS (
	INSERT INTO pawl.node (name, versions, build, begun_at, seen_at) VALUES ($1, $2, $3, clock_timestamp(), clock_timestamp())
	ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at)
SELECT workflow, version FROM pawl.begins`),
		gone: in("DELETE FROM pawl.node WHERE name = $1 OR seen_at < clock_timestamp() - interval '1 hour'"),
		begin: in(`INSERT INTO pawl.begins (workflow, version, actor, at) SELECT $1, $2, $3, $4 FROM pawl.durable()
ON CONFLICT (workflow) DO UPDATE SET version = excluded.version, actor = excluded.actor, at = excluded.at`),
		newest: in("DELETE FROM pawl.begins USING pawl.durable() WHERE workflow = $1"),
		nodes: in(`SELECT name, versions, build, begun_at, seen_at, clock_timestamp() - seen_at < $1::bigint * interval '1 microsecond'
FROM pawl.node ORDER BY begun_at, name`),
		begins: in("SELECT workflow, version FROM pawl.begins"),
		elsewhere: in(`SELECT DISTINCT known, false FROM pawl.node, unnest(versions) AS known
WHERE name <> $1 AND seen_at > clock_timestamp() - $2::bigint * interval '1 microsecond'
UNION ALL SELECT workflow || ' ' || version, true FROM pawl.begins`),
	}
}

// Seen says that a node serves, what it knows, and which program it is. It returns what new instances begin with, by workflow.
func (r *Rollout) Seen(ctx context.Context, node string, versions []string, build string) (map[string]int, error) {
	return r.collect(ctx, r.seen, node, versions, build)
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

// Elsewhere is what the other nodes know that were seen within so long, the newest version by workflow, and
// what new instances begin with. by may be a caller's transaction.
func (r *Rollout) Elsewhere(ctx context.Context, by Querier, node string, alive time.Duration) (known, begins map[string]int, err error) {
	found, err := by.Query(ctx, r.elsewhere, node, alive.Microseconds())
	if err != nil {
		return nil, nil, ReadError("what other nodes know", err)
	}
	known, begins = map[string]int{}, map[string]int{}
	var version string
	var begun bool
	if _, err := pgx.ForEachRow(found, []any{&version, &begun}, func() error {
		name, number := NameAndVersion(version)
		if begun {
			begins[name] = number
		} else {
			known[name] = max(known[name], number)
		}
		return nil
	}); err != nil {
		return nil, nil, ReadError("what other nodes know", err)
	}
	return known, begins, nil
}

// NameAndVersion reads the name of a workflow, a space and a version.
func NameAndVersion(text string) (name string, version int) {
	i := strings.LastIndexByte(text, ' ')
	version, _ = strconv.Atoi(text[i+1:]) // 0 is no version
	return text[:max(i, 0)], version
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
