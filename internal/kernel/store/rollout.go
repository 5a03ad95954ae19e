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

// Rollout is the table of the nodes, of the versions that they know, and of the default versions.
type Rollout struct {
	pool *pgxpool.Pool
	in   func(sql string) string
}

// NewRollout returns a Rollout; in inserts the schema's name into a statement.
func NewRollout(pool *pgxpool.Pool, in func(sql string) string) *Rollout { return &Rollout{pool, in} }

// Seen records that a node serves, the versions that it knows, and its program. confirmed are the default versions on it, for a new row. It
// returns the default versions, by workflow.
func (r *Rollout) Seen(ctx context.Context, node string, versions []string, build string, confirmed []string) (map[string]int, error) {
	return r.defaults(ctx, `WITH seen AS (
	INSERT INTO {pawl}.node (name, versions, build, begins, begun_at, seen_at)
	VALUES ($1, $2, $3, $4, clock_timestamp(), clock_timestamp())
	ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at)
SELECT workflow, version FROM {pawl}.begins`, node, versions, build, confirmed)
}

// Confirm records the default versions on a node, empty while they change.
func (r *Rollout) Confirm(ctx context.Context, node string, begins []string) error {
	_, err := r.pool.Exec(ctx, r.in("UPDATE {pawl}.node SET begins = $2 WHERE name = $1"), node, begins)
	return writeError(err)
}

func writeError(err error) error {
	if err == nil {
		return nil
	}
	return &workflow.Error{Code: workflow.Unavailable, Message: "the database could not be written; try again", Cause: err}
}

// changing is the condition on pg_locks for transactions that may have written instances.
const changing = `relation = '{pawl}.instance'::regclass AND mode = 'RowExclusiveLock' AND granted
	AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

// OpenChanges returns the open transactions that may have written instances. StillOpen reports when all of them have ended.
func (r *Rollout) OpenChanges(ctx context.Context) (list []string, err error) {
	sql := r.in("SELECT array_agg(DISTINCT virtualtransaction) FROM pg_locks WHERE " + changing)
	if err := r.pool.QueryRow(ctx, sql).Scan(&list); err != nil {
		return nil, ReadError("open transactions", err)
	}
	return list, nil
}

// StillOpen reports whether one of the transactions has not ended.
func (r *Rollout) StillOpen(ctx context.Context, list []string) (open bool, err error) {
	sql := r.in("SELECT EXISTS (SELECT FROM pg_locks WHERE " + changing + " AND virtualtransaction = ANY ($1))")
	if err := r.pool.QueryRow(ctx, sql, list).Scan(&open); err != nil {
		return false, ReadError("open transactions", err)
	}
	return open, nil
}

// Begins returns the default versions, by workflow.
func (r *Rollout) Begins(ctx context.Context) (map[string]int, error) {
	return r.defaults(ctx, "SELECT workflow, version FROM {pawl}.begins")
}

func (r *Rollout) defaults(ctx context.Context, sql string, args ...any) (map[string]int, error) {
	begins := map[string]int{}
	var name string
	var version int
	found, _ := r.pool.Query(ctx, r.in(sql), args...) // ForEachRow returns its error
	if _, err := pgx.ForEachRow(found, []any{&name, &version}, func() error { begins[name] = version; return nil }); err != nil {
		return nil, ReadError("default versions", err)
	}
	return begins, nil
}

// Elsewhere returns the newest versions, by workflow, that other nodes know which were seen within the duration alive, and the default
// versions. by may be a transaction of the caller.
func (r *Rollout) Elsewhere(ctx context.Context, by Querier, node string, alive time.Duration) (known, begins map[string]int, err error) {
	found, _ := by.Query(ctx, r.in(`SELECT DISTINCT known, false FROM {pawl}.node, unnest(versions) AS known
WHERE name <> $1 AND seen_at > clock_timestamp() - $2::bigint * interval '1 microsecond'
UNION ALL SELECT workflow || ' ' || version, true FROM {pawl}.begins`), node, alive.Microseconds()) // ForEachRow returns its error
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
		return nil, nil, ReadError("the versions of other nodes", err)
	}
	return known, begins, nil
}

// NameAndVersion parses the name of a workflow, a space and a version.
func NameAndVersion(text string) (name string, version int) {
	i := strings.LastIndexByte(text, ' ')
	version, _ = strconv.Atoi(text[i+1:]) // 0 is no version
	return text[:max(i, 0)], version
}

// Gone removes a node that stops, and those that have not been seen for an hour.
func (r *Rollout) Gone(ctx context.Context, node string) error {
	_, err := r.pool.Exec(ctx, r.in("DELETE FROM {pawl}.node WHERE name = $1 OR seen_at < clock_timestamp() - interval '1 hour'"), node)
	return err
}

// Begin sets the default version of a workflow; 0 is the newest. It returns the time of the change by the database's clock.
func (r *Rollout) Begin(ctx context.Context, name string, version int, actor string, at time.Time) (changed time.Time, err error) {
	sql, args := `INSERT INTO {pawl}.begins (workflow, version, actor, at) SELECT $1, $2, $3, $4 FROM {pawl}.durable()
ON CONFLICT (workflow) DO UPDATE SET version = excluded.version, actor = excluded.actor, at = excluded.at`, []any{name, version, actor, at}
	if version == 0 {
		sql, args = "DELETE FROM {pawl}.begins USING {pawl}.durable() WHERE workflow = $1", args[:1]
	}
	if _, err = r.pool.Exec(ctx, r.in(sql), args...); err == nil {
		err = r.pool.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&changed)
	}
	return changed, writeError(err)
}

// Nodes lists the nodes that have served lately, the oldest first. A node is alive that was seen within the duration alive.
func (r *Rollout) Nodes(ctx context.Context, alive time.Duration) ([]inspect.Node, error) {
	return collect(ctx, r.pool, "nodes", pgx.RowToStructByPos[inspect.Node], r.in(`
SELECT name, versions, build, begun_at, seen_at, clock_timestamp() - seen_at < $1::bigint * interval '1 microsecond', begins
FROM {pawl}.node ORDER BY begun_at, name`), alive.Microseconds())
}
