package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Answers must survive a crash. A caller's transaction that turns synchronous_commit off is durable if it contains a command; one that
// waits for a standby still waits for it.
func TestACallersTransactionWithACommandIsDurable(t *testing.T) {
	t.Parallel()
	const later = "SET LOCAL synchronous_commit = off"
	claimed := `pawl.claim('sql', 'k', sha256('x'), 'loan', 'pay', pawl.instance_id('loan', 'L-1')) AS c`
	for _, tt := range []struct {
		name    string
		command *transitions.Command
		claimed bool // before, by another transaction
		sql     []string
		set     string
		want    string
	}{
		{name: "done", command: new(on("pay", "L-1", "p", 1, ""))},
		{name: "created", command: new(applied("L-2", 1))},
		{name: "refused", command: new(on("pay", "L-1", "p", 1000, ""))},
		{name: "turned off again", command: new(on("pay", "L-1", "p", 1, "")), sql: []string{later}},
		{name: "local", command: new(on("pay", "L-1", "p", 1, "")), set: "local", want: "local"},
		{name: "remote_apply", command: new(on("pay", "L-1", "p", 1, "")), set: "remote_apply", want: "remote_apply"},
		{name: "claim", sql: []string{"SELECT FROM " + claimed}},
		{name: "succeed", sql: []string{"SELECT pawl.succeed('sql', 'k', c.attempt) FROM " + claimed}},
		{name: "fail", sql: []string{"SELECT pawl.fail('sql', 'k', c.attempt, 'no', true) FROM " + claimed}},
		{name: "succeed, in a transaction of its own", claimed: true, sql: []string{"SELECT pawl.succeed('sql', 'k', 1)"}},
		{name: "fail, in a transaction of its own", claimed: true, sql: []string{"SELECT pawl.fail('sql', 'k', 1, 'no')"}},
		{name: "transition", sql: []string{"SELECT pawl.transition('sql', 'k', c.attempt, version => 1, state => 'open', data => '{}') FROM " +
			claimed, later}},
		{name: "consume", sql: []string{"SELECT pawl.consume('them', 'm', sha256('x'))"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			pool, e := started(t)
			submit(t, e, applied("L-1", 100))
			if tt.claimed {
				exec(t, pool, "SELECT FROM "+claimed)
			}
			// As late as can be: its name is behind that of ours.
			exec(t, pool, `CREATE TABLE seen (setting text);
				CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen
					VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
				CREATE CONSTRAINT TRIGGER zz_see AFTER INSERT OR UPDATE ON `+
				map[bool]string{true: "pawl.audit", false: "pawl.command"}[slices.Contains(tt.sql, later)]+`
					DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION see()`)
			tx := begin(t, pool)
			if tt.set == "" {
				tt.set, tt.want = "off", "on"
			}
			run := func(sql string) {
				require.NoError(t, errOf(tx.Exec(t.Context(), sql, pgx.QueryExecModeExec)), sql)
			}
			run("SET LOCAL synchronous_commit = " + tt.set)
			if tt.command != nil {
				require.NoError(t, errOf(e.SubmitTx(t.Context(), tx, *tt.command)))
			}
			for _, sql := range tt.sql {
				run(sql)
			}
			commitTx(t, tx)
			seen := query[[]string](t, pool, "SELECT array_agg(DISTINCT setting) FROM seen")
			assert.Truef(t, slices.Equal(seen, []string{tt.want}), "it is committed with %v", seen)
		})
	}
}

