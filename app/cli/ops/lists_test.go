package ops_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/workflow"
)

// trouble has orders, and commands that need an operator.
func trouble(t *testing.T) *program {
	t.Helper()
	p := newProgram(t)
	p.orders(2)
	p.script(`
INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, created_at, phase, attempt,
	failures,
	revision, request, updated_at, run_at, claimed_by, claimed_at, locked_until, stuck, failure)
SELECT 'default', 'order:' || i.id, k.key, decode(repeat('00', 32), 'hex'), k.status, 'order', 'pay', i.id, 'ann',
	now() - interval '2 hours', 'working', 7, 6,
	7, '{}', now() - interval '90 minutes', k.run_at, k.node, k.claimed, k.until, k.stuck, k.failure
FROM (SELECT id FROM pawl.instance LIMIT 1) AS i, (VALUES
	('asked', 'failed_retryable', NULL::timestamptz, NULL, NULL::timestamptz, NULL::timestamptz, 'ask_person',
		E'nobody knows\nwhether it was charged'),
	('late', 'pending', now() - interval '3 hours', NULL, NULL, NULL, NULL, NULL),
	('stale', 'processing', NULL, 'gone-1-2', now(), now() - interval '50 hours', NULL, NULL)) AS k(key, status, run_at, node, claimed, until,
		stuck, failure)`)
	return p
}

func TestOpsLists_Tables(t *testing.T) {
	t.Parallel()
	p := trouble(t)
	today := regexp.MustCompile(`since [0-9-]{10}`)
	for args, want := range map[string]string{
		"counts": `
workflow  version  state      open   count
order           1  cancelled  false      2
all                                      2`,
		"keys": `
keys                    count  oldest                age
pending                     1  -                     -
processing                  1  -                     -
failed_retryable            1  -                     -
succeeded                   4  -                     -
failed_final                0  -                     -
expired                     0  -                     -
of those in flight:            (a time in UTC)       2h0m
  scheduled                 0  -                     -
  due                       1  (a time in UTC)       3h0m
  stale                     1  (a time in UTC)       2d2h
  lapsed                    0  -                     -
  stuck                     1  -                     -
  5 attempts or more        3  -                     -
waiting for retention:         -                     -
  expired                   0  -                     -
  forgotten                 0  -                     -
dead messages               0  -                     -

attempts at all nodes since (today):
scope         tenant   attempts  new  replayed  active  mismatched  expired  suppressed
order:cancel  default         2    2         0       0           0        0       0.0 %
order:place   default         2    2         0       0           0        0       0.0 %`,
		"stuck --workflow order --business-key c:0": `
since                 workflow  business key  transition  scope                                       key    why         failures  failure
(a time in UTC)       order     c:0           pay         order:(its id)                              asked  ask_person         6  nobody knows whether it was charged`,
	} {
		wantTable(t, today.ReplaceAllString(p.run(args), "since (today)"), want)
	}
	stdout, stderr, err := p.try("commands --limit 1")
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(stdout, "\n"), stdout)
	assert.Contains(t, stderr, "there are more")
}

// Each flag reaches the API. What it selects there is tested with the API.
func TestOpsLists_Filters(t *testing.T) {
	t.Parallel()
	p := trouble(t)
	for args, rows := range map[string]int{
		"counts --workflow order --definition 1 --state cancelled --state shipped": 2, "counts --open": 1, "counts --open=false": 2,
		"counts --tenant other": 1, "commands --status stuck --workflow order": 1, "commands --status lapsed": 0,
		"commands --actor ann": 3, "commands --actor bob": 0, "commands --proof none": 0, "stuck --tenant other": 0,
		"stuck --workflow order --business-key c:1": 0, "stuck --instance 01936b0e-0000-7000-8000-000000000001": 0,
	} {
		assert.Equal(t, rows, strings.Count(p.run(args), "\n")-1, args)
	}
	for args, want := range map[string]string{
		"commands --status succeeded": "--status is one of pending", "counts --definition 0": "--definition",
		"counts --definition 5000000000": "definition", "counts --open=maybe": "--open", "counts orders": "orders",
		"stuck --business-key c:0": "--business-key needs --workflow", "stuck --instance c:0": "--instance is not a UUID",
		"counts --workflow ordre": "workflow_not_found", "commands --workflow ordre": "workflow_not_found",
		"stuck --workflow ordre": "workflow_not_found",
	} {
		p.fails(args, want)
	}
}

func TestOpsRetention_NodeAndPartitions(t *testing.T) {
	t.Parallel()
	p := behind(t)
	p.script("UPDATE pawl.leadership SET claimed_by = NULL, claimed_at = NULL, locked_until = NULL")
	p.has("retention", "node   -\n", "until  -\n")
	p.script(`UPDATE pawl.leadership SET claimed_by = 'n-1', claimed_at = now(), locked_until = '2040-01-02T03:04:05Z'
		WHERE name = 'retention'`)
	p.has("retention", "node   n-1\n", "until  2040-01-02T03:04:05Z, unless it goes on\n", "next   20", "partition  ", "outbox_",
		"command_history_", "  in use\n", "keeps  events for 720h0m0s, it is assumed; --keep-events where the nodes have another\n")
	r := read[inspect.Retention](p, "retention")
	assert.NotEmpty(t, r.Partitions)
	p.script("SELECT pawl.make_partition('outbox', now() - interval '21 days')")
	assert.NotContains(t, p.run("retention"), "to be dropped")
	p.has("retention --keep-events 168h", "  to be dropped\n", "keeps  events for 168h0m0s\n")
	p.fails("retention --keep-events 23h", "--keep-events 23h0m0s is less than a day")
}

// Text that PostgreSQL cannot store is a usage error, not an outage of the database.
func TestOps_RefusesInvalidText(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	for _, args := range [][]string{
		{"counts", "--state"}, {"keys", "--tenant"}, {"show"}, {"abandon", "scope"}, {"abandon", "scope", "key", "--reason"},
		{"abandon", "scope", "key", "--by"}, {"pause", "bill", "--by"}, {"sinks", "move", "s", "--to", "1", "--reason"}, {"inbox", "raw", "bank"},
		{"inbox", "discard", "bank", "id", "--hash"},
	} {
		for _, text := range []string{"a\xff", "a\x00"} {
			_, _, err := p.try(args[0], append(args[1:len(args):len(args)], text)...)
			_, mistake := errors.AsType[*usage.Error](err)
			if code := workflow.CodeOf(err); err == nil || !mistake && (code == workflow.Unavailable || code == workflow.Internal || code == "") {
				t.Errorf("%q %q: %v", args, text, err)
			}
		}
	}
}
