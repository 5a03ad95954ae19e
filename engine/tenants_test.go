package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
)

func TestGroup_StatementCount(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, "CREATE TABLE public.written (what text, by xid8)")
	exec(t, pool, `CREATE FUNCTION public.written() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO public.written VALUES (concat_ws(' ', TG_OP, TG_TABLE_NAME), pg_current_xact_id());
		RETURN NULL; END $$`)
	for _, table := range []string{"instance", "command", "audit", "outbox"} {
		exec(t, pool, "CREATE TRIGGER written AFTER INSERT OR UPDATE ON pawl."+table+" FOR EACH STATEMENT EXECUTE FUNCTION public.written()")
	}
	for _, apart := range []bool{false, true} {
		e := newEngine(t, pool, func(c *engine.Config) { c.Pipeline.Committers, c.Pipeline.OneTenantPerStatement = 1, apart })
		group := func(transition, payload string, tenants int) string {
			var cs []transitions.Command
			for n := 1; n <= 16; n++ {
				cs = append(cs, transitions.Command{Tenant: fmt.Sprint(apart, tenants, n%tenants), Workflow: "loan", Transition: transition,
					BusinessKey: fmt.Sprint(n), Key: transition + fmt.Sprint(n), Payload: fmt.Appendf(nil, payload, n)})
			}
			exec(t, pool, "TRUNCATE public.written")
			for _, r := range e.SubmitMany(t.Context(), cs) {
				require.Truef(t, r.Err == nil && !r.Receipt.Refused(), "%+v, %v", r.Receipt, r.Err)
			}
			// Only groups write audit rows; the poller for due commands writes too.
			return query[string](t, pool, `SELECT string_agg(what, ', ') FROM public.written
				WHERE by IN (SELECT by FROM public.written WHERE what = 'INSERT audit')`)
		}
		for _, c := range [][2]string{{"apply", `{"number":"%d","amount":50}`}, {"pay", `{"amount":%d}`}} {
			one, many := group(c[0], c[1], 1), group(c[0], c[1], 16)
			if apart { // nothing is saved
				one = strings.TrimSuffix(strings.Repeat(one+", ", 16), ", ")
			}
			sorted := func(list string) []string { return slices.Sorted(slices.Values(strings.Split(list, ", "))) }
			assert.Truef(t, slices.Equal(sorted(one), sorted(many)) && strings.Count(many, "outbox") != 0,
				"%s, one tenant for each statement: %v: %s for one tenant, %s for 16", c[0], apart, one, many)
		}
	}
}

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

func TestImmediateConstraints_KeepEvent(t *testing.T) {
	t.Parallel()
	pool, e := started(t)
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "SET CONSTRAINTS ALL IMMEDIATE"); err != nil {
			return err
		}
		submitTx(t, e, tx, transitions.Command{Workflow: "loan", Transition: "apply", Key: "1", Payload: []byte(`{"number":"1","amount":5}`)})
		submitTx(t, e, tx, transitions.Command{Workflow: "loan", Transition: "pay", BusinessKey: "1", Key: "2", Payload: []byte(`{"amount":5}`)})
		return nil
	})
	require.NoError(t, err)
	f := e.Read().Follow("", 0)
	defer f.Close()
	batch, err := f.Poll(t.Context())
	assert.Truef(t, err == nil && len(batch.Events) == 3 && batch.Last == 2,
		"%d events up to %d, %v; want 3 up to 2", len(batch.Events), batch.Last, err)
}
