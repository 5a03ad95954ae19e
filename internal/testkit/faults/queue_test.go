package faults

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// A full queue answers at once, and the same key can be tried again.
func TestFullQueueRefusesAtOnce(t *testing.T) {
	t.Parallel()
	entered, gate := make(chan struct{}), make(chan struct{})
	var once sync.Once
	pool := database(t)
	e := start(t, pool, func(c *engine.Config) {
		c.Workflows = []workflow.Source{counterWith(func() { once.Do(func() { close(entered) }); <-gate })}
		c.Pipeline.Committers, c.Pipeline.QueueSize = 1, 5
	})
	must(t, e, opening("x"))
	ctx := bounded(t)
	waiting := []<-chan answered{submit(ctx, e, onCounter("x", "wait", "first", `{}`))}
	<-entered
	for i := range 5 {
		waiting = append(waiting, submit(ctx, e, onCounter("x", "add", fmt.Sprint(i), `{"by":1}`)))
	}
	waitUntil(t, "the queue is full", func() bool { return e.Admin().Stats().Waiting == 5 })

	// Nobody can open the gate before this returns, so it does not wait.
	late := onCounter("x", "add", "late", `{"by":1}`)
	_, err := e.Submit(ctx, late)
	wantCode(t, "a full queue", err, workflow.Overloaded)
	assert.Equal(t, int64(1), e.Admin().Stats().Refused, "the refusal is not counted")

	// Many at once wait for room instead.
	many := make(chan []transitions.Reply, 1)
	go func() { many <- e.SubmitMany(ctx, []transitions.Command{onCounter("x", "add", "many", `{"by":1}`)}) }()
	waitParked(t, "commit.(*queue).pushAll", 1)
	close(gate)
	wantDone(t, waiting)
	r := <-many
	assert.NoError(t, r[0].Err)
	assert.False(t, must(t, e, late).Replayed, "the command that was refused had been done")
	wantSound(t, e, pool)
}

// A caller who leaves before the command is begun has not done it; one who
// leaves later finds the answer with the key.
func TestCallerWhoLeavesFindsTheAnswerWithTheKey(t *testing.T) {
	t.Parallel()
	entered, gate := make(chan struct{}), make(chan struct{})
	var once sync.Once
	pool := database(t)
	e := start(t, pool, func(c *engine.Config) {
		c.Workflows = []workflow.Source{counterWith(func() { once.Do(func() { close(entered) }); <-gate })}
		c.Pipeline.Committers = 1
	})
	must(t, e, opening("x"))
	impatient, leave := context.WithCancel(bounded(t))
	begun := onCounter("x", "wait", "begun", `{}`)
	waits := onCounter("x", "add", "waits", `{"by":1}`)
	first := submit(impatient, e, begun)
	<-entered
	second := submit(impatient, e, waits)
	waitUntil(t, "the second waits", func() bool { return e.Admin().Stats().Waiting == 1 })
	leave()
	wantCode(t, "left while it was done", (<-first).err, workflow.TimedOut)
	wantCode(t, "left while it waited", (<-second).err, workflow.TimedOut)
	close(gate)
	assert.True(t, must(t, e, begun).Replayed, "what was begun was not done")
	assert.False(t, must(t, e, waits).Replayed, "what had not begun was done")
	wantSound(t, e, pool)
}
