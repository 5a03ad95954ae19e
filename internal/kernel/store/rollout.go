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
	begins, elsewhere, confirm       string
	openChanges, stillOpen           string
}

// NewRollout prepares to work. in puts the schema's name into a statement.
func NewRollout(pool *pgxpool.Pool, in func(sql string) string) *Rollout {
	return &Rollout{
		pool: pool,
		seen: in(`WITH seen AS (
	INSERT INTO {pawl}.node (name, versions, build, begins, begun_at, seen_at)
	VALUES ($1, $2, $3, $4, clock_timestamp(), clock_timestamp())
	ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at)
SELECT workflow, version FROM {pawl}.begins`),
		gone: in("DELETE FROM {pawl}.node WHERE name = $1 OR seen_at < clock_timestamp() - interval '1 hour'"),
		begin: in(`INSERT INTO {pawl}.begins (workflow, version, actor, at) SELECT $1, $2, $3, $4 FROM {pawl}.durable()
ON CONFLICT (workflow) DO UPDATE SET version = excluded.version, actor = excluded.actor, at = excluded.at`),
		newest:  in("DELETE FROM {pawl}.begins USING {pawl}.durable() WHERE workflow = $1"),
		confirm: in("UPDATE {pawl}.node SET begins = $2 WHERE name = $1"),
		nodes: in(`SELECT name, versions, build, begun_at, seen_at, clock_timestamp() - seen_at < $1::bigint * interval '1 microsecond', begins
FROM {pawl}.node ORDER BY begun_at, name`),
		openChanges: in(`SELECT array_agg(DISTINCT virtualtransaction) FROM pg_locks
WHERE relation = '{pawl}.instance'::regclass AND mode = 'RowExclusiveLock' AND granted
	AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`),
		stillOpen: in(`SELECT EXISTS (SELECT FROM pg_locks WHERE relation = '{pawl}.instance'::regclass AND mode = 'RowExclusiveLock' AND granted
	AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND virtualtransaction = ANY ($1))`),
		begins: in("SELECT workflow, version FROM {pawl}.begins"),
		elsewhere: in(`SELECT DISTINCT known, false FROM {pawl}.node, unnest(versions) AS known
WHERE name <> $1 AND seen_at > clock_timestamp() - $2::bigint * interval '1 microsecond'
UNION ALL SELECT workflow || ' ' || version, true FROM {pawl}.begins`),
	}
}

// Seen records that a node serves, what it knows, and which program it is. confirmed is what new instances begin with on it, for a row
// that is not there yet. It returns what new instances begin with, by workflow.
func (r *Rollout) Seen(ctx context.Context, node string, versions []string, build string, confirmed []string) (map[string]int, error) {
	return r.collect(ctx, r.seen, node, versions, build, confirmed)
}

// Confirm records what new instances begin with on a node: each workflow and version, empty while that changes.
func (r *Rollout) Confirm(ctx context.Context, node string, begins []string) error {
	if _, err := r.pool.Exec(ctx, r.confirm, node, begins); err != nil {
		return &workflow.Error{Code: workflow.Unavailable, Message: "the database could not be written; try again", Cause: err}
	}
	return nil
}

// OpenChanges lists the transactions that may have written instances and have not ended. StillOpen tells when all of them have.
func (r *Rollout) OpenChanges(ctx context.Context) (list []string, err error) {
	if err := r.pool.QueryRow(ctx, r.openChanges).Scan(&list); err != nil {
		return nil, ReadError("open transactions", err)
	}
	return list, nil
}

// StillOpen reports whether one of the transactions has not ended.
func (r *Rollout) StillOpen(ctx context.Context, list []string) (open bool, err error) {
	if err := r.pool.QueryRow(ctx, r.stillOpen, list).Scan(&open); err != nil {
		return false, ReadError("open transactions", err)
	}
	return open, nil
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

// Begin sets the version that new instances of a workflow begin with; 0 is the newest. It returns when, by the clock of the database.
func (r *Rollout) Begin(ctx context.Context, name string, version int, actor string, at time.Time) (changed time.Time, err error) {
	sql, args := r.begin, []any{name, version, actor, at}
	if version == 0 {
		sql, args = r.newest, args[:1]
	}
	if _, err = r.pool.Exec(ctx, sql, args...); err == nil {
		err = r.pool.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&changed)
	}
	if err != nil {
		return changed, &workflow.Error{Code: workflow.Unavailable, Message: "the database could not be written; try again", Cause: err}
	}
	return changed, nil
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
