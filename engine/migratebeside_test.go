package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// A migration beside whoever else changes the same instances.

type raise struct {
	Claim uuid.UUID `json:"claim"`
	Sum   int       `json:"sum"`
}

func onRaise(m workflow.Message, r raise) (workflow.Address, filed, error) {
	return workflow.Address{Instance: r.Claim}, filed{Sum: r.Sum}, nil
}

// counted is a version of a claim that counts in units: what is filed, what messages raise it by, and 7 when it is paid.
func counted(version, unit int, open, paying workflow.State, pay func(context.Context) error, plans ...workflow.Plan[claim1],
) *workflow.Definition[claim1] {
	add := func(_ *workflow.Call, d *claim1, p filed) error { d.Sum += unit * p.Sum; return nil }
	return workflow.Define("claim", version, workflow.Start("file", open, add),
		workflow.On("raise", workflow.From(open, paying, "paid"), workflow.Stay, add).Receive("bank", workflow.JSON(onRaise)),
		workflow.Do("pay", workflow.From(open), paying, "paid", claimWork[claim1](pay),
			func(_ *workflow.Call, d *claim1, n int) error { d.Sum += unit * n; return nil }).OrElse(open, nothing[claim1, workflow.Failure]),
		workflow.On("end", workflow.From("paid"), "over", nothing[claim1, workflow.None])).Final("over").Migrate(plans...)
}

// Messages come, and activities end, when the page of their instances is written and none of it is migrated. Each is done once, before or
// after, by two nodes.
func TestMessagesAndResultsComeBesideAMigration(t *testing.T) {
	t.Parallel()
	pool := database(t)
	pay, going, goOn := heldWork()
	sources := []workflow.Source{counted(1, 1, "open", "paying", pay), counted(2, 100, "checking", "settling", pay,
		workflow.FromVersion(1, func(old claim1) (claim1, error) { return claim1{Sum: 100 * old.Sum}, nil }).
			State("open", "checking").Carry("pay"))}
	nodes := []*engine.Engine{bothClaims(t, pool, sources...), newEngine(t, pool, running(sources...))}
	const all = 8
	var ids []uuid.UUID
	for i := range all {
		ids = append(ids, file(t, nodes[0], "", fmt.Sprint(i), i).Instance)
		if i%2 == 0 {
			submit(t, nodes[i/2%2], onClaim(ids[i], "pay", "p"))
			<-going
		}
	}
	tx := begin(t, pool)
	_, err := tx.Exec(t.Context(), "SELECT FROM pawl.instance ORDER BY id FOR UPDATE")
	require.NoError(t, err)
	m := begun(t, nodes[0], 1000)
	eventually(t, "the page is written", func() bool {
		return query[bool](t, pool, "SELECT page IS NOT NULL FROM pawl.instance_migration WHERE id = $1", m.ID)
	})
	message := func(i, n int) transitions.Message {
		return transitions.Message{Consumer: "bank", ID: fmt.Sprint(i, "-", n), Body: fmt.Appendf(nil, `{"claim":%q,"sum":%d}`, ids[i], 10+n)}
	}
	answers := make([][2]transitions.Receipt, all)
	var work sync.WaitGroup
	for i := range all {
		for n := range 2 {
			work.Go(func() { answers[i][n] = consumed(t, nodes[(i+n)%2], message(i, n)) })
		}
	}
	close(goOn)
	rollback(t, tx)
	work.Wait()
	m = migrated(t, nodes[0], m.ID)
	assert.Equalf(t, int64(all), m.Migrated, "%+v", m)
	for i := range all {
		state, sum := workflow.State("checking"), i+10+11
		if i%2 == 0 {
			state, sum = "paid", sum+7
		}
		eventually(t, "it has ended", func() bool {
			inst, err := nodes[0].Read().Instance(t.Context(), "", ids[i])
			return err == nil && inst.Links.InFlight == nil
		})
		inst, err := nodes[0].Read().Instance(t.Context(), "", ids[i])
		if err != nil || inst.Definition != 2 || inst.State != state || string(inst.Data) != fmt.Sprintf(`{"sum":%d}`, 100*sum) {
			t.Errorf("%d: %+v, %v; want %s, %d", i, inst, err, state, 100*sum)
		}
		for n := range 2 {
			if again := consumed(t, nodes[(i+n+1)%2], message(i, n)); !again.Replayed || string(again.Body) != string(answers[i][n].Body) {
				t.Errorf("%s, then %s", answers[i][n].Body, again.Body)
			}
		}
	}
	wantDead(t, nodes[0])
	wantIntact(t, nodes[0], "")
}

// mourners is a version of a parent that counts how many of its three children have ended; the new version calls its state otherwise.
func mourners(version int, state workflow.State, plans ...workflow.Plan[letterData]) *workflow.Definition[letterData] {
	return workflow.Define("parent", version,
		workflow.Start("begin", state, func(c *workflow.Call, _ *letterData, _ workflow.None) error {
			for range 3 {
				c.Spawn(workflow.Child{Workflow: "child", Transition: "born", End: "mourn"})
			}
			return nil
		}),
		workflow.On("mourn", workflow.From(state), workflow.Stay,
			func(_ *workflow.Call, d *letterData, _ workflow.Ended[letterData]) error { d.Texts++; return nil }),
		workflow.On("end", workflow.From(state), "ended", nothing[letterData, workflow.None])).Final("ended").Migrate(plans...)
}

