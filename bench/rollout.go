package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

const (
	slowWork    = 50 * time.Millisecond
	slowWorkers = 16
)

// askSlowly is an activity that takes its time.
func askSlowly(ctx context.Context, _ *workflow.Attempt, _ orderData, _ changePayload) (askResult, error) {
	backoff.Sleep(ctx, slowWork)
	return askResult{Answer: "yes"}, ctx.Err()
}

// workingBeside is a node that executes count activities of version 2, with olds nodes that know only version 1. These may claim none of
// them.
func workingBeside(name, floor string, olds, count int) *scenario {
	return &scenario{name: name, floor: floor, run: func(ctx context.Context, e *env) (*sample, error) {
		var old []*engine.Engine
		few := engine.InFlightConfig{Workers: slowWorkers}
		for range olds {
			eng, err := e.engine(ctx, engine.Config{InFlight: few}, false)
			if err != nil {
				return nil, err
			}
			old = append(old, eng)
		}
		eng, err := e.engine(ctx, engine.Config{InFlight: few, Workflows: []workflow.Source{orders(2, askSlowly)}}, false)
		if err != nil {
			return nil, err
		}
		var places, asks []transitions.Command
		for i := range count {
			o := orderAt(len(e.orders) + i)
			places, asks = append(places, placeAt(len(e.orders)+i)), append(asks, change(asking, &o, commandKey(firstCaller, i)))
		}
		if err := many(ctx, eng, places, false); err != nil {
			return nil, err
		}
		s, err := awaitAll(ctx, eng, asks)
		if err != nil {
			return nil, err
		}
		s.all = int64(3 * count) // placed, accepted, ended
		for _, o := range old {
			if n := o.Admin().InFlightStats().Claimed; n != 0 {
				err = errors.Join(err, fmt.Errorf("an old node has claimed %d commands in vain", n))
			}
		}
		return s, err
	}}
}

// awaitAll submits commands at once and waits for the end of what they begin.
func awaitAll(ctx context.Context, eng *engine.Engine, commands []transitions.Command) (*sample, error) {
	begun := time.Now()
	latencies, failed := make([]time.Duration, len(commands)), make([]error, len(commands))
	var work sync.WaitGroup
	for i, c := range commands {
		work.Go(func() {
			r, err := eng.Submit(ctx, c)
			if err == nil && r.InFlight() {
				r, err = eng.Await(ctx, transitions.Ref{Tenant: tenant, Scope: r.Record.Scope, Key: r.Record.Key})
			}
			latencies[i], failed[i] = time.Since(begun), check(r, err, r.Replayed) // Await replays
		})
	}
	work.Wait()
	return &sample{commands: int64(len(commands)), took: time.Since(begun), latency: latencyOf(latencies)}, errors.Join(failed...)
}
