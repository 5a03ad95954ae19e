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
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// asked is a command, and what its caller got.
type asked struct {
	command client.Command
	receipt client.Receipt
	err     error
}

// intents are all commands of one counter: it is opened, grows, and refuses to shrink.
func intents(x string) (list []*asked) {
	on := client.BusinessKey("counter", x)
	list = append(list, &asked{command: client.CommandOf(workflow.Name[open]{Workflow: "counter", Transition: "open"}, client.NewInstance,
		open{Name: x})})
	for n := range 9 {
		by := 1
		if n == 4 {
			by = -1
		}
		list = append(list, &asked{command: client.CommandOf(workflow.Name[add]{Workflow: "counter", Transition: "add"}, on, add{By: by})})
	}
	return list
}

// Callers whose network loses, delays, cuts short and doubles what they send and get, at nodes that are killed: each command has one
// effect, and its caller has the answer that is stored. One that follows the log sees each transition once, in order.
// PAWL_FULL=1 sends 10,000 commands.
func TestClientsOnBadNetworkGetOneEffect(t *testing.T) {
	t.Parallel()
	counters, callers, kills := 30, 8, 3
	if os.Getenv("PAWL_FULL") == "1" {
		counters, callers, kills = 1000, 16, 40
	}
	pool, seed := database(t), rand.Uint64()
	t.Logf("seed %d", seed)
	config := client.Config{Timeout: patience, Retry: client.Retry{Attempts: 1 << 20, First: time.Millisecond, Max: 100 * time.Millisecond}}
	nodes := startFleet(t, pool, 2)
	network := &badNetwork{dialNode: nodes.dial, dice: rand.New(rand.NewPCG(seed, seed))}
	config.URLs, config.HTTP = []string{nodes.url(0), nodes.url(1)}, &http.Client{Transport: &http.Transport{DialContext: network.dial}}
	c, err := client.New(config)
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
		require.Truef(t, err == nil && inst.Version == 9 && string(inst.Data) == `{"n":8}`,
			"counter %d is at version %d with %s, %v", i, inst.Version, inst.Data, err)
		for _, a := range list {
			wantStored(ctx, t, e, inst.ID, a)
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

// wantStored fails the test unless the caller has what a direct reader of the database sees.
func wantStored(ctx context.Context, t testing.TB, e *engine.Engine, instance uuid.UUID, a *asked) {
	t.Helper()
	scope := transitions.DefaultScope("counter", a.command.Transition, instance)
	if a.command.On == client.NewInstance {
		scope = transitions.DefaultScope("counter", a.command.Transition, uuid.Nil)
	}
	record, err := e.Read().Command(ctx, transitions.Ref{Scope: scope, Key: a.command.Key})
	require.NoErrorf(t, err, "%s %s", scope, a.command.Key)
	stored := record.Receipt()
	assert.Truef(t, a.receipt.Status == stored.Status && string(a.receipt.Body) == string(stored.Body) &&
		workflow.CodeOf(a.err) == workflow.CodeOf(stored.Err()),
		"the caller has %d %s, %v\nand stored is %d %s", a.receipt.Status, a.receipt.Body, a.err, stored.Status, stored.Body)
}

// followAll reads the log up to a position. Error: a transition is missing, or there twice.
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
