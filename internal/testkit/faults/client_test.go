package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// asked is a command with the result that its caller got.
type asked struct {
	command client.Command
	receipt client.Receipt
	err     error
}

// intents returns all commands of one counter. One of them is refused.
func intents(x string) (list []*asked) {
	list = append(list, &asked{command: client.CommandOf(workflow.Name[open]{Workflow: "counter", Transition: "open"}, client.NewInstance,
		open{Name: x})})
	for _, by := range []int{1, 1, 1, 1, -1, 1, 1, 1, 1} {
		list = append(list, &asked{command: client.CommandOf(workflow.Name[add]{Workflow: "counter", Transition: "add"},
			client.BusinessKey("counter", x), add{By: by})})
	}
	return list
}

// The network loses, delays, truncates and duplicates requests and answers, and nodes are killed. Each command has one effect, and its
// caller gets the stored result. A subscriber sees each transition once, in order. PAWL_FULL=1 sends 10,000 commands.
func TestClientsOnBadNetworkGetOneEffect(t *testing.T) {
	t.Parallel()
	counters, callers, kills := 30, 8, 3
	if os.Getenv("PAWL_FULL") == "1" {
		counters, callers, kills = 1000, 16, 40
	}
	pool, seed := database(t), rand.Uint64()
	t.Logf("seed %d", seed)
	nodes := startFleet(t, pool, 2)
	network := &badNetwork{dialNode: nodes.dial, dice: rand.New(rand.NewPCG(seed, seed))}
	c, err := client.New(client.Config{
		URLs: []string{nodes.url(0), nodes.url(1)}, HTTP: &http.Client{Transport: &http.Transport{DialContext: network.dial}},
		Timeout: patience, Retry: client.Retry{Attempts: 1 << 20, First: time.Millisecond, Max: 100 * time.Millisecond},
	})
	require.NoError(t, err)
	defer c.Close()
	ctx := t.Context()
	positions := int64(counters * 9) // one in ten is refused
	followed := make(chan error, 1)
	go func() { followed <- followAll(ctx, c, positions) }()

	all := make([][]*asked, counters)
	var next, done atomic.Int64
	due, finish := nodes.replaceOnRequest(-1)
	var calling sync.WaitGroup
	for range callers {
		calling.Go(func() {
			for i := next.Add(1) - 1; i < int64(counters); i = next.Add(1) - 1 {
				all[i] = intents(fmt.Sprint("c", i))
				for _, a := range all[i] {
					a.receipt, a.err = c.Submit(ctx, a.command)
				}
				if done.Add(1)%int64(max(1, counters/(kills+1))) == 0 {
					due <- struct{}{}
				}
			}
		})
	}
	calling.Wait()
	killed := finish()
	assert.NoError(t, <-followed)
	e := start(t, pool)
	for i, list := range all {
		inst, err := e.Read().InstanceByKey(ctx, "", "counter", fmt.Sprint("c", i))
		require.NoError(t, err)
		assert.Equal(t, int64(9), inst.Version)
		assert.Equal(t, `{"n":8}`, string(inst.Data))
		for n, a := range list {
			scope := transitions.DefaultScope("counter", a.command.Transition, inst.ID)
			if n == 0 {
				scope = transitions.DefaultScope("counter", a.command.Transition, uuid.Nil)
			}
			record, err := e.Read().Command(ctx, transitions.Ref{Scope: scope, Key: a.command.Key})
			require.NoErrorf(t, err, "%s %s", scope, a.command.Key)
			stored := record.Receipt()
			assert.Equal(t, stored.Status, a.receipt.Status)
			assert.Equal(t, string(stored.Body), string(a.receipt.Body))
			assert.Equal(t, workflow.CodeOf(stored.Err()), workflow.CodeOf(a.err))
		}
	}
	wantSound(t, e, pool)
	assert.Equal(t, positions, number(t, pool, `SELECT count(*) FROM pawl.audit`), "transitions")
	for kind, name := range faultNames {
		n := network.count[kind].Load()
		t.Logf("%s: %d", name, n)
		assert.Truef(t, n > 0 || kind == streamCut, "no exchange had the fault %q: the test proves little", name) // a kill can cut streams, too
	}
	t.Logf("%d commands, %d kills", counters*10, killed)
	assert.GreaterOrEqual(t, killed, kills)
}

// followAll reads the log up to a position. It returns an error for a missing or repeated transition.
func followAll(ctx context.Context, c *client.Client, upTo int64) error {
	last := int64(0)
	for e, err := range c.Subscribe(ctx, client.Start, client.Filter{}) {
		if err != nil {
			return err
		}
		if last++; e.Position != last {
			return fmt.Errorf("position %d comes after %d", e.Position, last-1)
		}
		if last == upTo {
			return nil
		}
	}
	return errors.New("the subscription has an end")
}
