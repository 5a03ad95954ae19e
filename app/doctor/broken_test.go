package doctor

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// inFlight writes commands in flight. The values are: status, phase, run_at, locked_until, held_until, stuck, and when they were asked.
func inFlight(status, phase, runAt, lockedUntil, heldUntil, stuck, createdAt string, attempt, times int) string {
	return fmt.Sprintf(`INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, created_at,
		phase,
	attempt, failures, revision, request, updated_at, run_at, claimed_by, claimed_at, locked_until, held_until, stuck)
SELECT 'default', 's', n::text, decode(repeat('00', 32), 'hex'), '%[1]s', 'order', 'pay', gen_random_uuid(), 'a', %[7]s, '%[2]s', %[8]d, 0,
	0, '{}', now(), %[3]s,
	CASE WHEN '%[1]s' = 'processing' THEN 'n' END, CASE WHEN '%[1]s' = 'processing' THEN now() END, %[4]s, %[5]s, %[6]s
FROM generate_series(1, %[9]d) AS n`, status, phase, runAt, lockedUntil, heldUntil, stuck, createdAt, attempt, times)
}

// served is a sink that a node delivers to.
const served = `INSERT INTO pawl.outbox_sink (name, claimed_by, claimed_at, locked_until)
	VALUES ('crm', 'n', now(), now() + interval '1 day')`

// anEvent is a transition of a time that is in the log.
func anEvent(at string) string {
	return `INSERT INTO pawl.outbox (tenant, position, type, ordinal, workflow, instance, version, transition, state, at)
	VALUES ('default', 1, 'order.placed', 0, 'order', gen_random_uuid(), 1, 'place', 'placed', ` + at + `);
INSERT INTO pawl.log (tenant, head) VALUES ('default', 1)`
}

// migration is one that is under way, unless columns say otherwise.
func migration(columns, values string) string {
	if !strings.Contains(columns, "expected") {
		columns, values = columns+", expected", values+", 1"
	}
	return `INSERT INTO pawl.instance_migration (created_at, from_version, to_version, per_second, workflow, actor, ` + columns + `)
		VALUES (now(), 1, 2, 500, 'order', 'ann', ` + values + `)`
}

