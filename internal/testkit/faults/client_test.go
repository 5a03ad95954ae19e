package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
func TestClientsOnABadNetworkGetOneEffectEach(t *testing.T) {
	t.Parallel()
	counters, callers, kills := 30, 8, 3
	if os.Getenv("PAWL_FULL") == "1" {
		counters, callers, kills = 1000, 16, 40
	}
	pool, seed := database(t), rand.Uint64()
	t.Logf("seed %d", seed)
	config := client.Config{Timeout: patience, Retry: client.Retry{Attempts: 1 << 20, First: time.Millisecond, Max: 100 * time.Millisecond}}
	nodes, roads := []*node{startNode(t, pool), startNode(t, pool)}, []*road{}
	for i, n := range nodes {
		roads = append(roads, newRoad(t, n.address, seed+uint64(i)))
		config.URLs = append(config.URLs, roads[i].url())
	}
	c, err := client.New(config)
	require.NoError(t, err)
	defer c.Close()
	ctx := t.Context()
	positions := int64(counters * 9) // one in ten is refused
	followed := make(chan error, 1)
	go func() { followed <- followAll(ctx, c, positions) }()

	all := make([][]*asked, counters)
	var next, done, killed atomic.Int64
	var work sync.WaitGroup
	due := make(chan struct{})
	work.Go(func() {
		for range due {
			i := int(killed.Add(1)) % 2
			nodes[i].kill()
			n, err := launch(t, pool)
			if err != nil {
				t.Error(err)
				continue
			}
			nodes[i] = n
			roads[i].to.Store(&n.address)
		}
	})
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
	close(due)
	work.Wait()
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
	met := map[string]int64{}
	for kind, name := range []string{"arrived", "request lost", "request twice", "late", "answer lost", "answer cut", "answer twice",
		"stream cut"} {
		for _, r := range roads {
			met[name] += r.met[kind].Load()
		}
		if met[name] == 0 && kind != streamCut { // that a kill can forestall
			t.Errorf("nothing had the fate %q: the test proves little", name)
		}
	}
	t.Logf("%d commands, %d kills, %v", counters*10, killed.Load(), met)
	assert.Truef(t, killed.Load() >= int64(kills), "%d kills", killed.Load())
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
