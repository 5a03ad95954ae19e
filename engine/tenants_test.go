package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Nodes of both kinds work on the same tenants, in any order, and lose against each other.
func TestPositions_ManyTenants(t *testing.T) {
	t.Parallel()
	const tenants, rounds, size = 8, 12, 16
	pool := database(t)
	var work sync.WaitGroup
	for node := range 2 {
		e := newEngine(t, pool, func(c *engine.Config) { c.Pipeline.OneTenantPerStatement = node == 1 })
		for caller := range 3 {
			random := rand.New(rand.NewPCG(uint64(caller), 7)) // the same commands on both nodes
			work.Go(func() {
				for round := range rounds {
					var cs []transitions.Command
					for range size {
						tenant, n := fmt.Sprint("t", random.IntN(tenants)), random.IntN(20)
						number := fmt.Sprintf("%d-%d-%d", caller, round, n)
						cs = append(cs, transitions.Command{Tenant: tenant, Workflow: "loan", Transition: "apply", Key: number,
							Payload: fmt.Appendf(nil, `{"number":"%s","amount":5}`, number)},
							transitions.Command{Tenant: tenant, Workflow: "loan", Transition: "pay", BusinessKey: number, Key: "pay",
								Payload: fmt.Appendf(nil, `{"amount":%d}`, 1+n%2*9)}) // some are refused
					}
					for _, r := range e.SubmitMany(t.Context(), cs) {
						assert.NoError(t, r.Err)
					}
				}
			})
		}
	}
	work.Wait()
	stray := query[int64](t, pool, `SELECT count(*) FROM pawl.log l CROSS JOIN LATERAL (
		SELECT count(*) AS rows, count(DISTINCT position) AS places, min(position) AS first, max(position) AS last
		FROM pawl.audit a WHERE a.tenant = l.tenant) AS a WHERE (l.head, l.head, 1, l.head) <> (a.rows, a.places, a.first, a.last)`)
	assert.Equal(t, int64(0), stray, "the logs of tenants have a gap or a duplicate")
	stray = query[int64](t, pool, `SELECT count(*) FROM pawl.audit a WHERE NOT EXISTS (SELECT FROM pawl.outbox o
		WHERE o.tenant = a.tenant AND o.position = a.position AND o.instance = a.instance AND o.version = a.version)`)
	assert.Equal(t, int64(0), stray, "transitions have no event at their position")
}

// While the first tenant's log is locked no transaction has locked the second's.
func TestLogsAreLockedInTheOrderOfTheirTenants(t *testing.T) {
	t.Parallel()
	pool, e := started(t, func(c *engine.Config) { c.Pipeline.LockWait = time.Hour })
	both := func(first, second, key string) []transitions.Command {
		var cs []transitions.Command
		for _, tenant := range []string{first, second} {
			cs = append(cs, transitions.Command{Tenant: tenant, Workflow: "loan", Transition: "apply", Key: key,
				Payload: fmt.Appendf(nil, `{"number":"%s"}`, key)})
		}
		return cs
	}
	for _, r := range e.SubmitMany(t.Context(), both("a", "b", "0")) {
		require.NoError(t, r.Err)
	}
	tx := begin(t, pool)
	require.NoError(t, errOf(tx.Exec(t.Context(), "SELECT FROM pawl.log WHERE tenant = 'a' FOR UPDATE")))
	answers := make(chan []transitions.Reply, 2)
	for _, cs := range [][]transitions.Command{both("a", "b", "1"), both("b", "a", "2")} {
		go func() { answers <- e.SubmitMany(t.Context(), cs) }()
	}
	pgtest.WaitBlocked(t, pool, "pawl.advance")
	// Nobody has it for longer than a commit takes.
	require.NoError(t, errOf(tx.Exec(t.Context(), "SET LOCAL lock_timeout = '300ms'")))
	require.NoError(t, errOf(tx.Exec(t.Context(), "SELECT FROM pawl.log WHERE tenant = 'b' FOR UPDATE")), "somebody waits for a and has b")
	commitTx(t, tx)
	for range 2 {
		for _, r := range <-answers {
			assert.Truef(t, r.Err == nil && r.Receipt.Status == 201, "status %d, %v", r.Receipt.Status, r.Err)
		}
	}
}

