package api_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/workflow"
)

// Requests above the limits of a node are refused before they are read and have no effect. Accepted requests are executed, and so are the
// refused ones when they are sent again.
func TestOverload_RefusesExcess(t *testing.T) {
	const most, more = 20, 60
	entered, open := make(chan struct{}), make(chan struct{})
	gate := workflow.Define("gate", 1,
		workflow.Start("enter", "inside", func(*workflow.Call, *Parcel, workflow.None) error {
			close(entered)
			<-open
			return nil
		}),
		workflow.On("leave", workflow.From("inside"), "outside", func(*workflow.Call, *Parcel, workflow.None) error { return nil }),
	).Final("outside")
	s := newServerOn(t, func(c *engine.Config) {
		c.Workflows = append(c.Workflows, gate)
		c.Pipeline.Committers, c.Pipeline.QueueSize = 1, most
	})
	pack := func(key string) answer { return s.post("/v1/workflows/parcel/pack", key, `{"to":"Wien"}`) }
	var all sync.WaitGroup
	taken := make(chan answer, most+1)
	goOn := sync.OnceFunc(func() { close(open) })
	defer all.Wait()
	defer goOn()
	all.Go(func() { taken <- s.post("/v1/workflows/gate/enter", "first", `{}`) })
	await.Receive(t, "the first command", entered)
	for i := range most {
		all.Go(func() { taken <- pack(fmt.Sprint("taken-", i)) })
	}
	await.Eventually(t, "the node has all that it may have", func() bool { return s.engine.Admin().Stats().Waiting == most })

	before := s.rows()
	for i := range more { // no request proceeds meanwhile: an answer here did not wait
		a := pack(fmt.Sprint("refused-", i))
		a.wantProblem(t, 503, workflow.Overloaded)
		require.Equal(t, "1", a.header.Get("Retry-After"), "Retry-After")
	}
	s.post("/v1/workflows/parcel/pack", "bad", `{"to":`).wantProblem(t, 503, workflow.Overloaded) // nobody has looked at it
	assert.Equal(t, int64(more+1), s.engine.Admin().Stats().Refused, "refusals are counted of")
	s.get("/v1/instances").want(t, 200) // to read costs the pipeline nothing

	goOn()
	all.Wait()
	for range most + 1 {
		(<-taken).want(t, 201)
	}
	got := s.rows()["command"] - before["command"]
	assert.Equal(t, most+1, got, "commands were done, of that were taken")
	for i := range most {
		assert.Equalf(t, "true", pack(fmt.Sprint("taken-", i)).header.Get("Idempotent-Replayed"),
			"what was acknowledged as taken-%d is not there", i)
	}
	for i := range more {
		a := pack(fmt.Sprint("refused-", i))
		a.want(t, 201)
		assert.Equalf(t, "", a.header.Get("Idempotent-Replayed"), "refused-%d had been done", i)
	}
}