// So is what a node writes by itself, where the database's default is not to wait for
// the disk: an answer that retention gives, and the word that a message is on the list.
func TestSubmitOverridesSynchronousCommitOff(t *testing.T) {
	t.Parallel()
	pool, clock := database(t), newStill()
	exec(t, pool, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$`)
	pool.Reset()
	exec(t, pool, `CREATE TABLE seen (what text);
		CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen
			VALUES (concat_ws(' ', TG_TABLE_NAME, to_json(NEW) ->> TG_ARGV[0], NEW.status, current_setting('synchronous_commit')));
			RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER zz_see AFTER INSERT OR UPDATE ON pawl.command DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW WHEN (NEW.status = 'failed_final') EXECUTE FUNCTION see('key');
		CREATE CONSTRAINT TRIGGER zz_see AFTER INSERT OR UPDATE ON pawl.inbox_dead DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION see('message')`)
	accepts := newEngine(t, pool, with(letters(1, hourly, nil)), clock.set, func(c *engine.Config) {
		c.InFlight.Workers, c.Retention.Off = -1, true
	})
	submit(t, accepts, posted(submit(t, accepts, written("w", "x")).Instance, "unknown"))
	clock.skip(50 * time.Hour)
	e := newEngine(t, pool, clock.set, withBank) // which does not know letters
	r, err := e.Await(t.Context(), transitions.Ref{Scope: "s", Key: "unknown"})
	require.Truef(t, err == nil && workflow.CodeOf(r.Err()) == workflow.CommandAbandoned, "it ends with %+v, %v", r, err)

	wrong := fromBank("wrong", "", `{"loan":"l-1","amount":100,"type":"wrong"}`)
	_, err = e.Consume(t.Context(), wrong)
	require.Equal(t, workflow.InvalidPayload, workflow.CodeOf(err), err)
	require.NoError(t, errOf(e.Admin().DiscardMessage(t.Context(), wrong.Ref(), "olga", "")))

	exec(t, pool, `SELECT pawl.fail('sql', 'purged', c.attempt, 'no') FROM
		pawl.claim('sql', 'purged', sha256('x'), 'loan', 'pay', pawl.instance_id('loan', 'l-1')) AS c`)
	exec(t, pool, "SELECT pawl.purge(moment => now() + interval '100 days')")

	got := query[[]string](t, pool, "SELECT array_agg(DISTINCT what ORDER BY what) FROM seen")
	want := []string{"command purged failed_final on", "command unknown failed_final on", "command wrong failed_final on",
		"inbox_dead wrong discarded on", "inbox_dead wrong waiting on"}
	assert.Truef(t, slices.Equal(got, want), "they are committed as\n%q, not\n%q", got, want)
}

// So is what an operator is told to be done.
func TestOperationsOverrideSynchronousCommitOff(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := bothClaims(t, pool)
	for i := range 20 { // so that their migration takes its time
		file(t, e, "", fmt.Sprint(i), 1)
	}
	exec(t, pool, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$`)
	pool.Reset()
	exec(t, pool, `INSERT INTO pawl.outbox_sink (name) VALUES ('main');
		CREATE TABLE seen (what text);
		CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen
			VALUES (concat_ws(' ', lower(TG_OP), TG_TABLE_NAME, current_setting('synchronous_commit'))); RETURN NULL; END $$`)
	for table, events := range map[string]string{"paused": "INSERT OR DELETE", "begins": "INSERT OR DELETE", "outbox_sink": "UPDATE OR DELETE",
		"instance_migration": "INSERT OR UPDATE OF stopped_at"} {
		exec(t, pool, "CREATE CONSTRAINT TRIGGER zz_see AFTER "+events+" ON pawl."+table+
			" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION see()")
	}
	var batch inspect.Migration
	for _, act := range []struct {
		want string
		do   func() error
	}{
		{"insert paused on", func() error { return e.Admin().PauseWorkflow(t.Context(), "", "claim", "olga", "") }},
		{"delete paused on", func() error { return e.Admin().ResumeWorkflow(t.Context(), "", "claim") }},
		{"delete begins on", func() error { return e.Admin().BeginVersion(t.Context(), "claim", 0, "olga") }},
		{"insert begins on", func() error { return e.Admin().BeginVersion(t.Context(), "claim", 1, "olga") }},
		{"update outbox_sink on", func() error { return e.Admin().PauseSink(t.Context(), "main", "olga", "") }},
		{"update outbox_sink on", func() error { return e.Admin().ResumeSink(t.Context(), "main") }},
		{"update outbox_sink on", func() (err error) { // as to skip dead letters, and to move a cursor
			_, err = e.Admin().Redrive(t.Context(), inspect.DeadFilter{Sink: "main", Tenant: "default"}, "olga", "")
			return err
		}},
		{"delete outbox_sink on", func() error { return e.Admin().ForgetSink(t.Context(), "main") }},
		{"insert instance_migration on", func() (err error) {
			batch, err = e.Admin().MigrateInstances(t.Context(), inspect.MigrationRequest{Workflow: "claim", From: 1, To: 2, PerSecond: 1,
				Actor: "olga", Reason: "r"})
			return err
		}},
		{"update instance_migration on", func() (err error) {
			_, err = e.Admin().StopMigration(t.Context(), batch.ID, "olga", "")
			return err
		}},
	} {
		require.NoError(t, act.do(), act.want)
		got := query[[]string](t, pool, "SELECT array_agg(DISTINCT what) FROM seen")
		assert.Truef(t, slices.Equal(got, []string{act.want}), "it is committed as %q, not %q", got, act.want)
		exec(t, pool, "DELETE FROM seen")
	}
}