func mourned(version int, state workflow.State, plans ...workflow.Plan[letterData]) *workflow.Definition[letterData] {
	return workflow.Define("child", version, workflow.Start("born", state, nothing[letterData, workflow.None]),
		workflow.On("die", workflow.From(state), "dead", nothing[letterData, workflow.None])).Final("dead").Migrate(plans...)
}

// Parents and children go to another version at the same time, while children end. Each end is told its parent once.
func TestMigration_ChildCompletions(t *testing.T) {
	t.Parallel()
	pool := database(t)
	same := func() *workflow.FromVersionPlan[letterData, letterData] {
		return workflow.FromVersion[letterData, letterData](1, nil).State("here", "there")
	}
	sources := []workflow.Source{mourners(1, "here"), mourners(2, "there", same()), mourned(1, "here"), mourned(2, "there", same())}
	nodes := []*engine.Engine{newEngine(t, pool, running(sources...)), newEngine(t, pool, running(sources...))}
	for _, name := range []string{"parent", "child"} {
		for _, e := range nodes {
			require.NoError(t, e.Admin().BeginVersion(t.Context(), name, 1, ""))
		}
	}
	const all = 15
	for i := range all {
		submit(t, nodes[i%2], transitions.Command{Workflow: "parent", Transition: "begin", Key: fmt.Sprint(i)})
	}
	children := query[[]uuid.UUID](t, pool, "SELECT array_agg(id) FROM pawl.instance WHERE workflow = 'child'")
	var work sync.WaitGroup
	for n, e := range nodes {
		work.Go(func() {
			for i, id := range children {
				if i%2 == n {
					submit(t, e, transitions.Command{Workflow: "child", Transition: "die", Key: "d", Instance: id})
				}
			}
		})
	}
	var asked []int64
	for _, name := range []string{"child", "parent"} {
		m, err := nodes[0].Admin().MigrateInstances(t.Context(), inspect.MigrationRequest{Workflow: name, From: 1, To: 2, PerSecond: 500})
		require.NoError(t, err)
		asked = append(asked, m.ID)
	}
	work.Wait()
	for _, id := range asked {
		m := migrated(t, nodes[0], id)
		assert.Equalf(t, int64(0), m.Rejected, "%+v", m)
	}
	eventually(t, "all ends are told", func() bool {
		return query[int](t, pool, `SELECT count(*) FROM pawl.instance WHERE workflow = 'parent' AND definition = 2
			AND data::text = '{"texts":3}'`) == all
	})
	assert.Equal(t, len(children), query[int](t, pool, "SELECT count(*) FROM pawl.audit WHERE transition = 'mourn'"),
		"ends were told of")
	assert.Equal(t, 0, query[int](t, pool, "SELECT count(*) FROM pawl.instance WHERE workflow = 'child' AND open"), "children live")
	wantIntact(t, nodes[0], "")
}

// Callers' transactions over several instances stay open while these are migrated, without a deadlock.
func TestMigration_SubmitTx(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := newEngine(t, pool, running(claims1(pays), claims2(pays)), func(c *engine.Config) { c.Pipeline.LockWait = time.Second })
	require.NoError(t, e.Admin().BeginVersion(t.Context(), "claim", 1, ""))
	const all, turns = 16, 12
	var ids []uuid.UUID
	for i := range all {
		ids = append(ids, file(t, e, "", fmt.Sprint(i), i).Instance)
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	held := begin(t, pool)
	submitTx(t, e, held, onClaim(ids[10], "hold", "held"))
	m := begun(t, e, 100)
	var done atomic.Int64
	var work sync.WaitGroup
	for caller := range 3 {
		work.Go(func() {
			for n := range turns {
				err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
					first := rand.N(all - 3)
					for i := range 3 {
						if id := ids[first+i]; id != ids[10] {
							r, err := e.SubmitTx(t.Context(), tx, onClaim(id, []string{"hold", "release"}[n%2], fmt.Sprint(caller, "-", n)))
							switch {
							case err == nil && r.Err() == nil:
								done.Add(1)
							case err != nil && !workflow.CodeOf(err).Info().Retry:
								return err
							}
							await.Pass("a caller does something of his own", time.Millisecond)
						}
					}
					return nil
				})
				assert.Falsef(t, err != nil && t.Context().Err() == nil, "%d-%d: %v", caller, n, err)
			}
		})
	}
	eventually(t, "all but the one that is held are migrated", func() bool {
		now, err := e.Admin().Migration(t.Context(), m.ID)
		return err == nil && now.Migrated == all-1
	})
	work.Wait()
	r, err := e.SubmitTx(t.Context(), held, onClaim(ids[9], "approve", "on one that has gone"))
	assert.NoErrorf(t, err, "%+v,", r)
	submitTx(t, e, held, onClaim(ids[10], "release", "on one that has not"))
	commitTx(t, held)
	m = migrated(t, e, m.ID)
	assert.Truef(t, m.Migrated == all && m.Skipped+m.Rejected == 0, "%+v", m)
	assert.Equal(t, done.Load()+2, query[int64](t, pool, "SELECT count(*) FROM pawl.audit WHERE transition IN ('hold', 'release')"),
		"done, and callers heard of")
	assert.Equal(t, 0, query[int](t, pool, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"), "deadlocks")
	inst, err := e.Read().Instance(t.Context(), "", ids[10])
	assert.Truef(t, err == nil && inst.Definition == 2 && inst.State == "checking", "%+v, %v", inst, err)
	wantIntact(t, e, "")
}