// broken are databases, each broken in one way.
var broken = []struct {
	name string
	sql  []string
	do   func(p *patient) // beside that
	want []string
}{
	{name: "every index is made again, as by a dump and a restore", sql: []string{`DO $$ DECLARE i record; BEGIN
		FOR i IN SELECT c.relname AS name, pg_get_indexdef(x.indexrelid) AS definition FROM pg_index AS x
			JOIN pg_class AS c ON c.oid = x.indexrelid JOIN pg_class AS t ON t.oid = x.indrelid
			WHERE c.relnamespace = 'pawl'::regnamespace AND NOT x.indisprimary AND NOT t.relispartition
		LOOP
			EXECUTE format('DROP INDEX pawl.%I', i.name);
			EXECUTE i.definition;
		END LOOP; END $$`}},
	{name: "an index is missing", sql: []string{`DROP INDEX pawl.command_due`}, want: []string{"problem indexes command_due"}},
	{name: "a primary key is missing", sql: []string{`ALTER TABLE pawl.outbox_cursor DROP CONSTRAINT outbox_cursor_pkey`},
		want: []string{"problem indexes outbox_cursor_pkey"}},
	{name: "an index is another one", sql: []string{`DROP INDEX pawl.command_expires;
		CREATE INDEX command_expires ON pawl.command (expires_at)`},
		want: []string{"problem indexes command_expires"}},
	{name: "an index could not be made", do: func(p *patient) {
		p.exec(`INSERT INTO pawl.paused (tenant, workflow, actor, reason, at)
			VALUES ('a', 'w', 'x', 'same', now()), ('b', 'w', 'x', 'same', now())`)
		if _, err := p.pool.Exec(p.Context(), `CREATE UNIQUE INDEX CONCURRENTLY mine ON pawl.paused (reason)`); err == nil {
			p.Error("it is there")
		}
	}, want: []string{"problem indexes mine"}},
	{name: "a week has no primary key", sql: []string{`DO $$ DECLARE week regclass := (SELECT min(inhrelid::regclass::text)::regclass
		FROM pg_inherits
		WHERE inhparent = 'pawl.outbox'::regclass); BEGIN EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', week,
		(SELECT conname FROM pg_constraint WHERE conrelid = week AND contype = 'p')); END $$`}, want: []string{"problem indexes outbox_…"}},
	{name: "autovacuum is off for a table", sql: []string{`ALTER TABLE pawl.command SET (autovacuum_enabled = off)`},
		want: []string{"problem autovacuum command"}},
	{name: "autovacuum is off", do: func(p *patient) { p.server("autovacuum", "off") }, want: []string{"problem autovacuum autovacuum"}},

	{name: "commits do not wait for the disk", do: func(p *patient) { p.database("synchronous_commit = off") },
		want: []string{"warning durability synchronous_commit"}},
	{name: "a role's statements are ended early", do: func(p *patient) {
		p.role("shop", "statement_timeout = '5s'")
	}, want: []string{"warning time-limits statement_timeout"}},
	{name: "a role is given what its database is not", do: func(p *patient) {
		p.database("statement_timeout = '5s'")
		p.exec(`ALTER ROLE pawl IN DATABASE ` + p.name() + ` SET statement_timeout = 0`)
	}},
	{name: "waiting for locks is ended early", do: func(p *patient) { p.database("lock_timeout = '50ms'") },
		want: []string{"warning time-limits lock_timeout"}},
	{name: "transactions are ended early", do: func(p *patient) { p.database("idle_in_transaction_session_timeout = 500") },
		want: []string{"warning time-limits idle_in_transaction_session_timeout"}},
	{name: "sessions at rest are ended", do: func(p *patient) { p.database("idle_session_timeout = '1h'") },
		want: []string{"warning time-limits idle_session_timeout"}},
	{name: "the connection string ends statements", do: func(p *patient) { p.config.URL += "&statement_timeout=30s" },
		want: []string{"warning time-limits statement_timeout"}},
	{name: "nothing can be written", do: func(p *patient) { p.database("default_transaction_read_only = on") },
		want: []string{"problem writable default_transaction_read_only"}},

	{name: "the connections are used up", do: func(p *patient) {
		p.exec(`ALTER DATABASE ` + p.name() + ` CONNECTION LIMIT 2`)
		p.begin(`SELECT`)
		p.begin(`SELECT`)
	}, want: []string{"problem connections database…", "warning connections pool"}},
	{name: "a pool is too large", do: func(p *patient) { p.config.URL += "&pool_max_conns=5000" }, want: []string{"warning connections pool"}},
	{name: "transaction ids run out", do: func(p *patient) { p.limits.xids = 1 }, want: []string{"warning transaction-ids"}},
	{name: "a transaction stays open", do: func(p *patient) {
		p.limits.transaction = aMoment
		p.begin(`SELECT count(*) FROM pawl.command`)
	}, want: []string{"warning transactions pid…"}},
	{name: "a transaction stays open for ever", do: func(p *patient) {
		p.limits.transaction, p.limits.longest = aMoment, aMoment
		p.begin(`SELECT count(*) FROM pawl.command`)
	}, want: []string{"problem transactions pid…"}},
	{name: "a prepared transaction was left", do: func(p *patient) {
		p.exec(`BEGIN; INSERT INTO pawl.paused (tenant, workflow, actor, at) VALUES ('a', 'w', 'x', now()); PREPARE TRANSACTION 'le''ft'`)
		p.after(`ROLLBACK PREPARED 'le''ft'`)
		p.limits.transaction = aMoment
	}, want: []string{"problem prepared-transactions le'ft"}},
	{name: "a statement waits for a lock", do: func(p *patient) {
		p.exec(`INSERT INTO pawl.paused (tenant, workflow, actor, at) VALUES ('a', 'w', 'x', now())`)
		p.begin(`SELECT FROM pawl.paused FOR UPDATE`)
		ended := make(chan error, 1)
		go func() {
			_, err := p.pool.Exec(p.Context(), `DELETE FROM pawl.paused`)
			ended <- err
		}()
		pgtest.WaitBlocked(p, p.pool, "DELETE FROM pawl.paused")
		p.limits.lockWait = aMoment
	}, want: []string{"warning lock-waits pid…"}},

	{name: "a replication slot was left", do: func(p *patient) { p.slot() }, want: []string{"warning replication-slots left"}},
	{name: "a replication slot keeps much", do: func(p *patient) {
		p.slot()
		p.exec(`CREATE TABLE more AS SELECT generate_series(1, 1000)`)
		p.limits.slotWAL = 1
	}, want: []string{"problem replication-slots left"}},

	{name: "the clocks differ", do: func(p *patient) { p.clock(10 * time.Second) }, want: []string{"warning clock"}},
	{name: "the clocks differ much", do: func(p *patient) { p.clock(-time.Hour) }, want: []string{"problem clock"}},

	{name: "there are no tables", do: func(p *patient) { p.config.Schema = "elsewhere" }, want: []string{"problem schema"}},
	{name: "the tables are older", sql: []string{`DELETE FROM pawl.migration WHERE number > 3`}, want: []string{"problem schema"}},
	{name: "the tables are newer", sql: []string{`INSERT INTO pawl.migration (number, name) VALUES (1000, 'x')`},
		want: []string{"problem schema"}},
	{name: "the tables are another program's", sql: []string{`UPDATE pawl.migration SET name = 'elsewhere' WHERE number = 2`},
		want: []string{"problem schema"}},
	{name: "there is no partition for now", sql: []string{dropWeeks("true")}, want: []string{"problem partitions outbox"}},
	{name: "there is no partition for next week", sql: []string{dropWeeks(`week > to_char(now() AT TIME ZONE 'UTC', '"outbox_"IYYY"w"IW')`)},
		want: []string{"warning partitions outbox"}},
	{name: "a workflow has changed", sql: []string{`INSERT INTO pawl.definition (workflow, version, hash, spec)
		VALUES ('order', 1, 'other', '{}')`},
		want: []string{"problem definitions order 1"}},
	{name: "a version is missing", sql: []string{
		`INSERT INTO pawl.definition (workflow, version, hash, spec) VALUES ('order', 1, '` + hashOfOrder() +
			`', '{}'), ('order', 2, 'x', '{}'), ('other', 1, 'x', '{}')`,
		`INSERT INTO pawl.instance (tenant, id, workflow, definition, state, version, data, open, chain, created_at, updated_at)
		VALUES ('default', gen_random_uuid(), 'order', 2, 'placed', 1, '{}', true, decode(repeat('00', 32), 'hex'), now(), now())`},
		want: []string{"warning definitions order 2"}},

	{name: "no node does a migration", sql: []string{migration("next_at", "now() - interval '3 minutes'")},
		want: []string{"problem migrations 1"}},
	{name: "who does a migration is gone", sql: []string{migration("claimed_by, claimed_at, locked_until",
		"'n', now(), now() - interval '3 minutes'")},
		want: []string{"problem migrations 1"}},
	{name: "a migration waits", sql: []string{migration("held", "'these nodes serve and do not know version 2: n'")},
		want: []string{"warning migrations 1"}},
	{name: "a migration takes long", sql: []string{migration("expected", "5"), `UPDATE pawl.instance_migration
		SET created_at = now() - interval '25 hours'`},
		want: []string{"warning migrations 1"}},
	{name: "a migration has refused instances", sql: []string{migration("rejected, ended_at", "1, now()"),
		`INSERT INTO pawl.instance (tenant, id, workflow, definition, state, version, data, open, chain, created_at, updated_at)
		VALUES ('default', gen_random_uuid(), 'order', 1, 'placed', 1, '{}', true, decode(repeat('00', 32), 'hex'), now(), now())`,
		migration("migrated, ended_at", "1, now()") + "; " + migration("rejected, ended_at", "1, now()")},
		want: []string{"warning migrations 3"}},
	{name: "what a migration has refused has ended", sql: []string{migration("rejected, ended_at", "1, now()")}},

	{name: "nobody does retention", sql: []string{`UPDATE pawl.leadership SET claimed_by = NULL, claimed_at = NULL, locked_until = NULL`},
		want: []string{"warning retention"}},
	{name: "who does retention is gone", sql: []string{`UPDATE pawl.leadership SET locked_until = now() - interval '1 minute'`},
		want: []string{"warning retention"}},
	{name: "old partitions cannot go", sql: []string{`SELECT pawl.make_partition('outbox', now() - interval '70 days')`,
		anEvent("now() - interval '70 days'"), served}, do: func(p *patient) { p.limits.held = 0 },
		want: []string{"warning retention", "warning sinks crm"}},
	{name: "what has expired stays", sql: []string{`INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition,
		instance, version, actor, code, body,
		created_at, finished_at, expires_at) SELECT 'default', 's', 'k', decode(repeat('00', 32), 'hex'), 'succeeded', 'order', 'pay',
			gen_random_uuid(), 1, 'a', 200, '{}',
		now() - interval '2 days', now() - interval '2 days', now() - interval '7 hours'`}, want: []string{"warning expired"}},

	{name: "a command is in flight for long", sql: []string{
		inFlight("processing", "working", "NULL", "now() + interval '1 hour'", "NULL", "NULL", "now() - interval '2 days'", 1, 1)},
		want: []string{"warning in-flight"}},
	{name: "nobody begins what is due", sql: []string{
		inFlight("pending", "working", "now() - interval '10 minutes'", "NULL", "NULL", "NULL", "now()", 0, 1)}, want: []string{"problem due"}},
	{name: "nobody takes over", sql: []string{
		inFlight("processing", "working", "NULL", "now() - interval '10 minutes'", "NULL", "NULL", "now()", 1, 1)},
		want: []string{"problem stale"}},
	{name: "a claim in SQL was left", sql: []string{
		inFlight("processing", "sql", "NULL", "NULL", "now() - interval '2 days'", "NULL", "now()", 1, 1)}, want: []string{"warning lapsed"}},
	{name: "a command waits for an operator", sql: []string{
		inFlight("failed_retryable", "working", "NULL", "NULL", "NULL", "'unknown_outcome'", "now()", 1, 1)}, want: []string{"problem stuck"}},
	{name: "commands fail again and again", sql: []string{
		inFlight("processing", "working", "NULL", "now() + interval '1 hour'", "NULL", "NULL", "now()", 7, 11)},
		want: []string{"warning attempts"}},

	{name: "nobody delivers to a sink", sql: []string{served, `UPDATE pawl.outbox_sink SET locked_until = now() - interval '1 minute'`},
		want: []string{"problem sinks crm"}},
	{name: "a sink is blocked", sql: []string{served, anEvent("now()"),
		`INSERT INTO pawl.outbox_cursor (tenant, sink, position, failure, updated_at) VALUES ('default', 'crm', 0, 'no', now())`},
		want: []string{"problem sinks crm"}},
	{name: "a sink is paused", sql: []string{served, `UPDATE pawl.outbox_sink SET paused_at = now(), paused_by = 'ann'`},
		want: []string{"warning sinks crm"}},
	{name: "a receiver fails", sql: []string{served, `UPDATE pawl.outbox_sink SET failures = 3, failure = 'no', failed_at = now()`},
		want: []string{"warning sinks crm"}},
	{name: "a sink is behind", sql: []string{served, anEvent("now() - interval '10 minutes'")}, want: []string{"warning sinks crm"}},
	{name: "a sink has dead letters", sql: []string{served, `INSERT INTO pawl.outbox_dead (tenant, sink, position, type, ordinal, workflow,
		instance, status, kind,
		failure, attempts, created_at, updated_at) VALUES ('default', 'crm', 1, 't', 0, 'order', gen_random_uuid(), 'waiting', 'permanent', 'no',
			1, now(), now())`},
		want: []string{"warning sinks crm"}},
	{name: "a message was not consumed", sql: []string{`INSERT INTO pawl.inbox_dead (tenant, consumer, message, hash, type, size, body, status,
		code, failure, deliveries,
		created_at, updated_at) VALUES ('default', 'bank', 'm', decode(repeat('00', 32), 'hex'), '', 0, '', 'waiting', 'invalid_payload', 'no', 1,
			now(), now())`},
		want: []string{"warning dead-messages"}},
}

