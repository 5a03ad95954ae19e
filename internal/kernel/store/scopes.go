package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/inspect"
)

const (
	// scopeDays is the number of days that counts are kept.
	scopeDays = 30
	// maxScopeRows bounds the scopes with a row of their own on one day. Callers name scopes and tenants, so their number is unbounded.
	maxScopeRows = 2000
	// maxRecorded bounds the scopes that Read lists one by one.
	maxRecorded = 1000
)

// Scopes is the table of the answers of attempts by scope and day.
type Scopes struct {
	pool *pgxpool.Pool
	in   func(sql string) string
}

// NewScopes returns Scopes; in inserts the schema's name into a statement.
func NewScopes(pool *pgxpool.Pool, in func(sql string) string) *Scopes { return &Scopes{pool, in} }

const (
	// addScopesSQL counts a new scope beyond $9 with the rest; concurrent nodes may exceed that a little. It does not wait for the disk:
	// a crash may lose the newest counts anyway. The order prevents deadlocks of two nodes.
	addScopesSQL = `WITH today AS (SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date AS day), u AS (
	SELECT u.*, t.day, EXISTS (SELECT FROM {pawl}.scope_day AS s
		WHERE (s.tenant, s.scope, s.named, s.day) = (u.tenant, u.scope, u.named, t.day)) AS known
	FROM unnest($1::text[], $2::text[], $3::boolean[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[])
		AS u(tenant, scope, named, fresh, replayed, active, mismatched, expired), today AS t
), placed AS (
	SELECT u.*, known OR tenant = '' OR row_number() OVER (ORDER BY known, fresh + replayed + active + mismatched + expired DESC)
		+ (SELECT count(*) FROM {pawl}.scope_day AS s, today AS t WHERE s.day = t.day) <= $9 AS fits
	FROM u, (SELECT set_config('synchronous_commit', 'off', true)) AS unflushed
), added AS (
	SELECT CASE WHEN fits THEN tenant ELSE '' END AS tenant,
		CASE WHEN fits OR NOT named THEN scope ELSE '` + inspect.OtherScopes + `' END AS scope,
		named, day, fresh, replayed, active, mismatched, expired
	FROM placed
)
INSERT INTO {pawl}.scope_day AS s (tenant, scope, named, day, fresh, replayed, active, mismatched, expired)
SELECT tenant, scope, named, day, sum(fresh), sum(replayed), sum(active), sum(mismatched), sum(expired)
FROM added GROUP BY tenant, scope, named, day ORDER BY tenant COLLATE "C", scope COLLATE "C", named
ON CONFLICT (tenant, scope, named, day) DO UPDATE SET fresh = s.fresh + excluded.fresh, replayed = s.replayed + excluded.replayed,
	active = s.active + excluded.active, mismatched = s.mismatched + excluded.mismatched, expired = s.expired + excluded.expired`

	// readScopesSQL counts scopes beyond $3 with the rest, as addScopesSQL.
	readScopesSQL = `WITH counts AS (
	SELECT tenant, scope, named, sum(fresh) AS fresh, sum(replayed) AS replayed, sum(active) AS active, sum(mismatched) AS mismatched,
		sum(expired) AS expired, min(day) AS first,
		row_number() OVER (ORDER BY sum(fresh + replayed + active + mismatched + expired) DESC, tenant, scope, named) <= $3 AS fits
	FROM {pawl}.scope_day WHERE ($1 = '' OR tenant = $1) AND day > (clock_timestamp() AT TIME ZONE 'UTC')::date - $2::int
	GROUP BY tenant, scope, named
), listed AS (
	SELECT CASE WHEN fits THEN tenant ELSE '' END AS tenant,
		CASE WHEN fits OR NOT named THEN scope ELSE '` + inspect.OtherScopes + `' END AS scope,
		named, fresh, replayed, active, mismatched, expired, first
	FROM counts
)
SELECT tenant, scope, named, sum(fresh)::bigint, sum(replayed)::bigint, sum(active)::bigint, sum(mismatched)::bigint,
	sum(expired)::bigint, min(first)
FROM listed GROUP BY tenant, scope, named
ORDER BY sum(fresh + replayed + active + mismatched + expired) DESC, tenant, scope, named`
)

// Add adds attempts to the counts of today.
func (s *Scopes) Add(ctx context.Context, list []inspect.ScopeCount) error {
	n := len(list)
	tenants, scopes, named := make([]string, n), make([]string, n), make([]bool, n)
	var counts [5][]int64
	for i := range list {
		c := &list[i]
		tenants[i], scopes[i], named[i] = c.Tenant, c.Scope, c.Named
		for k, count := range [...]int64{c.New, c.Replayed, c.Active, c.Mismatched, c.Expired} {
			counts[k] = append(counts[k], count)
		}
	}
	_, err := s.pool.Exec(ctx, s.in(addScopesSQL), tenants, scopes, named, counts[0], counts[1], counts[2], counts[3], counts[4], maxScopeRows)
	return err
}

// Forget removes counts that are older than scopeDays.
func (s *Scopes) Forget(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, s.in("DELETE FROM {pawl}.scope_day WHERE day <= (clock_timestamp() AT TIME ZONE 'UTC')::date - $1::int"), scopeDays)
	return err
}

// Read returns the counts of the kept days, ordered by the number of attempts, and the first of these days. Without counts it is zero.
// The tenant "" means all tenants. Scopes beyond a thousand are counted together.
func (s *Scopes) Read(ctx context.Context, tenant string) (list []inspect.ScopeCount, since time.Time, err error) {
	list, err = collect(ctx, s.pool, "attempts by scope", func(row pgx.CollectableRow) (c inspect.ScopeCount, err error) {
		var first time.Time
		err = row.Scan(&c.Tenant, &c.Scope, &c.Named, &c.New, &c.Replayed, &c.Active, &c.Mismatched, &c.Expired, &first)
		if since.IsZero() || first.Before(since) {
			since = first
		}
		return c, err
	}, s.in(readScopesSQL), tenant, scopeDays, maxRecorded)
	return list, since, err
}
