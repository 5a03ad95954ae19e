package engine_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

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
