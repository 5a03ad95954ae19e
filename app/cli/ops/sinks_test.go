package ops_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
)

// behind has orders, and a sink that has received two of their four transitions and has one dead letter.
func behind(t *testing.T) *program {
	t.Helper()
	p := newProgram(t)
	p.orders(2)
	p.script(`
INSERT INTO pawl.outbox_sink (name, claimed_by, claimed_at, locked_until, failures, failure, failed_at, delivered, failed, parked)
VALUES ('crm', 'gone-1-2', now() - interval '1 day', now() - interval '1 hour', 2, 'no route to the host', now(), 2, 20, 1);
INSERT INTO pawl.outbox_cursor (tenant, sink, position, updated_at) VALUES ('default', 'crm', 3, now());
INSERT INTO pawl.outbox_dead (tenant, sink, position, type, ordinal, workflow, instance, status, kind, failure, attempts, created_at,
	updated_at)
SELECT tenant, 'crm', position, type, ordinal, workflow, instance, 'waiting', 'permanent', '422 what is that?', 15, now(), now()
FROM pawl.outbox WHERE position = 2;
SELECT pawl.make_partition('outbox', now() - interval '61 minutes'); -- which may be last week
UPDATE pawl.outbox SET at = now() - interval '61 minutes'`)
	return p
}

func TestOpsSinks_Tables(t *testing.T) {
	t.Parallel()
	p := behind(t)
	wantTable(t, p.run("sinks list"), `
sink  state             lag  tenants  dead  aside  delivered  failed  parked  age   failure
crm   its node is gone    1        1     1      0          2      20       1  1h1m  no route to the host`)
	p.has("sinks show crm", "state     its node is gone\n", "node      gone-1-2\n", " no route to the host\n",
		"default         3     4    1  1h1m  -        -\n")
	wantTable(t, p.run("sinks dead crm"), `
since                 tenant   position  type          business key  instance                              status   kind       attempts  failure
(a time in UTC)       default         2  order.cancel  c:0           (its id)                              waiting  permanent        15  422 what is that?`)
	list := read[api.SinkList](p, "sinks list --tenant other").Sinks
	require.Len(t, list, 1)
	assert.Zero(t, list[0].Lag)
	p.fails("sinks show mail", `there is no sink "mail"`)
}

func TestOpsSinks_Actions(t *testing.T) {
	t.Parallel()
	p := behind(t)
	for _, step := range []struct{ args, says, then string }{
		{"pause crm --by ann --reason upgrade", "crm: paused\n", `"reason": "upgrade"`},
		{"resume crm", "crm: resumed\n", `"failures": 2`},
		{"redrive crm --type order.place", "crm: 0 dead letters redriven\n", `"dead_letters": 1`},
		{"redrive crm --tenant default --workflow order --business-key c:1", "crm: 0 dead letters redriven\n", `"dead_letters": 1`},
		{"redrive crm --tenant default --workflow order --business-key c:0 --by ann", "crm: 1 dead letter redriven\n", `"aside": 1`},
		{"skip crm --all --status queued --reason obsolete", "crm: 1 dead letter skipped\n", `"aside": 0`},
		{"move crm --to 4 --reason obsolete", "crm: moved to 4 in the log of default\n", `"lag": 0`},
		{"move crm --to 0", "crm: moved to 0 in the log of default\n", `"lag": 4`},
	} {
		assert.Equal(t, step.says, p.run("sinks "+step.args), step.args)
		shown := p.run("sinks show crm -o json")
		assert.Contains(t, shown, step.then, step.args)
		assert.Equal(t, strings.HasPrefix(step.args, "pause"), strings.Contains(shown, `"paused"`), step.args)
	}
	p.fails("sinks move crm --to 4", "a reason is required")
	p.fails("sinks skip crm --all", "a reason is required")
	p.fails("sinks skip crm --workflow order --business-key c:0", "--business-key needs --tenant")
	assert.Equal(t, "crm: forgotten\n", p.run("sinks forget crm"))
	assert.NotContains(t, p.run("sinks list"), "crm")
}
