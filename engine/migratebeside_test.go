package engine_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
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
	require.NoError(t, errOf(tx.Exec(t.Context(), "SELECT FROM pawl.instance ORDER BY id FOR UPDATE")))
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

// claimsBack is version 1 with a plan that leads back to it.
func claimsBack() *workflow.Definition[claim1] {
	return claims1(pays).Migrate(workflow.FromVersion(2, func(now claim2) (claim1, error) { return claim1{Sum: now.Cents / 100}, nil }).
		State("checking", "open").State("approved", "open").KeepTimer("release"))
}

// The same instances go there, back, and there again, while callers ask for all that there is, each under one version or the other.
func TestInstancesGoThereAndBackAndThereAgain(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := bothClaims(t, pool, claimsBack(), claims2(pays))
	const all = 40
	var ids []uuid.UUID
	for i := range all {
		ids = append(ids, file(t, e, "", fmt.Sprint(i), i).Instance)
		later := onClaim(ids[i], "hold", "later")
		later.NotBefore = time.Now().Add(time.Hour)
		require.NoError(t, errOf(e.Submit(t.Context(), later)))
	}
	first := file(t, e, "", "0", 0)
	moves := moveClaims(t, e, ids)
	for turn, to := range []int{2, 1, 2} {
		m, err := e.Admin().MigrateInstances(t.Context(), inspect.MigrationRequest{Workflow: "claim", From: 3 - to, To: to, Actor: "ann",
			Reason: "a turn", PerSecond: 100})
		require.NoError(t, err)
		m = migrated(t, e, m.ID)
		assert.Truef(t, m.Migrated == all && m.Skipped+m.Rejected == 0, "turn %d: %+v", turn, m)
	}
	done := moves()
	n := query[int](t, pool, `SELECT count(*) FROM pawl.instance i WHERE definition = 2 AND version = 4 +
		(SELECT count(*) FROM pawl.audit a WHERE a.instance = i.id AND a.transition IN ('hold', 'release'))`)
	assert.Equal(t, all, n, "instances are as they should be")
	assert.Equal(t, done, query[int64](t, pool, "SELECT count(*) FROM pawl.audit WHERE transition IN ('hold', 'release')"),
		"done, and callers heard of")
	if n := query[int](t, pool, "SELECT count(*) FROM pawl.command WHERE phase IS NOT NULL AND definition = 2 AND key = 'later'"); n != all {
		t.Errorf("%d of what is scheduled went along, want %d", n, all)
	}
	// What is held has its timer, and nothing else has one.
	n = query[int](t, pool, `SELECT count(*) FROM pawl.instance i WHERE (state = 'held')::int <> (SELECT count(*) FROM pawl.command c
		WHERE starts_with(c.scope, 'pawl:timer:' || i.id) AND c.phase IS NOT NULL AND c.definition = 2)`)
	assert.Equal(t, 0, n, "have timers that they should not have, or lack one")
	again := file(t, e, "", "0", 0)
	assert.Truef(t, again.Replayed && string(again.Body) == string(first.Body), "%s, then %s", first.Body, again.Body)
	wantIntact(t, e, "")
}

// moveClaims has callers hold and release claims until the function returned is called, which tells how often they did.
func moveClaims(t *testing.T, e *engine.Engine, ids []uuid.UUID) func() int64 {
	t.Helper()
	var over atomic.Bool
	var done atomic.Int64
	var work sync.WaitGroup
	for caller := range 4 {
		work.Go(func() {
			for n := 0; !over.Load(); n++ {
				name := []string{"hold", "release"}[n/len(ids)%2]
				r, err := e.Submit(t.Context(), onClaim(ids[(n+caller*7)%len(ids)], name, fmt.Sprint(caller, "-", n)))
				if err == nil && r.Err() == nil {
					done.Add(1)
				} else if code := workflow.CodeOf(err); err != nil && !code.Info().Retry {
					t.Errorf("%s: %v", name, err)
				}
				await.Pass("callers leave some of the machine", 2*time.Millisecond)
			}
		})
	}
	return func() int64 { over.Store(true); work.Wait(); return done.Load() }
}

// Retention has deleted an instance between the moment when its page was written and the one when it is asked for.
func TestAMigrationPassesWhatIsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := bothClaims(t, pool)
	gone := file(t, e, "", "gone", 1).Instance
	file(t, e, "", "stays", 1)
	exec(t, pool, `CREATE FUNCTION delete_one() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
		IF NEW.page IS NOT NULL THEN
			DELETE FROM pawl.command WHERE instance = TG_ARGV[0]::uuid;
			DELETE FROM pawl.instance WHERE id = TG_ARGV[0]::uuid;
		END IF; RETURN NULL; END $$`)
	exec(t, pool, fmt.Sprintf(`CREATE TRIGGER delete_one AFTER UPDATE ON pawl.instance_migration FOR EACH ROW
		EXECUTE FUNCTION delete_one('%s')`, gone))
	m := migrated(t, e, begun(t, e, 1000).ID)
	assert.Truef(t, m.Expected == 2 && m.Migrated == 1 && m.Rejected == 0, "%+v", m)
}