// onePlural matches one thing with a plural noun.
var onePlural = regexp.MustCompile(`(^|[^\d.,])1 ([a-z]+ )?[a-z]{3,}s\b`)

func TestDoctor_NamesProblems(t *testing.T) {
	for _, c := range broken {
		t.Run(c.name, func(t *testing.T) {
			p := newPatient(t, pgtest.DirectURL(t))
			p.exec(c.sql...)
			if c.do != nil {
				c.do(p)
			}
			r := p.examine()
			wants(t, r, c.want...)
			for _, f := range r.Findings {
				assert.True(t, f.Severity == OK || f.Do != "", f)
				assert.NotRegexp(t, onePlural, f.Found)
				assert.NotContains(t, f.Do, "'le'ft'")
			}
		})
	}
}

// The remedy for a primary key works if the key is missing and if it differs.
func TestRemedy_PrimaryKey(t *testing.T) {
	for _, broken := range []string{
		`ALTER TABLE pawl.paused DROP CONSTRAINT paused_pkey`,
		`ALTER TABLE pawl.paused DROP CONSTRAINT paused_pkey, ADD PRIMARY KEY (workflow, tenant)`,
	} {
		p := newPatient(t, pgtest.DirectURL(t))
		p.exec(broken)
		for _, f := range p.examine().Findings {
			if f.About != "paused_pkey" {
				continue
			}
			sql, _, said := strings.Cut(f.Do, ", while no node runs")
			require.Truef(t, said, "%+v", f)
			p.exec(sql)
		}
		wants(t, p.examine())
	}
}

