package faults

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// poisons are payloads that pass all checks of the engine and cannot be stored.
var poisons = []struct{ name, payload string }{
	{"NUL in jsonb", `{"tag":"nul"}`},
	{"attribute is not UTF-8", `{"tag":"bytes"}`},
}

// A command that cannot be stored fails at once, and with it the later command of the same caller on the instance. The others of its group
// commit.
func TestUnstorableCommandFailsAlone(t *testing.T) {
	for _, poison := range poisons {
		t.Run(poison.name, func(t *testing.T) {
			t.Parallel()
			const others = 200
			w, entered, open := gated()
			pool := database(t)
			e := start(t, pool, func(c *engine.Config) {
				c.Workflows = []workflow.Source{w}
				c.Pipeline.Committers, c.Pipeline.GroupSize = 1, 2*others
			})
			must(t, e, opening("x"))
			must(t, e, opening("y"))
			ctx := bounded(t)
			first := submit(ctx, e, onCounter("x", "wait", "first", `{}`))
			<-entered

			// Gathers behind the first, so it is one group.
			var cs []transitions.Command
			for i := range others {
				cs = append(cs, opening(fmt.Sprint("other ", i)))
				if i == others/3 {
					cs = append(cs, onCounter("y", "tag", "poison", poison.payload))
				}
				if i == others/2 {
					cs = append(cs, onCounter("y", "add", "after the poison", `{"by":1}`))
				}
			}
			answers := make(chan []transitions.Reply, 1)
			go func() { answers <- e.SubmitMany(ctx, cs) }()
			await.Eventually(t, "all wait", func() bool { return e.Admin().Stats().Waiting == len(cs) })
			another := submit(ctx, e, onCounter("y", "add", "another caller's", `{"by":1}`))
			await.Eventually(t, "another waits too", func() bool { return e.Admin().Stats().Waiting == len(cs)+1 })
			open()
			assert.NoError(t, (<-first).err)
			assert.NoError(t, (<-another).err)
			for i, r := range <-answers {
				if key := cs[i].Key; key == "poison" || key == "after the poison" {
					wantCode(t, key, r.Err, workflow.Internal)
				} else {
					assert.NoErrorf(t, errors.Join(r.Err, r.Receipt.Err()), "%s", key)
				}
			}
			assert.Zero(t, e.Admin().Stats().Lost, "lost connections")
			assert.Zero(t, number(t, pool, `SELECT count(*) FROM pawl.command WHERE key = 'poison'`))
			// A group of one is a single statement.
			_, err := e.Submit(ctx, onCounter("y", "tag", "poison alone", poison.payload))
			wantCode(t, "the poison alone", err, workflow.Internal)
			must(t, e, onCounter("y", "add", "after", `{"by":1}`))
			wantSound(t, e, pool)
		})
	}
}
