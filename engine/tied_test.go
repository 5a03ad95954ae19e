package engine_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Retention gives work up, and puts another command in its place that the instance
// is tied to, while a lone command on the instance is being decided.
func TestTiedKey_AfterRetention(t *testing.T) {
	t.Parallel()
	pool, clock := database(t), newStill()
	var once sync.Once
	entered, gate := make(chan struct{}), make(chan struct{})
	noop := nothing[letter, words]
	w := workflow.Define("letter", 1,
		workflow.Start("write", "written", noop),
		workflow.Do("post", workflow.From("written", "returned"), "posting", "sent",
			func(_ context.Context, _ *workflow.Attempt, _ letter, w words) (words, error) { return w, nil }, noop).
			OrElse("returned", nothing[letter, workflow.Failure]),
		workflow.On("note", workflow.From("posting"), workflow.Stay, func(_ *workflow.Call, _ *letter, w words) error {
			once.Do(func() { // it is decided again
				close(entered)
				<-gate
			})
			return nil
		})).Final("sent").Keep(hourly)
	accepts := newEngine(t, pool, with(w), clock.set, func(c *engine.Config) { c.InFlight.Workers, c.Retention.Off = -1, true })
	id := submit(t, accepts, written("w", "x")).Instance
	submit(t, accepts, posted(id, "late"))
	clock.skip(50 * time.Hour)
	done := make(chan error, 1)
	go func() {
		r, err := accepts.Submit(t.Context(), transitions.Command{Workflow: "letter", Transition: "note", Instance: id, Key: "note",
			Payload: []byte(`{"text":"x","hours":0}`), Options: transitions.Options{Scope: "s"}})
		if err == nil {
			err = r.Err()
		}
		done <- err
	}()
	<-entered
	newEngine(t, pool, clock.set) // knows only loans; its retention gives the work up
	tie := "SELECT coalesce(links -> 'in_flight' ->> 'scope', '') FROM pawl.instance WHERE id = $1"
	eventually(t, "the work is given up", func() bool { return query[string](t, pool, tie, id) != "s" })
	close(gate)
	require.NoError(t, <-done)
	assert.Equal(t, decide.LateScope+id.String(), query[string](t, pool, tie, id), "the instance is tied to a command in scope")
	works := newEngine(t, pool, with(w), clock.set)
	eventually(t, "the command in its place ends", func() bool {
		inst, err := works.Read().Instance(t.Context(), "", id)
		return err == nil && inst.State == "returned" && inst.Links.InFlight == nil
	})
}
