package inflight

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// probed are the only indexes that a statement may use, with the columns that it
// must bind.
var probed = map[string][]string{
	"command_pkey":   {"tenant = ", "scope = ", "key = "},
	"instance_pkey":  {"tenant = ", "id = "},
	"paused_pkey":    {"tenant = "},
	"command_due":    {"run_at "},
	"command_work":   {"workflow", "transition", "run_at"},
	"command_paused": {"paused"},
	"command_leased": {"locked_until < "},
	"command_turn":   {"tenant"},

	"command_due_turn": {"tenant"},
}

// mostRead is how many rows a statement may read at one place of its plan.
const mostRead = 3 * dueBatch

// A plan that a connection made for an empty table stays in use while it fills.
// So the statements that write have one plan, in both. The poll is planned each
// time, as the table grows; what it must not do is to read a full table.
func TestEveryStatementStaysOnItsIndexes(t *testing.T) {
	t.Parallel()
	explainFilling(t, 3000)
}

func TestStatements_IndexesAtOtherSizes(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	for _, size := range []int{300, 1000, 8000, 20_000, 100_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) { explainFilling(t, size) })
	}
}

// explainFilling asks for the plans before and after so many instances and commands in flight are written.
func explainFilling(t *testing.T, size int) {
	pool := pgtest.Pool(t)
	execAll(t, pool, "ALTER TABLE pawl.command SET (autovacuum_enabled = false); ALTER TABLE pawl.instance SET (autovacuum_enabled = false)")
	t.Run("empty", func(t *testing.T) { explainProbes(t, pool) })

	execAll(t, pool, "VACUUM ANALYZE")
	t.Run("empty and vacuumed", func(t *testing.T) { explainProbes(t, pool) })

	// Of those in flight most are waiting or leased, a few are due, and there
	// are as many again that are finished.
	execAll(t, pool, fmt.Sprintf(`
INSERT INTO pawl.instance (tenant, id, workflow, definition, state, version, data, open, chain, created_at, updated_at)
SELECT 't' || n %% 3, gen_random_uuid(), 'job', 1, 's', 1, '{}', true, decode(repeat('00', 32), 'hex'), now(), now()
	FROM generate_series(1, %d) n;
INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, code, body, created_at,
	finished_at)
SELECT tenant, 'job:' || id, 'done', chain, 'succeeded', 'job', 'run', id, 'a', 200, '{}', now(), now() FROM pawl.instance;
INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, phase, workflow, transition, instance, actor, request, attempt, failures,
	revision,
	run_at, claimed_by, claimed_at, locked_until, created_at, updated_at)
SELECT tenant, 'job:' || id, 'k', chain, status, CASE WHEN n %% 2 = 0 THEN 'working' ELSE 'scheduled' END, 'job', 'run', id, 'a', '{}',
	0, 0, 0,
	CASE WHEN status = 'pending' THEN now() + (n - 50) * interval '1 second' END, 'n', now(),
		CASE WHEN status = 'processing' THEN now() + interval '1 hour' END, now(), now()
FROM (SELECT *, row_number() OVER () AS n, CASE WHEN row_number() OVER () %% 3 = 0 THEN 'processing' ELSE 'pending' END AS status
	FROM pawl.instance) i;`, size))
	t.Run("full, with the statistics of the empty ones", func(t *testing.T) {
		explainProbes(t, pool)
		explainPoll(t, pool)
	})

	execAll(t, pool, "UPDATE pawl.command SET run_at = now() - random() * interval '1 hour' WHERE run_at IS NOT NULL")
	t.Run("full and due, with the statistics of the empty ones", func(t *testing.T) { explainPoll(t, pool) })

	execAll(t, pool, "ANALYZE")
	t.Run("full, and all is due", func(t *testing.T) { explainPoll(t, pool) })

	execAll(t, pool, "UPDATE pawl.command SET run_at = now() + random() * interval '1 hour' WHERE run_at IS NOT NULL; ANALYZE")
	t.Run("full", func(t *testing.T) {
		explainProbes(t, pool)
		explainPoll(t, pool)
	})
}

// explainProbes asks for the plans that a connection may keep, as they are made
// in the message that the runner sends.
func explainProbes(t *testing.T, pool *pgxpool.Pool) {
	for name, s := range map[string]struct {
		sql        string
		parameters int
	}{"claim": {store.ClaimSQL, 7}, "keep": {store.KeepSQL, 18}, "held": {store.HeldSQL, 6}, "cancel": {store.CancelSQL, 5},
		"park a workflow's": {store.ParkWorkflowSQL, 5}, "park an instance's": {store.ParkInstanceSQL, 5}, "unpark": {store.UnparkSQL, 5}} {
		t.Run(name, func(t *testing.T) {
			for _, step := range pgtest.ExplainPrepared(t, pool, settings, s.sql, s.parameters) {
				check(t, step)
			}
		})
	}
}

// explainPoll executes polls and counts the rows that they touch.
func explainPoll(t *testing.T, pool *pgxpool.Pool) {
	for name, q := range map[string]store.PollRequest{
		"idle workers": {Works: 20, Scheduled: dueBatch, Whole: true},
		"some full":    {Works: 5, Scheduled: dueBatch, Full: []string{"other run"}},
		"what is new":  {Works: 5, Scheduled: dueBatch, Since: time.Now().Add(-lateness)},
		"no workers":   {},
		"a backlog":    {Works: 20, Scheduled: dueBatch, Turns: store.Turns{Most: 100, After: "t0"}, Later: store.Turns{Most: 100, After: "t0"}},
	} {
		t.Run("poll, "+name, func(t *testing.T) {
			q.Now, q.Next, q.Workflows = time.Now(), time.Now(), []string{"job", "rest"}
			q.Activities = []store.Activity{{Workflow: "job", Name: "run", Room: 20}, {Workflow: "job", Name: "rest", Room: 1}}
			for _, step := range pgtest.Explain(t, pool, "ANALYZE, ", store.PollSQL, append([]any{pgx.QueryExecModeExec}, q.Params()...)...) {
				check(t, step)
			}
		})
	}
}

func check(t *testing.T, p pgtest.Step) {
	t.Helper()
	switch p.Type {
	case "Seq Scan", "Bitmap Heap Scan":
		few := p.Loops > 0 && p.Rows+p.Removed <= mostRead // all of a small table is, where the statement was executed
		if p.Relation != "paused" && !few {                // of paused all is asked for
			t.Errorf("%s on %s", p.Type, p.Relation)
		}
	case "Index Scan", "Index Only Scan":
		bound, ok := probed[p.Index]
		assert.Truef(t, ok, "it uses %s: %s", p.Index, p.Cond)
		for _, column := range bound {
			assert.Containsf(t, p.Cond, column, "%s of %s does not bind", p.Type, p.Index)
		}
		assert.Falsef(t, p.Index == "instance_pkey" && p.Goes != "Backward", "the oldest version comes first: %s", p.Cond)
		read := p.Rows + p.Removed
		assert.Truef(t, read <= mostRead, "it reads %.0f rows of %s", read, p.Index)
	}
}

func execAll(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	_, err := pool.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
}
