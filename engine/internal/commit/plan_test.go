package commit

import (
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/schema"
)

// keyOf are the columns that a probe of a primary key must bind, all of them.
var keyOf = map[string][]string{
	"instance": {"tenant", "id"},
	"command":  {"tenant", "scope", "key"},
	"audit":    {"tenant", "instance", "version"},
}

// flightIndexes says how what is in flight on an instance is found: what its index compares after the tenant.
var flightIndexes = map[string]string{"command_pkey": "AND (scope = u.", "command_planned_on": "AND (instance = u.instance)",
	"command_scheduled": "AND (scope >= u.timers) AND (scope < u.timer_end)"}

// A plan that was made for an empty table stays in use while the table fills,
// and one that was made for a full table while it is emptied. So no statement
// may have any plan but probes of whole primary keys, in both.
func TestStatementsProbeWholeKeys(t *testing.T) {
	pool := pgtest.DirectPool(t)
	ctx := t.Context()
	_, err := schema.Migrate(ctx, pool, schema.Default)
	require.NoError(t, err)
	t.Run("empty", func(t *testing.T) { explainAll(t, pool) })

	exec(t, pool, "VACUUM ANALYZE")
	t.Run("empty and vacuumed", func(t *testing.T) { explainAll(t, pool) })

	exec(t, pool, `
INSERT INTO pawl.instance (tenant, id, workflow, definition, state, version, data, open, chain, created_at, updated_at)
SELECT 't' || n % 3, gen_random_uuid(), 'w', 1, 's', 1, '{}', true, decode(repeat('00', 32), 'hex'), now(), now()
	FROM generate_series(1, 30000) n;
INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, version, actor, code, body, created_at,
	finished_at)
SELECT tenant, 'w:' || id, 'k', chain, 'succeeded', 'w', 't', id, 1, 'a', 200, '{}', now(), now() FROM pawl.instance;
INSERT INTO pawl.audit (tenant, instance, version, position, workflow, transition, to_state, actor, payload, data, scope, key, at, hash)
SELECT tenant, id, 1, 1, 'w', 't', 's', 'a', '{}', '{}', 's', 'k', now(), chain FROM pawl.instance;
INSERT INTO pawl.log SELECT 't' || n, 10000 FROM generate_series(0, 2) n;`)
	t.Run("full, with the statistics of the empty ones", func(t *testing.T) { explainAll(t, pool) })

	exec(t, pool, "ANALYZE")
	t.Run("full", func(t *testing.T) { explainAll(t, pool) })
}

func explainAll(t *testing.T, pool *pgxpool.Pool) {
	p := testPipeline(pool)
	r := p.newRunner("explain", committerLockTimeout)
	require.NoError(t, r.dial(t.Context()))
	defer r.drop()
	stmts := NewStatements(schema.For(schema.Default))
	for name, s := range stmts.Named() {
		if len(s.OIDs) == 0 {
			continue // BEGIN and the like
		}
		t.Run(name, func(t *testing.T) {
			for _, step := range pgtest.ExplainPrepared(t, r.pg, "", s.SQL, len(s.OIDs)) { // its session has generic plans
				checkProbes(t, name, step)
			}
		})
	}
}

func checkProbes(t *testing.T, statement string, n pgtest.Step) {
	t.Helper()
	bound := keyOf[n.Relation]
	if strings.HasPrefix(statement, "disarm") && n.Relation == "command" {
		bound = []string{"tenant", "scope"} // the commands of a scope: at most one is in flight
	}
	if strings.HasPrefix(statement, "resume") && n.Index == "command_paused" {
		bound = []string{"paused", "tenant"} // what waits for the end of a pause
	}
	// what is in flight on an instance
	if strings.HasPrefix(statement, "migrate_flights") && n.Relation == "command" && n.Type == "Index Scan" {
		begins := flightIndexes[n.Index]
		assert.Truef(t, begins != "" && strings.Contains(n.Cond, begins), "%s of %s: %s", n.Type, n.Index, n.Cond)
		return
	}
	if n.Relation == "log" { // the newest version comes first
		assert.Truef(t, strings.Contains(n.Cond, "tenant >= ") && strings.Contains(n.Cond, "tenant <= ") && n.Goes == "Backward",
			"%s of %s, %s: %s", n.Type, n.Relation, n.Goes, n.Cond)
		return
	}
	switch n.Type {
	case "Seq Scan", "Bitmap Heap Scan", "Bitmap Index Scan":
		t.Errorf("%s on %s", n.Type, n.Relation)
	case "Index Scan", "Index Only Scan":
		for _, column := range bound {
			assert.Containsf(t, n.Cond, column+" = ", "%s of %s does not bind %s", n.Type, n.Index, column)
		}
		assert.Falsef(t, n.Relation == "instance" && n.Goes != "Backward",
			"%s of %s, %s: the oldest version comes first: %s", n.Type, n.Index, n.Goes, n.Cond)
		assert.NotNilf(t, bound, "unexpected scan of %s", n.Relation)
		// another may have the columns too, but not as its first ones
		assert.Truef(t, ((n.Index == n.Relation+"_pkey" || n.Index == "command_scheduled") || (strings.HasPrefix(statement,
			"resume") && n.Index == "command_paused")), "%s is probed by %s", n.Relation, n.Index)
	}
}

func exec(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	_, err := pool.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
}

// Every statement is named: the schema's name is put into those that are, and their plans are checked.
func TestStatements_AllNamed(t *testing.T) {
	stmts := NewStatements(schema.For(schema.Default))
	named := map[*rows.Statement]bool{}
	for _, s := range stmts.Named() {
		named[s] = true
	}
	v := reflect.ValueOf(stmts).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		switch field := v.Field(i).Addr().Interface().(type) {
		case *rows.Statement:
			assert.Truef(t, named[field], "%s is not named", name)
		case *Forms:
			assert.Truef(t, named[&field.One] && named[&field.Many], "%s is not named", name)
		}
	}
}
