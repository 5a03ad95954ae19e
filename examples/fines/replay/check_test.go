package replay_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/audit/verify"
	"github.com/pawlhq/pawl/examples/fines/replay"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/schema"
)

// chains verifies within a transaction.
type chains struct{ table *verify.Verifier }

func (c chains) Verify(ctx context.Context, tenant string, id uuid.UUID) (inspect.Verification, error) {
	return c.table.Verify(ctx, tenant, id, nil)
}

var asItIs = schema.For(schema.Default)

// Whatever is changed behind the engine's back is found.
func TestCheckFindsWhatWasTamperedWith(t *testing.T) {
	t.Parallel()
	e, pool := start(t)
	log := log.First(300)
	report, err := replay.Run(t.Context(), replay.Config{Log: log, Targets: []replay.Target{e}})
	require.NoError(t, err)
	intact := func() {
		t.Helper()
		require.NoError(t, replay.Check(t.Context(), replay.Config{Log: log, Database: pool, Verifier: e.Admin()}, report))
		require.NoError(t, report.Err(), "with nothing changed")
	}
	intact()
	const aCase = `business_key = 'G000003'`
	const itsID = `(SELECT id FROM pawl.instance WHERE ` + aCase + `)`
	for _, tt := range []struct{ name, sql, want string }{
		{"a state", `UPDATE pawl.instance SET state = 'forwarded' WHERE ` + aCase, "the fold says"},
		{"a sum", `UPDATE pawl.instance SET data = '{"amount_cents":1}' WHERE ` + aCase, "has the sums"},
		{"a version", `UPDATE pawl.instance SET version = version + 1 WHERE ` + aCase, "at version"},
		{"a case too many", `INSERT INTO pawl.instance (tenant, id, workflow, definition, business_key, state, version, data,
			attributes, actors, open, chain, created_at, updated_at)
				SELECT tenant, gen_random_uuid(), workflow, definition, 'G999999', state, version, data,
			attributes, actors, open, chain, created_at, updated_at FROM pawl.instance WHERE ` + aCase, "cases in the database"},
		{"an answer", `UPDATE pawl.command SET code = 409, state = NULL, body = '{"code":"guard_refused","detail":"no"}', status = 'failed_final',
			version = NULL
			WHERE key = 'G000003-1'`, "event 1"},
		{"a lost answer", `DELETE FROM pawl.command WHERE key = 'G000003-1'`, "event 1"},
		{"a command too many", `INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, version,
			actor, code, state, body, created_at, finished_at, expires_at) SELECT tenant, 'other', key, fingerprint, status, workflow, transition,
			instance, version, actor, code, state, body, created_at, finished_at, expires_at FROM pawl.command WHERE key = 'G000003-1'`,
			"commands in the database"},
		{"a step of the past", `UPDATE pawl.audit SET to_state = 'paid' WHERE version = 1 AND instance = ` + itsID,
			"the durable trace has the digest"},
		{"a lost transition", `DELETE FROM pawl.audit WHERE version = 1 AND instance = ` + itsID, "audit rows"},
		{"a position", `UPDATE pawl.audit SET position = 1000000 WHERE position = 3`, "audit rows"},
		{"a reason of the past", `UPDATE pawl.audit SET actor = 'nobody' WHERE version = 1 AND instance = ` + itsID, "the chain of"},
		{"a lost event", `DELETE FROM pawl.outbox WHERE position = 3`, "events"},
		{"the event of another", `UPDATE pawl.outbox SET version = 99 WHERE position = 3`, "transitions with their event"},
		{"the head", `UPDATE pawl.log SET head = head + 1`, "the log's head"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tx, err := pool.Begin(t.Context())
			require.NoError(t, err)
			defer func() {
				assert.NoError(t, tx.Rollback(t.Context()))
			}()
			tag, err := tx.Exec(t.Context(), tt.sql)
			require.Truef(t, err == nil && tag.RowsAffected() == 1, "%v %v", tag, err)
			evidence := replay.Config{Log: log, Database: tx, Verifier: chains{verify.New(tx, asItIs)}}
			require.NoError(t, replay.Check(t.Context(), evidence, report))
			d := report.Durable
			assert.Truef(t, d.Differences != 0 && strings.Contains(strings.Join(d.Examples, "\n"), tt.want),
				"%d differences: %q", d.Differences, d.Examples)
			assert.Truef(t, report.Err() != nil && strings.Contains(report.String(), d.Examples[0]),
				"the report does not say so: %v\n%v", report.Err(), report)
		})
	}
	intact()
}
