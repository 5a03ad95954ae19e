package ops_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/inspect"
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

func TestOpsKeysShowsHowKeysStand(t *testing.T) {
	p := trouble(t)
	today := regexp.MustCompile(`since [0-9-]{10}`)
	wantTable(t, today.ReplaceAllString(p.run("keys"), "since (today)"), `
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
order:place   default         2    2         0       0           0        0       0.0 %`)
	var k inspect.Keys
	err := json.Unmarshal([]byte(p.run("keys -o json --tenant other")), &k)
	assert.Truef(t, err == nil && k.Tenant == "other" && k.Due == 0 && len(k.Statuses) == 6, "%+v, %v", k, err)
}
