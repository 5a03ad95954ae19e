package faults

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

type letter struct{}

// The database is unavailable for longer than a lease while workers are busy on two nodes. The nodes return one after the other. The first
// leaves the work of the other node, and takes over the work of a node that is gone.
func TestOutageLongerThanLease_LosesNoWork(t *testing.T) {
	t.Parallel()
	direct := database(t)
	const lease, count = 6 * time.Second, 10
	begun, done := make(chan string, 10*count), make(chan struct{})
	w := workflow.Define("letter", 1,
		workflow.Start("write", "written", func(*workflow.Call, *letter, workflow.None) error { return nil }),
		workflow.Do("send", workflow.From("written"), "sending", "sent",
			func(_ context.Context, a *workflow.Attempt, _ letter, _ workflow.None) (letter, error) {
				begun <- a.Key
				<-done // ignores its context
				return letter{}, nil
			}, func(*workflow.Call, *letter, letter) error { return nil }).
			AskOperator().
			OrElse("failed", func(*workflow.Call, *letter, workflow.Failure) error { return nil })).Final("sent", "failed")
	var engines []*engine.Engine
	var proxies []*proxy
	for range 2 {
		p, pool := startProxy(t, direct, func() fate { return passed })
		proxies = append(proxies, p)
		engines = append(engines, start(t, pool, func(c *engine.Config) {
			c.Workflows = []workflow.Source{w}
			c.InFlight.Lease = lease
		}))
	}
	var scopes []string
	for i := range count {
		e := engines[i%2]
		r := must(t, e, transitions.Command{Workflow: "letter", Transition: "write", Key: fmt.Sprint(i)})
		sent := must(t, e, transitions.Command{Workflow: "letter", Transition: "send", Key: "send", Instance: r.Instance})
		scopes = append(scopes, sent.Record.Scope)
		await.Receive(t, "it is begun", begun)
	}
	for _, p := range proxies {
		p.setDown(true)
	}
	await.Eventually(t, "all leases have run out", func() bool {
		return number(t, direct, "SELECT count(*) FROM pawl.command WHERE locked_until < clock_timestamp()") == count
	})
	// The lease of a node that is gone is not renewed.
	_, err := direct.Exec(t.Context(), `UPDATE pawl.command SET claimed_by = 'gone' WHERE scope = $1`, scopes[0])
	require.NoError(t, err)
	proxies[0].setDown(false)
	await.Eventually(t, "the first node is back and prolongs its leases", func() bool {
		return number(t, direct, "SELECT count(*) FROM pawl.command WHERE locked_until > clock_timestamp()") == count/2-1
	})
	polls := engines[0].Admin().InFlightStats().Polls
	await.Eventually(t, "it has looked at the others' leases more than twice", func() bool {
		return engines[0].Admin().InFlightStats().Polls > polls+2
	})
	proxies[1].setDown(false)
	await.Eventually(t, "what the worker has left that is gone is taken over", func() bool {
		return number(t, direct, "SELECT count(*) FROM pawl.command WHERE scope = $1 AND stuck IS NOT NULL", scopes[0]) == 1
	})
	close(done)
	for i, scope := range scopes[1:] {
		end, err := engines[i%2].Await(bounded(t), transitions.Ref{Scope: scope, Key: "send"})
		assert.NoErrorf(t, errors.Join(err, end.Err()), "%s", scope)
	}
	assert.Empty(t, begun, "begun once more")
	assert.Equal(t, int64(1), number(t, direct, "SELECT count(*) FROM pawl.command WHERE stuck IS NOT NULL"), "wait for an operator")
}
