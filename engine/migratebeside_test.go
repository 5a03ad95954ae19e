package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
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
