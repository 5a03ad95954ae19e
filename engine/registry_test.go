package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestNewReportsTheMistakesOfAllWorkflows(t *testing.T) {
	t.Parallel()
	pool := database(t)
	deadEnd := workflow.Define("dead-end", 1, workflow.Start("go", "there", none))
	noStart := workflow.Define("no-start", 0, workflow.On("go", workflow.From("here"), "there", none)).Final("there")
	_, err := engine.New(engine.Config{Pool: pool, Workflows: []workflow.Source{deadEnd, loans(1), noStart, loans(1)}})
	require.Error(t, err, "it was taken")
	for _, want := range []string{`"there" is a dead end`, "nothing starts it", "the version is 0",
		`workflow "loan" version 1 is given twice`} {
		assert.Containsf(t, err.Error(), want, "in %v", err)
	}
	m, ok := errors.AsType[*workflow.Mistakes](err)
	assert.Truef(t, ok && m.Workflow == "dead-end", "the first mistakes are %+v", m)
}

func TestNewRefusesAConfigurationThatCannotWork(t *testing.T) {
	t.Parallel()
	pool := database(t)
	for want, config := range map[string]engine.Config{
		"Config.Pool is required":   {Workflows: []workflow.Source{loans(1)}},
		"Config.Workflows is empty": {Pool: pool},
		"Config.Schema":             {Pool: pool, Workflows: []workflow.Source{loans(1)}, Schema: "No Name"},
		"Replay is negative":        {Pool: pool, Workflows: []workflow.Source{loans(1)}, Replay: -1},
		"GroupSize is negative":     {Pool: pool, Workflows: []workflow.Source{loans(1)}, Pipeline: engine.PipelineConfig{GroupSize: -1}},
	} {
		assert.ErrorContains(t, errOf(engine.New(config)), want)
	}
}

// start starts an engine that may fail, and stops it.
func startAndStop(t testing.TB, c engine.Config) error {
	c.Log = slog.New(slog.DiscardHandler)
	e, err := engine.New(c)
	if err != nil {
		return err
	}
	if err := e.Start(t.Context()); err != nil {
		return err
	}
	e.Stop(context.Background())
	return nil
}

func TestChangedDefinitionIsRefused(t *testing.T) {
	t.Parallel()
	pool := database(t)
	with := func(sources ...workflow.Source) engine.Config { return engine.Config{Pool: pool, Workflows: sources} }
	changed := func(version int) workflow.Source {
		return loans(version, workflow.On("sell", workflow.From("open"), workflow.Stay, none))
	}
	for range 2 { // the same again is fine
		require.NoError(t, startAndStop(t, with(loans(1))))
	}
	err := startAndStop(t, with(changed(1)))
	assert.ErrorContains(t, err, `workflow "loan" has changed, but is still version 1, which ran here before `+
		`(transition "sell" is new): give`)
	assert.NoError(t, startAndStop(t, with(loans(1), changed(2))), "as a new version")
	err = startAndStop(t, with(loans(2), changed(1)))
	assert.Truef(t, err != nil && strings.Count(err.Error(), "has changed") == 2, "two changed versions: got %v, want both", err)
	assert.Equal(t, 2, query[int](t, pool, "SELECT count(*) FROM pawl.definition"), "definitions are recorded")
}

func TestStartSaysWhatTheDatabaseLacks(t *testing.T) {
	t.Parallel()
	pool := database(t)
	err := startAndStop(t, engine.Config{Pool: pool, Workflows: []workflow.Source{loans(1)}, Schema: "elsewhere"})
	assert.ErrorIs(t, err, schema.ErrBehind)
	exec(t, pool, "INSERT INTO pawl.migration (number, name) VALUES (9999, 'of the future')")
	err = startAndStop(t, engine.Config{Pool: pool, Workflows: []workflow.Source{loans(1)}})
	assert.ErrorIs(t, err, schema.ErrNewer)
}