// The statistics must be there first.
func TestDeadRows(t *testing.T) {
	p := newPatient(t, pgtest.DirectURL(t))
	p.limits.deadRows = 1000
	p.exec(`ALTER TABLE pawl.paused SET (autovacuum_vacuum_threshold = 1000000000)`)
	conn, err := pgx.Connect(t.Context(), p.url)
	require.NoError(t, err)
	for _, sql := range []string{`INSERT INTO pawl.paused (tenant, workflow, actor, at) SELECT 'default', 'w' || n, 'x', now()
		FROM generate_series(1, 5000) AS n`,
		`DELETE FROM pawl.paused WHERE workflow LIKE 'w1%' OR workflow LIKE 'w2%'`} {
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	require.NoError(t, conn.Close(t.Context())) // which reports what it has done
	var r *Report
	await.Eventually(t, "they are found", func() bool { r = p.examine(); return len(names(r)) > 0 })
	wants(t, r, "warning dead-rows paused")
}

func TestPooler_QueryMode(t *testing.T) {
	p := newPatient(t, pgtest.BouncerURL(t)) // which has what the doctor is to miss
	p.config.URL = strings.Replace(p.url, "default_query_exec_mode=exec", "default_query_exec_mode=cache_statement", 1)
	wants(t, p.examine(), "problem pooler")
	p.config.URL = p.url
	wants(t, p.examine())
}

// name is that of the database.
func (p *patient) name() string {
	config, err := pgx.ParseConfig(p.url)
	require.NoError(p, err)
	return pgx.Identifier{config.Database}.Sanitize()
}

// database gives a setting to the database, for sessions to come.
func (p *patient) database(setting string) {
	p.Helper()
	p.exec(`ALTER DATABASE ` + p.name() + ` SET ` + setting)
}

// role makes a role that writes the tables, and gives it a setting.
func (p *patient) role(name, setting string) {
	p.Helper()
	p.exec(`CREATE ROLE `+name+` LOGIN`, `GRANT INSERT ON pawl.command TO `+name, `ALTER ROLE `+name+` SET `+setting)
	p.after(`DROP OWNED BY `+name, `DROP ROLE `+name)
}

// server gives the server a setting, until the test is over.
func (p *patient) server(name, value string) {
	p.Helper()
	const holds = "SELECT current_setting($1) = $2"
	var before string
	require.NoError(p, p.pool.QueryRow(p.Context(), "SELECT current_setting($1)", name).Scan(&before))
	p.Cleanup(func() {
		p.do(context.Background(), `ALTER SYSTEM SET `+name+` = '`+before+`'`, `SELECT pg_reload_conf()`)
		await.Eventually(p, "the setting is as it was", func() bool { return p.says(holds, name, before) })
	})
	p.exec(`ALTER SYSTEM SET `+name+` = '`+value+`'`, `SELECT pg_reload_conf()`)
	await.Eventually(p, "the setting holds", func() bool { return p.says(holds, name, value) })
}

// says reports whether a question is answered with yes, even after the end of the test.
func (p *patient) says(sql string, args ...any) (yes bool) {
	err := p.pool.QueryRow(context.Background(), "SELECT coalesce(("+sql+"), false)", args...).Scan(&yes)
	return err == nil && yes
}

// slot makes a replication slot that nobody uses.
func (p *patient) slot() {
	p.Helper()
	p.exec(`SELECT pg_create_physical_replication_slot('left', true)`)
	p.after(`SELECT pg_drop_replication_slot('left')`)
}

// clock moves the clock of this program.
func (p *patient) clock(by time.Duration) {
	p.config.now = func() time.Time { return time.Now().Add(by) }
}

// dropWeeks drops the partitions of the outbox whose name, week, meets a condition.
func dropWeeks(condition string) string {
	return `DO $$ DECLARE week text; BEGIN FOR week IN SELECT c.relname FROM pg_inherits AS h JOIN pg_class AS c ON c.oid = h.inhrelid
	WHERE h.inhparent = 'pawl.outbox'::regclass LOOP IF ` + condition + ` THEN EXECUTE 'DROP TABLE pawl.' || week; END IF; END LOOP; END $$`
}

func hashOfOrder() string {
	w, err := orders()[0].Build()
	if err != nil {
		panic(err)
	}
	return w.Hash
}

// The members that a build would be refused for are named.
func TestDefinitions_ChangedData(t *testing.T) {
	p := newPatient(t, pgtest.DirectURL(t))
	p.exec(`INSERT INTO pawl.definition (workflow, version, hash, spec, members, builds)
VALUES ('order', 1, '` + hashOfOrder() + `', '{}', '{"/gone": "string", "/total": "object"}', '{x}')`)
	r := p.examine()
	wants(t, r, "problem definitions order 1")
	for _, f := range r.Findings {
		if f.Check == "definitions" {
			assert.Contains(t, f.Found, `does not have: "/gone"`)
			assert.Contains(t, f.Found, `not be able to read: "/total"`)
		}
	}
}
