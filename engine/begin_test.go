package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func beginWith(t *testing.T, e *engine.Engine, name string, version int) {
	t.Helper()
	require.NoError(t, e.Admin().BeginVersion(t.Context(), name, version, "ann"))
}

func definitionOf(t *testing.T, e *engine.Engine, id uuid.UUID) int {
	t.Helper()
	inst, err := e.Read().Instance(t.Context(), "", id)
	require.NoError(t, err)
	return inst.Definition
}

// gatedStart is a workflow whose start waits inside its transaction, if its payload says so.
func gatedStart(version int, entered chan<- struct{}, goOn <-chan struct{}) workflow.Source {
	type gate struct {
		Wait bool `json:"wait"`
	}
	start := workflow.Start("open", "opened", nothing[crate, gate])
	return workflow.Define("gate", version,
		engine.InTx(start, func(ctx context.Context, _ pgx.Tx, _ crate, p gate) error {
			if !p.Wait {
				return nil
			}
			entered <- struct{}{}
			select {
			case <-goOn:
			case <-ctx.Done():
			}
			return ctx.Err()
		}),
		workflow.On("close", workflow.From("opened"), "closed", nothing[crate, workflow.None]),
	).Final("closed")
}

// A creation that a node has decided under the version before is committed when BeginVersion returns, and one that waits begins with
// the new version.
func TestBeginVersionWaitsForCreations(t *testing.T) {
	t.Parallel()
	pool := database(t)
	entered, goOn := make(chan struct{}), make(chan struct{})
	both := running(gatedStart(1, entered, goOn), gatedStart(2, entered, goOn))
	one := newEngine(t, pool, both)
	beginWith(t, one, "gate", 1)
	other := newEngine(t, pool, both, func(c *engine.Config) { c.Pipeline.RetryWorkers = 1 })
	type made struct {
		receipt transitions.Receipt
		err     error
	}
	open := func(key, payload string) <-chan made {
		done := make(chan made, 1)
		go func() {
			r, err := other.Submit(t.Context(), transitions.Command{Workflow: "gate", Transition: "open", Key: key, Payload: []byte(payload)})
			done <- made{r, err}
		}()
		return done
	}
	early := open("early", `{"wait":true}`)
	await.Receive(t, "the first creation is in its transaction", entered)
	late := open("late", `{}`)
	eventually(t, "the second creation waits for the worker", func() bool { return other.Admin().Stats().Aside == 2 })
	began := make(chan error, 1)
	go func() { began <- one.Admin().BeginVersion(t.Context(), "gate", 2, "ann") }()
	eventually(t, "the other node knows", func() bool { return other.Read().Workflows()[0].Version == 2 })
	close(goOn)
	require.NoError(t, await.Receive(t, "the version holds on all nodes", began))
	assert.Equal(t, 1, query[int](t, pool, "SELECT count(*) FROM pawl.instance WHERE workflow = 'gate' AND definition = 1"),
		"instances of version 1 are committed")
	m := await.Receive(t, "the first creation", early)
	assert.Truef(t, m.err == nil && definitionOf(t, one, m.receipt.Instance) == 1, "%+v", m)
	m = await.Receive(t, "the second creation", late)
	assert.Truef(t, m.err == nil && definitionOf(t, one, m.receipt.Instance) == 2, "%+v", m)
}

// An instance that a caller's transaction begins before, and commits after the migration is asked for, is migrated all the same.
func TestMigrationTakesInstancesCommittedLate(t *testing.T) {
	t.Parallel()
	pool := database(t)
	one := bothClaims(t, pool)
	other := newEngine(t, pool, running(claims1(pays), claims2(pays)))
	var id uuid.UUID
	var asked int64
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		r, err := other.SubmitTx(t.Context(), tx, transitions.Command{Workflow: "claim", Transition: "file", Key: "late",
			Payload: []byte(`{"sum":1}`)})
		if err != nil {
			return err
		}
		id = r.Instance
		beginWith(t, one, "claim", 2)
		asked = begun(t, one, 1000).ID
		eventually(t, "the migration waits or ends", func() bool {
			m, err := one.Admin().Migration(t.Context(), asked)
			return err != nil || m.Held != "" || !m.EndedAt.IsZero()
		})
		return nil
	})
	require.NoError(t, err)
	m := migrated(t, one, asked)
	v := definitionOf(t, one, id)
	assert.Truef(t, v == 2 && m.Migrated == 1 && m.Left() == 0, "version %d, %+v", v, m)
}

// A migration from the version that new instances begin with takes those that were there, and reports how many have begun since.
func TestMigrationReportsInstancesBegunSince(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := bothClaims(t, pool)
	old := newEngine(t, pool, running(claims1(pays))) // holds the migration
	before := file(t, e, "", "before", 1).Instance
	asked := begun(t, e, 1000).ID
	since := file(t, e, "", "since", 1).Instance
	old.Stop(t.Context())
	m := migrated(t, e, asked)
	assert.True(t, definitionOf(t, e, before) == 2 && definitionOf(t, e, since) == 1, "it takes other instances than those that were there")
	assert.Truef(t, m.Left() == 1 && strings.Contains(m.Held, "new instances begin with version 1"), "%d left, %q", m.Left(), m.Held)
}
