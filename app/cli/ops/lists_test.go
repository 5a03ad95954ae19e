package ops_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// trouble is orders, and commands that need an operator.
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
	assert.Truef(t, err == nil && strings.Count(stdout, "\n") == 2 && strings.Contains(stderr, "there are more"), "%v, %s%s", err, stdout, stderr)
}

// Each flag reaches the API. What it selects there is tested with the API.
func TestOpsLists_Filters(t *testing.T) {
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
