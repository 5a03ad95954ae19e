package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

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
	if err == nil {
		t.Fatal("it was taken")
	}
	for _, want := range []string{`"there" is a dead end`, "nothing starts it", "the version is 0",
		`workflow "loan" version 1 is given twice`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if m, ok := errors.AsType[*workflow.Mistakes](err); !ok || m.Workflow != "dead-end" {
		t.Errorf("the first mistakes are %+v", m)
	}
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
		if _, err := engine.New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestTheNewestVersionsAreListedByName(t *testing.T) {
	t.Parallel()
	gift := workflow.Define("gift", 3, workflow.Start("give", "given", none)).Final("given")
	e := newEngine(t, database(t), func(c *engine.Config) { c.Workflows = []workflow.Source{loans(2), gift, loans(10), loans(1)} })
	list := e.Read().Workflows()
	if len(list) != 2 || list[0].Name != "gift" || list[0].Version != 3 || list[1].Name != "loan" || list[1].Version != 10 {
		t.Errorf("got %+v", list)
	}
	for ask, want := range map[int]int{0: 10, 1: 1, 2: 2, 10: 10} {
		if w, err := e.Read().Workflow("loan", ask); err != nil || w.Version != want {
			t.Errorf("version %d: got %+v, %v", ask, w, err)
		}
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

func TestAChangedDefinitionUnderTheSameVersionIsRefused(t *testing.T) {
	t.Parallel()
	pool := database(t)
	with := func(sources ...workflow.Source) engine.Config { return engine.Config{Pool: pool, Workflows: sources} }
	changed := func(version int) workflow.Source {
		return loans(version, workflow.On("sell", workflow.From("open"), workflow.Stay, none))
	}
	for range 2 { // the same again is fine
		if err := startAndStop(t, with(loans(1))); err != nil {
			t.Fatal(err)
		}
	}
	err := startAndStop(t, with(changed(1)))
	if err == nil || !strings.Contains(err.Error(), `workflow "loan" has changed, but is still version 1, which ran here before `+
		`(transition "sell" is new): give`) {
		t.Errorf("got %v", err)
	}
	if err := startAndStop(t, with(loans(1), changed(2))); err != nil {
		t.Errorf("as a new version: %v", err)
	}
	if err := startAndStop(t, with(loans(2), changed(1))); err == nil || strings.Count(err.Error(), "has changed") != 2 {
		t.Errorf("two changed versions: got %v, want both", err)
	}
	if got := query[int](t, pool, "SELECT count(*) FROM pawl.definition"); got != 2 {
		t.Errorf("%d definitions are recorded", got)
	}
}

func TestStartSaysWhatTheDatabaseLacks(t *testing.T) {
	t.Parallel()
	pool := database(t)
	err := startAndStop(t, engine.Config{Pool: pool, Workflows: []workflow.Source{loans(1)}, Schema: "elsewhere"})
	if !errors.Is(err, schema.ErrBehind) {
		t.Errorf("got %v", err)
	}
	exec(t, pool, "INSERT INTO pawl.migration (number, name) VALUES (9999, 'of the future')")
	err = startAndStop(t, engine.Config{Pool: pool, Workflows: []workflow.Source{loans(1)}})
	if !errors.Is(err, schema.ErrNewer) {
		t.Errorf("got %v", err)
	}
}

// Two nodes that record the same new definition meet on its row. Held up by a
// transaction that has just inserted it, each must find what that committed.
func TestNodesThatStartAtOnceRecordOneDefinition(t *testing.T) {
	t.Parallel()
	pool := database(t)
	w, err := loans(1).Build()
	if err != nil {
		t.Fatal(err)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer rollback(t, tx)
	if _, err := tx.Exec(t.Context(), "INSERT INTO pawl.definition VALUES ('loan', 1, $1, '{}')", w.Hash); err != nil {
		t.Fatal(err)
	}
	var nodes sync.WaitGroup
	for range 2 {
		nodes.Go(func() {
			if err := startAndStop(t, engine.Config{Pool: pool, Workflows: []workflow.Source{loans(1)}}); err != nil {
				t.Error(err)
			}
		})
	}
	pgtest.WaitBlockedTimes(t, pool, "INSERT INTO pawl.definition", 2)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
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
	_, err := e.Submit(t.Context(), on("book", "L-2", "c", 10, ""))
	wantCode(t, err, workflow.InvalidPayload)
	_, err = e.Submit(t.Context(), byClerk("L-1", "d"))
	wantCode(t, err, workflow.InvalidPayload)
	if got := query[int](t, pool, "SELECT count(*) FROM ledger"); got != 1 {
		t.Errorf("%d rows in the ledger: the SQL of the first version ran not once", got)
	}
	for number, want := range map[string]string{"L-1": `{"customer":"c-1","region":"north","owed":90}`,
		"L-2": `{"customer":"c-1","region":"north","owed":80}`} {
		inst, err := e.Read().InstanceByKey(t.Context(), "", "loan", number)
		if err != nil || string(inst.Data) != want || inst.Definition != map[string]int{"L-1": 1, "L-2": 2}[number] {
			t.Errorf("%s: got version %d, %s, %v", number, inst.Definition, inst.Data, err)
		}
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.SubmitTx(t.Context(), tx, on("book", "L-1", "e", 10, "")); err != nil {
		t.Errorf("in a transaction: %v", err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	options, err := e.Read().Explain(t.Context(), "", loanID("L-1"), "bob", nil)
	if err != nil || !hasOption(options.Transitions, "sell") || hasOption(options.Transitions, "close") {
		t.Errorf("the first version's options: %+v, %v", options, err)
	}
	plain := transitions.Command{Workflow: "loan", Transition: "sell", BusinessKey: "L-1", Key: "f"}
	if dry, err := e.DryRun(t.Context(), plain); err != nil || dry.Status != 200 {
		t.Errorf("dry run: %+v, %v", dry, err)
	}
	submit(t, e, plain)
	plain.BusinessKey = "L-2"
	_, err = e.Submit(t.Context(), plain)
	wantCode(t, err, workflow.TransitionNotFound)
	// The node of before knows nothing of version 2 and says so, without harm.
	_, err = old.Submit(t.Context(), on("pay", "L-2", "g", 1, ""))
	wantCode(t, err, workflow.NotOnThisNode)
}

func hasOption(options []inspect.Option, transition string) bool {
	for _, o := range options {
		if o.Transition == transition {
			return true
		}
	}
	return false
}

func TestDefinitionsThatRanAreComparedWithThoseOfTheEngine(t *testing.T) {
	t.Parallel()
	pool := database(t)
	other := workflow.Define("other", 1, workflow.Start("go", "there", none)).Final("there")
	for _, c := range [][]workflow.Source{{loans(1), loans(2), loans(3)}, {other}} {
		if err := startAndStop(t, engine.Config{Pool: pool, Workflows: c}); err != nil {
			t.Fatal(err)
		}
	}
	changed := loans(2, workflow.On("sell", workflow.From("open"), workflow.Stay, none))
	e, err := engine.New(engine.Config{Pool: pool, Workflows: []workflow.Source{loans(1), changed}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Stop(context.Background())
	list, err := e.Admin().Definitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, d := range list {
		got[fmt.Sprint(d.Workflow, " ", d.Version)] = fmt.Sprint(d.Given, d.Changed, d.CreatedAt.IsZero())
	}
	want := map[string]string{"loan 1": "true false false", "loan 2": "true true false", "loan 3": "false false false",
		"other 1": "false false false"}
	for of, what := range want {
		if got[of] != what {
			t.Errorf("%s: %q, not %q", of, got[of], what)
		}
	}
}
