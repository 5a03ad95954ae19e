package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// orders places n orders and cancels them, and returns their ids.
func orders(t *testing.T, url string, n int) (ids []string) {
	t.Helper()
	onOrders(t, url, nil, func(e *engine.Engine) { ids = cancelled(t, e, 0, n) })
	return ids
}

// onOrders lets a node that knows orders work for as long as do takes.
func onOrders(t *testing.T, url string, change func(*engine.Config), do func(*engine.Engine)) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	defer pool.Close()
	_, err = schema.Migrate(t.Context(), pool, schema.Default)
	require.NoError(t, err)
	c := engine.Config{Pool: pool, Workflows: []workflow.Source{order.Workflow(provider.New())}}
	if change != nil {
		change(&c)
	}
	e, err := engine.New(c)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context()))
	defer e.Stop(t.Context())
	do(e)
}

// cancelled places the orders from one number to another, cancels them, and returns
// their ids.
func cancelled(t *testing.T, e *engine.Engine, from, to int) []string {
	t.Helper()
	var commands []transitions.Command
	for i := from; i < to; i++ {
		commands = append(commands,
			transitions.Command{Workflow: "order", Transition: "place", Key: fmt.Sprint("place-", i),
				Payload: fmt.Appendf(nil, `{"customer":"c","cart":"%d","total":1,"currency":"EUR"}`, i)},
			transitions.Command{Workflow: "order", Transition: "cancel", Key: "cancel", BusinessKey: fmt.Sprint("c:", i),
				Payload: []byte(`{"reason":"out of stock"}`)})
	}
	var ids []string
	for i, r := range e.SubmitMany(t.Context(), commands) {
		require.Truef(t, r.Err == nil && !r.Receipt.Refused(), "%v %v %v", i, r.Err, string(r.Receipt.Body))
		if i%2 == 0 {
			ids = append(ids, r.Receipt.Instance.String())
		}
	}
	return ids
}

func tamper(t *testing.T, url, sql string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	tag, err := conn.Exec(t.Context(), sql, args...)
	require.Truef(t, err == nil && tag.RowsAffected() == 1, "%v %v", tag, err)
}

func TestVerifyNamesTheFirstBrokenRow(t *testing.T) {
	url := pgtest.URL(t)
	ids := orders(t, url, 3)
	code, stdout, stderr := run(t.Context(), "verify", "--database", url)
	require.Truef(t, code == 0 && stdout == "intact: 6 rows of 3 instances of tenant default\n" && stderr == "",
		"exit %d, %q, %q", code, stdout, stderr)

	tamper(t, url, `UPDATE pawl.audit SET actor = 'x' WHERE instance = $1 AND version = 2`, ids[1])
	broken := "instance " + ids[1] + ", version 2: the row was changed, or the one before it, or the instance before this transition\n"
	code, stdout, stderr = run(t.Context(), "verify", "--database", url)
	assert.Truef(t, code == 1 && stdout == "broken: "+broken && stderr == "shop: 1 of 3 chains broken, first "+broken,
		"exit %d, %q, %q", code, stdout, stderr)
	code, _, stderr = run(t.Context(), "verify", "--database", url, "--instance", ids[1])
	assert.Truef(t, code == 1 && strings.Contains(stderr, broken), "exit %d, %q", code, stderr)
	code, stdout, stderr = run(t.Context(), "verify", "--database", url, "-o", "json")
	assert.Truef(t, code == 1 && strings.Contains(stdout, `"intact": false`) && strings.Contains(stdout, ids[1]) &&
		stderr == "shop: 1 of 3 chains broken, first "+broken,
		"exit %d, %q, %q", code, stdout, stderr)
	code, stdout, _ = run(t.Context(), "verify", "--database", url, "--instance", ids[0])
	assert.Truef(t, code == 0 && stdout == "intact: 2 rows of 1 instances of tenant default\n", "exit %d, %q", code, stdout)
}

// The audit chain does not depend on rows that retention removes: events, answers, tombstones.
func TestVerifyNeedsNothingThatRetentionRemoves(t *testing.T) {
	url := pgtest.URL(t)
	const n = 20
	var ids []string
	short := func(c *engine.Config) {
		c.Workflows = []workflow.Source{
			order.Workflow(provider.New()).Keep(workflow.Horizons{Replay: time.Hour, Tombstone: time.Hour, History: workflow.Forever}),
		}
	}
	past := func(c *engine.Config) {
		short(c)
		c.Retention.Off, c.Now = true, func() time.Time { return time.Now().Add(-100 * 24 * time.Hour) }
	}
	onOrders(t, url, past, func(e *engine.Engine) { ids = cancelled(t, e, 0, n) })
	count := func(table string) (count int) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), url)
		require.NoError(t, err)
		defer func() { _ = conn.Close(t.Context()) }()
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&count))
		return count
	}
	require.Equal(t, 2*n, count("pawl.command"), "commands")
	onOrders(t, url, short, func(e *engine.Engine) {
		await.Eventually(t, "retention has removed what is past its time", func() bool {
			s := e.Admin().RetentionStats()
			return s.Dropped > 0 && s.Archived >= 2*n && s.Forgotten >= 2*n
		})
		cancelled(t, e, n, n+1) // the chain of the log goes on
	})
	if outbox, commands, history := count("pawl.outbox"), count("pawl.command"), count("pawl.command_history"); outbox != 2 || commands != 2 ||
		history != 2*n {
		t.Errorf("%d events, %d commands, %d in the history", outbox, commands, history)
	}
	code, stdout, stderr := run(t.Context(), "verify", "--database", url)
	assert.Truef(t, code == 0 && stdout == fmt.Sprintf("intact: %d rows of %d instances of tenant default\n", 2*n+2, n+1),
		"exit %d, %q, %q", code, stdout, stderr)
	tamper(t, url, `UPDATE pawl.audit SET actor = 'x' WHERE instance = $1 AND version = 2`, ids[1])
	code, stdout, _ = run(t.Context(), "verify", "--database", url)
	assert.Truef(t, code == 1 && strings.Contains(stdout, ids[1]), "exit %d, %q", code, stdout)
}

func TestVerify_Failures(t *testing.T) {
	url := pgtest.URL(t)
	orders(t, url, 1)
	tamper(t, url, `UPDATE pawl.log SET head = 3`)
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{nil, 1, "broken: the log: the log's head is 3", ""},
		{[]string{"--tenant", "nope"}, 1, "", "shop: no such tenant: nothing to verify: tenant \"nope\" has no transitions in this database\n"},
		{[]string{"--instance", "00000000-0000-8000-8000-000000000000"}, 1, "", "instance_not_found"},
		{[]string{"--instance", ""}, 2, "", "--instance is not a UUID"},
		{[]string{"--instance", "00000000-0000-0000-0000-000000000000"}, 2, "", "--instance is not a UUID"},
	} {
		code, stdout, stderr := run(t.Context(), append([]string{"verify", "--database", url}, c.args...)...)
		assert.Equal(t, c.code, code, c.args)
		assert.Truef(t, strings.HasPrefix(stdout, c.stdout) && (c.stdout != "" || stdout == ""), "%s: %q", c.args, stdout)
		assert.Contains(t, stderr, c.stderr, c.args)
	}
}