// frail is a payload whose own code may fail.
type frail struct {
	Text frailText `json:"text"`
}

type frailText string

func (*frailText) UnmarshalText([]byte) error {
	if frailBroken.Load() {
		panic("the payload's own code")
	}
	return nil
}

var frailBroken atomic.Bool

// After a retryable failure, later commands of the same instance are not executed until the list is submitted again; commands of other
// instances are.
func TestManyStopAtACommandThatFailsForNow(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	double := func(_ *workflow.Call, d *loan, _ payment) error { d.Owed *= 2; return nil }
	flaky := func() {
		if broken.Load() {
			panic("a dependency is not there yet")
		}
	}
	ways := []workflow.Part[loan]{
		workflow.On("action", workflow.From("open"), workflow.Stay, func(c *workflow.Call, d *loan, p payment) error {
			flaky()
			return double(c, d, p)
		}),
		engine.InTx(workflow.On("sql", workflow.From("open"), workflow.Stay, double), func(context.Context, pgx.Tx, loan, payment) error {
			flaky()
			return nil
		}),
		workflow.On("payload", workflow.From("open"), workflow.Stay, func(c *workflow.Call, d *loan, _ frail) error {
			return double(c, d, payment{})
		}),
	}
	pool, e := started(t, func(c *engine.Config) { c.Workflows = []workflow.Source{loans(1, ways...)} })
	for _, way := range []string{"action", "sql", "payload"} {
		number := "L-" + way
		submit(t, e, applied(number, 100))
		submit(t, e, applied("other "+number, 100))
		first := on(way, number, "1 "+way, 1, "")
		if way == "payload" {
			first.Payload = []byte(`{"text":"x"}`)
		}
		list := []transitions.Command{first, on("pay", number, "2 "+way, 10, ""), on("pay", "other "+number, "3 "+way, 10, ""),
			on("pay", number, "4 "+way, 10, "")}
		broken.Store(true)
		frailBroken.Store(true)
		for i, r := range e.SubmitMany(t.Context(), list) {
			switch {
			case i == 2:
				wantCode(t, r.Err, "")
			case !workflow.CodeOf(r.Err).Info().Retry || r.Err == nil:
				t.Errorf("%s: number %d: %+v, %v", way, i, r.Receipt, r.Err)
			case i > 0 && (workflow.CodeOf(r.Err) != workflow.Internal || !strings.Contains(r.Err.Error(), `"1 `+way+`"`)):
				t.Errorf("%s: number %d does not name the first: %v", way, i, r.Err)
			}
		}
		broken.Store(false)
		frailBroken.Store(false)
		for i, r := range e.SubmitMany(t.Context(), list) {
			assert.Truef(t, r.Err == nil && !r.Receipt.Refused(), "%s, again: number %d: %+v, %v", way, i, r.Receipt, r.Err)
		}
		assert.Equalf(t, "180", query[string](t, pool, "SELECT data->>'owed' FROM pawl.instance WHERE business_key = $1", number),
			"%s is owed; in the order that was asked it is 180", way)
	}
}

// A pause is an error for now too.
func TestManyStopAtAPausedWorkflow(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t))
	submit(t, e, applied("L-1", 100))
	require.NoError(t, e.Admin().PauseWorkflow(t.Context(), "", "loan", "ann", "a break"))
	list := []transitions.Command{on("pay", "L-1", "1", 1, ""), on("pay", "L-1", "2", 2, "")}
	for i, r := range e.SubmitMany(t.Context(), list) {
		wantCode(t, r.Err, workflow.Paused)
		assert.Equalf(t, (i == 1), strings.Contains(r.Err.Error(), `"1"`), "number %d: %v", i, r.Err)
	}
}