// Two nodes that record the same new definition meet on its row. Held up by a
// transaction that has just inserted it, each must find what that committed.
func TestNodesThatStartAtOnceRecordOneDefinition(t *testing.T) {
	t.Parallel()
	pool := database(t)
	w, err := loans(1).Build()
	require.NoError(t, err)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer rollback(t, tx)
	require.NoError(t, errOf(tx.Exec(t.Context(), "INSERT INTO pawl.definition VALUES ('loan', 1, $1, '{}')", w.Hash)))
	var nodes sync.WaitGroup
	for range 2 {
		nodes.Go(func() {
			assert.NoError(t, startAndStop(t, engine.Config{Pool: pool, Workflows: []workflow.Source{loans(1)}}))
		})
	}
	pgtest.WaitBlockedTimes(t, pool, "INSERT INTO pawl.definition", 2)
	require.NoError(t, tx.Commit(t.Context()))
	nodes.Wait()
}

func TestTwoVersionsSideBySide(t *testing.T) {
	t.Parallel()
	pool := database(t)
	// The second version books without the ledger, and asks for the clerk's
	// name; the first one's "sell" is gone.
	type second struct {
		Amount int    `json:"amount"`
		Clerk  string `json:"clerk" validate:"required"`
	}
	repay := func(_ *workflow.Call, d *loan, p second) error { d.Owed -= 2 * p.Amount; return nil }
	v1 := loans(1, workflow.On("sell", workflow.From("open"), "settled", none))
	v2 := workflow.Define("loan", 2,
		workflow.Start("apply", "open", apply).BusinessKey(func(p application) string { return p.Number }),
		workflow.On("book", workflow.From("open"), workflow.Stay, repay),
		workflow.On("close", workflow.From("open"), "settled", none)).Final("settled")
	old := newEngine(t, pool, func(c *engine.Config) { c.Workflows = []workflow.Source{v1} })
	submit(t, old, applied("L-1", 100))
	e := newEngine(t, pool, func(c *engine.Config) { c.Workflows = []workflow.Source{v1, v2} })
	submit(t, e, applied("L-2", 100))
	byClerk := func(number, key string) transitions.Command {
		c := on("book", number, key, 0, "")
		c.Payload = []byte(`{"amount":10,"clerk":"zoe"}`)
		return c
	}
	submit(t, e, on("book", "L-1", "a", 10, "")) // with the payload and the SQL of its version
	submit(t, e, byClerk("L-2", "b"))
	wantCode(t, errOf(e.Submit(t.Context(), on("book", "L-2", "c", 10, ""))), workflow.InvalidPayload)
	wantCode(t, errOf(e.Submit(t.Context(), byClerk("L-1", "d"))), workflow.InvalidPayload)
	assert.Equal(t, 1, query[int](t, pool, "SELECT count(*) FROM ledger"), "rows in the ledger: the SQL of the first version ran not once")
	for number, want := range map[string]string{"L-1": `{"customer":"c-1","region":"north","owed":90}`,
		"L-2": `{"customer":"c-1","region":"north","owed":80}`} {
		inst, err := e.Read().InstanceByKey(t.Context(), "", "loan", number)
		assert.Truef(t, err == nil && string(inst.Data) == want && inst.Definition == map[string]int{"L-1": 1, "L-2": 2}[number],
			"%s: got version %d, %s, %v", number, inst.Definition, inst.Data, err)
	}
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	assert.NoError(t, errOf(e.SubmitTx(t.Context(), tx, on("book", "L-1", "e", 10, ""))), "in a transaction")
	require.NoError(t, tx.Commit(t.Context()))
	options, err := e.Read().Explain(t.Context(), "", loanID("L-1"), "bob", nil)
	assert.Truef(t, err == nil && hasOption(options.Transitions, "sell") && !hasOption(options.Transitions, "close"),
		"the first version's options: %+v, %v", options, err)
	plain := transitions.Command{Workflow: "loan", Transition: "sell", BusinessKey: "L-1", Key: "f"}
	dry, err := e.DryRun(t.Context(), plain)
	assert.Truef(t, err == nil && dry.Status == 200, "dry run: %+v, %v", dry, err)
	submit(t, e, plain)
	plain.BusinessKey = "L-2"
	wantCode(t, errOf(e.Submit(t.Context(), plain)), workflow.TransitionNotFound)
	// The node of before knows nothing of version 2 and says so, without harm.
	wantCode(t, errOf(old.Submit(t.Context(), on("pay", "L-2", "g", 1, ""))), workflow.NotOnThisNode)
}

func hasOption(options []inspect.Option, transition string) bool {
	for _, o := range options {
		if o.Transition == transition {
			return true
		}
	}
	return false
}
