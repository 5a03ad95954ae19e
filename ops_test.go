package pawl

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/transitions"
)

// trouble is orders, and commands that need an operator.
func trouble(t *testing.T) (url string) {
	t.Helper()
	url = pgtest.URL(t)
	orders(t, url, 2)
	script(t, url, `
INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, created_at, phase, attempt, failures,
	revision, request, updated_at, run_at, claimed_by, claimed_at, locked_until, stuck, failure)
SELECT 'default', 'order:' || i.id, k.key, decode(repeat('00', 32), 'hex'), k.status, 'order', 'pay', i.id, 'ann', now() - interval '2 hours', 'working', 7, 6,
	7, '{}', now() - interval '90 minutes', k.run_at, k.node, k.claimed, k.until, k.stuck, k.failure
FROM (SELECT id FROM pawl.instance LIMIT 1) AS i, (VALUES
	('asked', 'failed_retryable', NULL::timestamptz, NULL, NULL::timestamptz, NULL::timestamptz, 'ask_person', E'nobody knows\nwhether it was charged'),
	('late', 'pending', now() - interval '3 minutes', NULL, NULL, NULL, NULL, NULL),
	('stale', 'processing', NULL, 'gone-1-2', now(), now() - interval '50 hours', NULL, NULL)) AS k(key, status, run_at, node, claimed, until, stuck, failure)`)
	return url
}

// script runs statements on a database.
func script(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
}

// opsRun runs a command of an operator that has to succeed.
func opsRun(t *testing.T, url string, args ...string) string {
	t.Helper()
	code, stdout, stderr := run(t.Context(), append([]string{"ops", "--database", url}, args...)...)
	if code != 0 || stderr != "" {
		t.Fatalf("%v: exit %d, %s", args, code, stderr)
	}
	return stdout
}

var times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// wantTable compares a table whose times do not matter.
func wantTable(t *testing.T, got, want string) {
	t.Helper()
	got = times.ReplaceAllString(got, "(a time in UTC)     ")
	var lines []string
	for line := range strings.Lines(got) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	if got = strings.Join(lines, "\n"); got != strings.TrimPrefix(want, "\n") {
		t.Errorf("got\n%s\nwant%s", got, want)
	}
}

func TestOpsKeysShowsHowKeysStand(t *testing.T) {
	url := trouble(t)
	want := `
keys                    count  oldest                age
pending                     1  -                     -
processing                  1  -                     -
failed_retryable            1  -                     -
succeeded                   4  -                     -
failed_final                0  -                     -
expired                     0  -                     -
of those in flight:            (a time in UTC)       2h0m
  scheduled                 0  -                     -
  due                       1  (a time in UTC)       3m0s
  stale                     1  (a time in UTC)       2d2h
  stuck                     1  -                     -
  5 attempts or more        3  -                     -
waiting for retention:         -                     -
  expired                   0  -                     -
  forgotten                 0  -                     -
dead messages               0  -                     -`
	wantTable(t, opsRun(t, url, "keys"), want)
	var k transitions.Keys
	if err := json.Unmarshal([]byte(opsRun(t, url, "keys", "--json", "--tenant", "other")), &k); err != nil || k.Tenant != "other" || k.Due != 0 || len(k.Statuses) != 6 {
		t.Errorf("%+v, %v", k, err)
	}
}

// A node knows besides what it has answered.
func TestOpsKeysOfANodeShowsTheSuppressionRate(t *testing.T) {
	s := service(t)
	for range 4 {
		if code, body := request(t, "POST", s.URL()+"/v1/workflows/order/place", cart); code != 201 {
			t.Fatal(code, body)
		}
	}
	code, stdout, stderr := run(t.Context(), "ops", "keys", "--node", s.URL()+"/")
	want := "\nscope        tenant   attempts  new  replayed  active  mismatched  expired  suppressed\n" +
		"order:place  default         4    1         3       0           0        0      75.0 %\n"
	if code != 0 || !strings.HasSuffix(stdout, want) {
		t.Errorf("exit %d, %s\n%s", code, stderr, stdout)
	}
	code, _, stderr = run(t.Context(), "ops", "keys", "--node", s.URL()+"/elsewhere")
	if code != 1 || stderr != "shop: the node answered 404 Not Found: there is nothing at this address\n" {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

func TestOpsStuckListsWhatWaitsForAPerson(t *testing.T) {
	url := trouble(t)
	got := opsRun(t, url, "stuck")
	got = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`).ReplaceAllString(got, "ID")
	want := `
since                 scope     key    workflow  transition  why         failures  failure
(a time in UTC)       order:ID                             asked  order     pay         ask_person         6  nobody knows whether it was charged`
	got = strings.Join(strings.Fields(times.ReplaceAllString(got, "(a time in UTC)")), " ")
	if want = strings.Join(strings.Fields(want), " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var list []stuckCommand
	if err := json.Unmarshal([]byte(opsRun(t, url, "stuck", "--json", "--workflow", "order")), &list); err != nil || len(list) != 1 || list[0].Key != "asked" || list[0].Status != transitions.FailedRetryable ||
		list[0].Effect != transitions.EffectKey(transitions.Ref{Tenant: transitions.DefaultTenant, Scope: list[0].Scope, Key: "asked"}) {
		t.Errorf("%+v, %v", list, err)
	}
	if got := opsRun(t, url, "stuck", "--json", "--tenant", "other"); got != "[]\n" {
		t.Error(got)
	}
	code, _, stderr := run(t.Context(), "ops", "stuck", "--database", url, "--workflow", "ordre")
	if code != 1 || !strings.Contains(stderr, "workflow_not_found") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}
